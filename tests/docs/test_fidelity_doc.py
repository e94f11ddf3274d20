"""docs/fidelity.md: every erratum has its evidence, and every table is what its script prints."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "docs" / "fidelity"
TEXT = (ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8")
QUICK = ("stage_derivative", "reward_condition")
SLOW = (
    "accuracy_term",
    "agreement",
    "cohort_closed_form",
    "convergence_bounds",
    "cost_table",
    "mean_budget_table",
    "price_of_anarchy",
    "response_table",
    "selection_table",
    "update_sensitivity",
    "stationary_point",
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def functions_of_the_errata() -> set[str]:
    tree = ast.parse((ROOT / "tests" / "reference" / "test_errata.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def section(number: int) -> str:
    found = re.search(rf"^## {number}\. .*?(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert found is not None, f"erratum {number} has no section"
    return found[0]


@pytest.mark.parametrize("number", range(1, 13))
def test_each_erratum_says_what_is_wrong_and_names_a_test_that_exists(number: int) -> None:
    body = section(number)
    for part in ("**Printed.**", "**Wrong.**", "**Here.**", "**Effect.**", "**Shown by.**"):
        assert part in body
    named = set(re.findall(r"`(test_\w+)`", body))
    assert any(name.startswith(f"test_{number}_") for name in named)
    assert named <= functions_of_the_errata()


def test_scripts_and_pictures_that_are_named_exist() -> None:
    named = set(re.findall(r"fidelity/(\w+\.(?:py|png))", TEXT))
    assert {f"{name}.py" for name in (*QUICK, *SLOW)} <= named
    assert all((SCRIPTS / name).is_file() for name in named)


def test_the_document_speaks_of_nothing_private() -> None:
    assert not re.search(r"/work|/tmp|SPEC|/home", TEXT)


def stated_and_printed(name: str) -> tuple[list[float], list[float]]:
    """Return the numbers of all tables under a script's marker, and those the script prints."""
    done = subprocess.run([sys.executable, str(SCRIPTS / f"{name}.py")], capture_output=True, text=True, check=True)
    block = re.search(rf"<!-- {name}\.py -->\n(.*?)<!-- end -->", TEXT, re.DOTALL)
    assert block is not None, f"no table of {name}.py"
    written, printed = ([float(x) for x in _NUMBER.findall(text)] for text in (block[1], done.stdout))
    return written, printed


@pytest.mark.parametrize("name", QUICK)
def test_quick_tables_are_what_their_scripts_print(name: str) -> None:
    stated, printed = stated_and_printed(name)
    assert stated == pytest.approx(printed, rel=1e-3, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_tables_are_what_their_scripts_print(name: str) -> None:
    stated, printed = stated_and_printed(name)
    # Iterations that never settle, and searches among nearly equal costs, differ a little between machines.
    assert stated == pytest.approx(printed, rel=0.05, abs=1.0)
