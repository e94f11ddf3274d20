"""Child processes end with whoever started them, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTER = """
import multiprocessing, time
from starter_child import wait

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.Process(target=wait).start()
    time.sleep(60)
"""
CHILD = """
import os, time
from fedpcs._processes import end_with_parent, end_with_starter

def wait():
    end_with_parent()
    end_with_starter()
    print(os.getpid(), flush=True)
    time.sleep(60)
"""


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_fork_server_has_forked_ends_when_its_starter_is_killed(tmp_path):
    (tmp_path / "starter_child.py").write_text(CHILD)
    (tmp_path / "starter.py").write_text(STARTER)
    with subprocess.Popen([sys.executable, tmp_path / "starter.py"], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        os.kill(starter.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20.0
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


# A user's script: no `__main__` guard, and a process of ours that is started at its top.
UNGUARDED = """
import multiprocessing, sys
from fedpcs._processes import WORKER, refuse_import_of_script, start, why_no_start
from helpful import shout

print("the script was read")
refuse_import_of_script()
def whisper():
    print("whispered", flush=True)

context = multiprocessing.get_context("forkserver")
process = start(lambda: context.Process(target={target}, name=WORKER))
process.join()
print(process.exitcode, why_no_start(process) or "-")
"""
HELPFUL = """
def shout():
    print("SHOUTED", flush=True)
"""


def output_of(folder, target):
    (folder / "helpful.py").write_text(HELPFUL)
    script = folder / "script.py"
    script.write_text(UNGUARDED.format(target=target))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_a_script_without_a_guard_may_start_work_that_needs_nothing_of_it(tmp_path):
    assert output_of(tmp_path, "shout") == ["the script was read", "SHOUTED", "0 -"]


def test_a_script_without_a_guard_that_its_processes_need_is_told_of_the_guard_once(tmp_path):
    first, *_, last = output_of(tmp_path, "whisper")
    assert (first, last.count("if __name__ == '__main__':"), "script.py begins its work" in last) == (
        "the script was read",
        1,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("defines_model", [False, True])
def test_a_run_with_workers_needs_a_guard_only_where_the_model_is_the_script_s_own(tmp_path, defines_model):
    model = "__main__:make" if defines_model else "linear"
    config = {
        "rounds": 2,
        "training": {"model": model},
        "privacy": {"mode": "none"},
        "data": {"num_clients": 4},
        "game": {"behaviour": "static"},
        "sampling": {"samplers": ["random"]},
    }
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom torch import nn\nfrom fedpcs.trial.run import start_run\n"
        "from fedpcs.trial.config import make_run_config\n"
        "class Net(nn.Linear):\n    def forward(self, x): return super().forward(x.flatten(1))\n"
        "def make(shape, num_classes): return Net(64, num_classes)\n"
        f"print(start_run(make_run_config({config!r}), Path('run')).result['trials'][0]['rounds'])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    if defines_model:
        assert done.returncode == 1
        assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]
        assert done.stderr.count("Traceback") == 1
    else:
        assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
