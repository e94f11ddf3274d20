"""`fedpcs reproduce`: one command for each exhibit of the paper. Exhibits share their cells; what is done is reused.

ROOT/EXHIBIT-DATASET-PROFILE/report.html, figures/, records.csv   ROOT/cells/…   ROOT/games/…
"""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from fedpcs.experiments.cell_store import CellStore, Done
from fedpcs.experiments.compare import carry_out, plan_sweep
from fedpcs.experiments.exhibits.accuracy_cells import Profile, Run
from fedpcs.experiments.exhibits.page import Page
from fedpcs.experiments.exhibits.registry import Wanted, exhibit
from fedpcs.experiments.files import disk_errors, write_whole
from fedpcs.experiments.page_export import export_csv
from fedpcs.experiments.page_markdown import as_markdown
from fedpcs.experiments.page_report import write_page
from fedpcs.experiments.sweep_config import Cell
from fedpcs.experiments.sweep_progress import duration


def reproduce(
    name: str,
    dataset: str,
    profile: Profile,
    root: Path,
    data_dir: Path | None = None,
    *,
    num_jobs: int | None = None,
    only_done: bool = False,
) -> Path:
    """Make an exhibit: run what is missing, write its page, its figures and its numbers.

    Args:
        name: Of the exhibit.
        dataset: On what.
        profile: `quick` or `paper`.
        root: Folder of exhibits and of the cells they share.
        data_dir: Where data sets lie.
        num_jobs: Cells at a time; None: one for each core.
        only_done: Run nothing, and write the page from what is done.

    Returns:
        The page.
    """
    found = exhibit(name)
    began = time.monotonic()
    missing: list[Cell] = []
    run = _runner(CellStore(root), data_dir, num_jobs, only_done, missing)
    page = found.make(Wanted(dataset, profile, data_dir, run))
    return write_exhibit(_told(page, missing, time.monotonic() - began), root / folder_name(name, dataset, profile))


def folder_name(name: str, dataset: str, profile: Profile) -> str:
    """Return where an exhibit is kept; those of the game alone know no data set."""
    about = f"-{dataset}" if exhibit(name).reads_data else ""
    return f"{name}{about}-{profile}"


def write_exhibit(page: Page, folder: Path) -> Path:
    """Write a page, its figures, its numbers and its words as Markdown."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    report = write_page(page, folder)
    if page.records:
        export_csv(page, folder / "records.csv")
    write_whole(folder / "report.md", as_markdown(page).encode())
    return report


def _runner(store: CellStore, data_dir: Path | None, num_jobs: int | None, only_done: bool, missing: list[Cell]) -> Run:
    """Return what runs an exhibit's cells; those that could not be run are added to `missing`."""

    def run(cells: Sequence[Cell]) -> list[Done]:
        if not only_done and not all(store.is_done(cell) for cell in cells):
            carry_out(plan_sweep(cells, store, data_dir, num_jobs), store, data_dir)
        missing.extend(cell for cell in cells if not store.is_done(cell))
        return [store.read(cell) for cell in cells if store.is_done(cell)]

    return run


def _told(page: Page, missing: Sequence[Cell], seconds: float) -> Page:
    """Return the page with what is missing, and how long it took to make."""
    lost = {cell.key: cell for cell in missing}
    words = [f"{len(lost)} cells are missing, such as {next(iter(lost.values())).words}."] if lost else []
    versions = {name: version(name) for name in ("fedpcs", "numpy", "scipy", "numba", "torch")}
    made = {**versions, "python": platform.python_version(), "machine": platform.machine()}
    took = {**made, **page.provenance, "this command took": duration(seconds)}
    return replace(page, warnings=(*page.warnings, *words), provenance=took)
