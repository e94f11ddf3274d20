"""A study's page and tables, written from what its folder holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcs.errors import CorruptFile
from fedpcs.report.export import can_write_parquet, export_csv, export_parquet
from fedpcs.report.page import Page
from fedpcs.report.render import write_page
from fedpcs.report.study_page import study_page
from fedpcs.report.warnings import noted
from fedpcs.studies.compare import MAKE_AGAIN
from fedpcs.studies.comparison import Comparison
from fedpcs.studies.promise import standing
from fedpcs.studies.results import Group, Study, compared, group
from fedpcs.studies.study import read_study
from fedpcs.trial.run_store import RunStore


@dataclass(frozen=True)
class WrittenStudy:
    """A study's page.

    Attributes:
        study: What it tells of.
        report: Where it is.
        page: What it shows.
    """

    study: Study
    report: Path
    page: Page

    @property
    def records(self) -> tuple[Mapping[str, Any], ...]:
        """A row for each finished trial."""
        return self.page.records

    @property
    def compared(self) -> tuple[tuple[Group, Comparison], ...]:
        """The three differences, setting by setting."""
        return tuple((found, one) for found in group(self.study.done) for one in compared(found))

    @property
    def privacy(self) -> tuple[str, ...]:
        """What the trainings may claim of privacy."""
        said = (standing(one.cell.config.privacy, [one.outcome.disclosure]) for one in self.study.done)
        return tuple(dict.fromkeys(said))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of how they were made."""
        return noted(self.study.done)


def write_study(folder: Path, *, with_parquet: bool = False) -> WrittenStudy:
    """Write the page of a run or a sweep from what is there, finished or not; of a sweep its table and figures too.

    A `cells.parquet` that is there already is written again, asked for or not, so that it never tells of older cells.

    Raises:
        CorruptFile: A file of a run, or a sweep's own, is damaged, or none of the cells that an earlier page told of is
            there. Of a sweep's cell that is damaged, the page and the answer say so.
        InvalidInput: There is no study, or the table is wanted as Parquet too, and pyarrow is not installed.
        FedpcsError: A file cannot be written.
    """
    study = read_study(folder)
    is_sweep = study.config is None
    table, typed = folder / "cells.csv", folder / "cells.parquet"
    if is_sweep and not study.done and not study.failures and not study.damaged and table.exists():
        raise CorruptFile(
            f"{folder}: none of the {len(study.cells)} cells its page tells of is there; the page is left as it is. "
            f"Put them back. Or: {MAKE_AGAIN}"
        )
    page = study_page(study)
    report = write_page(page, folder, with_files=is_sweep)  # before the tables: whatever keeps one from being written
    if is_sweep:
        wants_typed = with_parquet or (typed.exists() and can_write_parquet())
        if page.records:
            export_csv(page, table)
        if page.records and wants_typed:
            export_parquet(page, typed)
        for path, is_new in ((table, True), (typed, wants_typed)):
            if not (page.records and is_new):
                path.unlink(missing_ok=True)
    return WrittenStudy(study, report, page)


def write_report_safely(store: RunStore, say: Callable[[str], None]) -> None:
    """Write a run's page; if that fails, say so: results are safe, and `fedpcs report` can try again."""
    try:
        write_study(store.folder)
    except Exception as error:  # figures are for people; no mistake in them may cost a result
        say(f"the report could not be drawn ({type(error).__name__}: {error}); results are safe.")
