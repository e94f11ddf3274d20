"""docs/faults.md: every fault has a row, and every test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
FAULTS = [*range(1, 38), 39]  # F38 is of the secure sum's helper, which is not built
FOLDERS = (".", "faults", "engines/flower", "trial", "deploy", "studies", "report", "cli", "privacy")


def rows() -> dict[int, list[str]]:
    """Return the cells of each fault's row: fault, what happens, tests."""
    lines = re.findall(r"^\| F(\d+) \|(.*)\|$", TEXT, re.MULTILINE)
    assert len({number for number, _ in lines}) == len(lines)
    return {int(number): [cell.strip() for cell in rest.split("|")] for number, rest in lines}


def existing_tests() -> set[str]:
    """Return the names of all test functions that may stand behind a row."""
    return {
        node.name
        for folder in FOLDERS
        for path in (ROOT / "tests" / folder).glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_fault_has_a_row_that_says_what_happens() -> None:
    found = rows()
    assert sorted(found) == FAULTS
    assert all(len(cells) == 3 and all(cells) for cells in found.values())


def test_every_fault_names_existing_tests() -> None:
    there = existing_tests()
    for number, (_, _, shown_by) in rows().items():
        named = re.findall(r"`(test_\w+)`", shown_by)
        assert named, f"F{number} names no test"
        assert set(named) <= there, f"F{number} names {sorted(set(named) - there)}"


def test_every_fault_of_a_deployment_names_existing_tests_and_what_others_do() -> None:
    section = TEXT.split("## On a deployment")[1]
    assert set(re.findall(r"`(test_\w+)`", section)) <= existing_tests()
    by_name = re.findall(r"^- (\*\w+\*): `test_\w+`$", section, re.MULTILINE)
    table = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(table) > 15
    for _, ours, shown_by, stock in table:
        assert ours.strip()
        assert stock.strip()
        assert any(name in shown_by for name in [*by_name, "`test_"])
