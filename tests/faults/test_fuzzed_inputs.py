"""Every file a user may give, made wrong at random: no traceback, no hang, no growth, the right exit code.

`python tests/faults/fuzz_inputs.py` runs as many cases as asked for; a few of each kind are run here. It is a process
of its own, because it forks, which a process with threads must not.
"""

import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).with_name("fuzz_inputs.py")


def fuzzed(*counts):
    words = [f"--{kind}={count}" for kind, count in counts]
    return subprocess.run([sys.executable, COMMAND, "--seed", "1", *words], capture_output=True, text=True, check=False)


def test_no_file_made_wrong_at_random_ends_in_a_traceback_or_a_hang():
    done = fuzzed(("configs", 60), ("games", 40))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "configs: 60 cases" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("counts", [("configs", 2000), ("games", 500), ("runs", 150), ("archives", 100)])
def test_nor_do_thousands(counts):
    done = fuzzed(counts)
    assert done.returncode == 0, done.stdout + done.stderr
