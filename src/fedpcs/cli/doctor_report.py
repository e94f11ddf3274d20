"""What `fedpcs doctor` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedpcs.trial.check import Check

_COLOURS = {"fine": "green", "note": "yellow", "wrong": "bold red"}


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """Print a row for each check, with its remedy below what was found."""
    table = Table(show_header=False, box=box.SIMPLE, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for one in checks:
        words = f"{one.found}\n→ {one.remedy}" if one.remedy else one.found
        table.add_row(one.subject, Text(one.standing, style=_COLOURS[one.standing]), Text(words))
    console.print(table)
