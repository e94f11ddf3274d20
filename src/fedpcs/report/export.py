"""A page's records as files for other programs: CSV for any of them, Parquet for those that keep types."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
from pathlib import Path
from typing import Any

import numpy as np

from fedpcs._files import write_text, write_whole
from fedpcs._plugins import pip_install
from fedpcs.errors import InvalidInput
from fedpcs.report.page import Page

Cell = str | int | float | bool | None


def export_csv(page: Page, path: Path) -> None:
    """Write a page's records as CSV (RFC 4180): a header, a line each, numbers with all their digits.

    Guarantees:
        A column stands where its key was first seen; what a record lacks, or has as None, is empty. Python's `csv`
        reads back every word, and `float` every number, as it was.

    Raises:
        InvalidInput: There are no records, or one holds something other than a word or a number.
        FedpcsError: The file cannot be written.
    """
    columns, rows = _flat(page)
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows({name: _written(cell) for name, cell in row.items()} for row in rows)
    write_text(path, stream.getvalue())


def export_parquet(page: Page, path: Path) -> None:
    """Write a page's records as Parquet: the columns of `export_csv`, with types, null where a record has nothing.

    A column of words and numbers is one of words, as CSV has them.

    Raises:
        InvalidInput: pyarrow is not installed, there are no records, one holds something other than a word or a
            number, or a column a number that no type of Parquet's holds.
        FedpcsError: The file cannot be written.
    """
    check_parquet()
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    columns, rows = _flat(page)
    arrays = []
    for name in columns:
        try:
            arrays.append(pyarrow.array(_of_one_type([row[name] for row in rows])))
        except (pyarrow.ArrowException, OverflowError) as error:
            raise InvalidInput(
                f"records of {page.name!r}: column {name!r} cannot be typed: {error}. Give smaller numbers, or read "
                "the CSV: it has the same records."
            ) from None
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays, names=columns), stream)
    write_whole(path, stream.getvalue())


def check_parquet() -> None:
    """Check that Parquet can be written.

    Raises:
        InvalidInput: pyarrow is not installed.
    """
    if not can_write_parquet():
        raise InvalidInput(
            f"writing Parquet needs the package pyarrow, which is not installed. Run `{pip_install('parquet')}`, "
            "or read the CSV: it has the same records."
        )


def can_write_parquet() -> bool:
    """Say whether pyarrow is installed."""
    return importlib.util.find_spec("pyarrow") is not None


def _flat(page: Page) -> tuple[list[str], list[dict[str, Cell]]]:
    """Return the columns, and every record with all of them."""
    if not page.records:
        raise InvalidInput(f"{page.name!r} has no records, so there is nothing to export. Run it first.")
    columns = list(dict.fromkeys(key for record in page.records for key in record))
    return columns, [{name: _cell(page.name, name, record.get(name)) for name in columns} for record in page.records]


def _cell(name: str, column: str, value: Any) -> Cell:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, str | int | float):
        return plain
    raise InvalidInput(
        f"records of {name!r}: {column!r} is {type(value).__name__}, and a table's cell holds one word or number. "
        "Give every number inside it a key of its own."
    )


def _written(cell: Cell) -> str | float | None:
    """Return a cell as CSV is to have it: `csv` writes a float with all its digits, and None as nothing."""
    return str(cell).lower() if isinstance(cell, bool) else cell


def _of_one_type(cells: list[Cell]) -> list[Cell]:
    """Return whole numbers as floats where a column has both, and numbers as words where it has words."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if str in kinds and len(kinds) > 1:
        return [None if cell is None else str(_written(cell)) for cell in cells]
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    return cells
