"""docs/theory.md: its table is what its script prints, its code runs, its bounds exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from fedpcs import theory

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")


def test_every_bound_is_listed_and_everything_listed_exists():
    named = set(re.findall(r"`((?:paper|valid)_\w+)`", TEXT))
    assert named == {name for name in dir(theory) if name.startswith(("paper_", "valid_"))}


def test_its_code_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(block.replace("num_trajectories=1000", "num_trajectories=50"), {})
    assert capsys.readouterr().out.startswith(("start", "noise", "sampling"))


@pytest.mark.slow
def test_its_table_is_what_its_script_prints():
    script = ROOT / "docs" / "theory" / "ratios.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    block = re.search(r"<!-- ratios\.py -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    written, printed = ([float(x) for x in re.findall(r"\d+\.\d+", text)] for text in (block[1], done.stdout))
    assert written == pytest.approx(printed, rel=0.05, abs=0.15)
