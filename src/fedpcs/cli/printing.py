"""How verbs print: one table, lines as they are, and JSON; stdout is data, stderr is talk."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


def emit(value: Any, as_json: bool, show: Callable[[], None]) -> None:
    """Print a value as one line of JSON, or for people by `show`: arrays as lists, what JSON cannot say as null."""
    if as_json:
        print(json.dumps(to_jsonable_python(value, inf_nan_mode="null", fallback=_as_list)))
    else:
        show()


def make_table(
    rows: Iterable[Sequence[str | Text]],
    headings: Sequence[str],
    *,
    right: Collection[str] = (),
    folded: Collection[str] = (),
) -> Table:
    """Return a table without lines.

    Args:
        rows: One text per column.
        headings: Names of the columns; not shown if all are blank.
        right: Columns that stand flush right.
        folded: Columns that may be broken into lines.
    """
    table = Table(box=None, padding=(0, 1, 0, 0), show_header=any(map(str.strip, headings)))
    for name in headings:
        is_folded = name in folded
        table.add_column(name, justify="right" if name in right else "left", no_wrap=not is_folded, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one) if isinstance(one, str) else one for one in row))
    return table


def print_whole(table: Table) -> None:
    """Print a table; where there is no terminal, as wide as it needs to be, since numbers must not be cut."""
    console = Console()
    if not console.is_terminal:
        widest = Measurement.get(console, console.options.update(width=10_000), table).maximum
        console.width = max(console.width, widest)
    console.print(table)


def print_table(
    rows: Iterable[Sequence[str | Text]],
    headings: Sequence[str],
    *,
    right: Collection[str] = (),
    folded: Collection[str] = (),
    title: str = "",
) -> None:
    """Print what `make_table` makes, with a title above it."""
    if title:
        say(title, style="bold")
    print_whole(make_table(rows, headings, right=right, folded=folded))


def print_facts(facts: Mapping[str, str], title: str) -> None:
    """Print names with what there is to say of each."""
    rows = [(Text(f"{name} "), text) for name, text in facts.items()]
    print_table(rows, ("", " "), folded=(" ",), title=title)


def say(*lines: object, style: str = "", to_stderr: bool = False) -> None:
    """Print lines as they are: not broken, not coloured, no brackets read as markup."""
    console = Console(stderr=to_stderr)
    for line in lines:
        console.print(str(line), style=style, highlight=False, markup=False, soft_wrap=True)


def status(text: str) -> AbstractContextManager[object]:
    """Show on stderr that something is being done."""
    return Console(stderr=True).status(text)


def _as_list(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
