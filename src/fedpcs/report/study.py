"""A sweep as a page and a table, written from what its cells came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcs.errors import CorruptFile
from fedpcs.report.page_export import can_write_parquet, export_csv, export_parquet
from fedpcs.report.page_report import write_page
from fedpcs.report.study_page import comparison_page
from fedpcs.report.warnings import noted
from fedpcs.studies.compare import MAKE_AGAIN, read_sweep
from fedpcs.studies.comparison import Comparison
from fedpcs.studies.grid import Cell
from fedpcs.studies.groups import Group, compared, group
from fedpcs.studies.promise import standing


@dataclass(frozen=True)
class WrittenSweep:
    """A sweep's page.

    Attributes:
        report: The page.
        records: A row for each cell it tells of.
        cells: All of the sweep.
        damaged: By key, why finished cells could not be read.
        headline: What is sure, in a sentence.
        compared: The three differences, setting by setting.
        privacy: What the trainings may claim of privacy.
        notes: What a reader must know of how they were made.
    """

    report: Path
    records: tuple[Mapping[str, Any], ...]
    cells: tuple[Cell, ...]
    damaged: Mapping[str, str]
    headline: str
    compared: tuple[tuple[Group, Comparison], ...]
    privacy: tuple[str, ...]
    notes: tuple[str, ...]


def write_sweep(folder: Path, *, with_parquet: bool = False) -> WrittenSweep:
    """Write a sweep's page and table from what its cells came to, done or not.

    A `cells.parquet` that is there already is written again, asked for or not, so that it never tells of older cells.

    Raises:
        CorruptFile: The sweep's own file is damaged, or none of the cells that an earlier page told of is there. Of a
            cell that is damaged, the page and the answer say so.
        InvalidInput: The table is wanted as Parquet too, and pyarrow is not installed.
    """
    kept = read_sweep(folder / "sweep.json")
    done, damaged = kept.store.read_all(kept.cells)
    readable = {one.cell.key for one in done}
    missing = [cell for cell in kept.cells if cell.key not in readable]
    failures = {cell.key: reason for cell in missing if (reason := kept.store.failure_of(cell))} | damaged
    table, typed = folder / "cells.csv", folder / "cells.parquet"
    if not done and not failures and table.exists():
        raise CorruptFile(
            f"{folder}: none of the {len(kept.cells)} cells its page tells of is in {kept.store.folder}; "
            f"the page is left as it is. Put them back. Or: {MAKE_AGAIN}"
        )
    page = comparison_page(kept.name, done, failures, missing=missing, command=kept.command)
    written = write_page(page, folder)  # before the tables: whatever keeps one from being written, the page is there
    wants_typed = with_parquet or (typed.exists() and can_write_parquet())
    if page.records:
        export_csv(page, table)
    if page.records and wants_typed:
        export_parquet(page, typed)
    for path, is_new in ((table, True), (typed, wants_typed)):
        if not (page.records and is_new):
            path.unlink(missing_ok=True)
    differences = tuple((found, one) for found in group(done) for one in compared(found))
    claims = dict.fromkeys(standing(one.cell.config.privacy, [one.outcome]) for one in done)
    return WrittenSweep(
        written, page.records, tuple(kept.cells), damaged, page.headline, differences, tuple(claims), noted(done)
    )
