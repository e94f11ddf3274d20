"""docs/faults.md: every fault has a row, and every test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
# Fault 27 is of an engine that is not here yet.
FAULTS = [number for number in range(1, 29) if number != 27]


def rows() -> dict[int, list[str]]:
    """Return the cells of each fault's row: fault, what happens, tests."""
    lines = re.findall(r"^\| F(\d+) \|(.*)\|$", TEXT, re.MULTILINE)
    assert len({number for number, _ in lines}) == len(lines)
    return {int(number): [cell.strip() for cell in rest.split("|")] for number, rest in lines}


def existing_tests() -> set[str]:
    """Return the names of all test functions in tests/faults."""
    return {
        node.name
        for path in (ROOT / "tests" / "faults").glob("test_*.py")
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
