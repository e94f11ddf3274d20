"""`fedpcs compare`: a sweep, from its plan to its page. Run again, it does what is missing and no more.

SWEEP/sweep.json   cells/…   games/…   report.html   figures/…   cells.csv
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any

from rich.table import Table

from fedpcs import _format
from fedpcs._files import disk_errors, read_object, write_json
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.experiments.cell_store import CellStore
from fedpcs.experiments.page_export import can_write_parquet, export_csv, export_parquet
from fedpcs.experiments.page_report import write_page
from fedpcs.experiments.run_config import read_tables
from fedpcs.experiments.run_report_promise import standing
from fedpcs.experiments.run_table import print_differences, print_whole
from fedpcs.experiments.sweep import run_cells
from fedpcs.experiments.sweep_config import Cell, SweepConfig, make_cells, make_sweep_config
from fedpcs.experiments.sweep_groups import Group, compared, group
from fedpcs.experiments.sweep_page import comparison_page
from fedpcs.experiments.sweep_plan import SweepPlan
from fedpcs.experiments.sweep_progress import SweepDisplay
from fedpcs.experiments.sweep_warnings import noted
from fedpcs.experiments.three_differences import Comparison

_AGAIN = "Give the `fedpcs compare` that made it again: done cells are reused."
_SHOWN = {"variant": "variant", "partition": "split", "sampling_ratio": "τ", "rule": "rule", "behaviour": "clients"}


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


def carry_out(plan: SweepPlan, store: CellStore, data_dir: Path | None) -> dict[str, str]:
    """Run what is missing and show how it goes; return why cells could not be run, by key."""
    with SweepDisplay(plan.cells, plan.seconds) as display:
        display.say(plan.words)
        return run_cells(plan.cells, store, data_dir, num_jobs=plan.num_jobs, watcher=display)


def remember_sweep(folder: Path, sweep: SweepConfig, cells_folder: Path | None, command: str) -> None:
    """Write down what a folder's page is made of."""
    for made in (*([] if cells_folder is None else [cells_folder]), folder):
        with disk_errors(made):
            made.mkdir(parents=True, exist_ok=True)
    kept = None if cells_folder is None else str(cells_folder.resolve())
    base = read_tables(sweep.base)  # a page is made of what was run, whatever becomes of the file
    written = {"sweep": sweep.model_dump(mode="json"), "base": base, "cells": kept, "command": command}
    write_json(folder / "sweep.json", written)


def check_free(folder: Path, name: str) -> None:
    """Refuse a folder whose files a sweep would replace: it may hold the sweep of that name, or nothing but cells.

    Raises:
        InvalidInput: It holds another sweep, a run, an exhibit, or anything else.
    """
    if not folder.is_dir():
        return
    if is_sweep(folder):
        if (kept := _kept_name(folder / "sweep.json")) not in (name, None):
            raise InvalidInput(
                f"--out {folder}: the sweep {kept!r} is kept there, and its page would be lost to {name!r}. Give "
                f"another folder; `--cells {folder}` shares its cells."
            )
        return
    if (folder / "config.toml").is_file():
        raise InvalidInput(f"--out {folder}: a run is kept there, and its report would be lost. Give another folder.")
    if strange := sorted(path.name for path in folder.iterdir() if path.name not in ("cells", "games")):
        raise InvalidInput(
            f"--out {folder}: holds {strange[0]!r}, and is no sweep's folder: files could be lost. Give another folder."
        )


def _kept_name(path: Path) -> str | None:
    """Return the name of a sweep that is kept; None if its file is damaged, and so is to be written again."""
    try:
        kept = read_object(path, "sweep")["sweep"]
    except CorruptFile:
        return None
    name = kept.get("name") if isinstance(kept, dict) else None
    return name if isinstance(name, str) else None


def is_sweep(folder: Path) -> bool:
    """Say whether a folder holds a sweep."""
    return (folder / "sweep.json").is_file()


def write_sweep(folder: Path, *, with_parquet: bool = False) -> WrittenSweep:
    """Write a sweep's page and table from what its cells came to, done or not.

    A `cells.parquet` that is there already is written again, asked for or not, so that it never tells of older cells.

    Raises:
        CorruptFile: The sweep's own file is damaged, or none of the cells that an earlier page told of is there. Of a
            cell that is damaged, the page and the answer say so.
        InvalidInput: The table is wanted as Parquet too, and pyarrow is not installed.
    """
    kept = _read_kept(folder / "sweep.json")
    done, damaged = kept.store.read_all(kept.cells)
    readable = {one.cell.key for one in done}
    missing = [cell for cell in kept.cells if cell.key not in readable]
    failures = {cell.key: reason for cell in missing if (reason := kept.store.failure_of(cell))} | damaged
    table, typed = folder / "cells.csv", folder / "cells.parquet"
    if not done and not failures and table.exists():
        raise CorruptFile(
            f"{folder}: none of the {len(kept.cells)} cells its page tells of is in {kept.store.folder}; "
            f"the page is left as it is. Put them back. Or: {_AGAIN}"
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
    claims = dict.fromkeys(standing(one.cell.config.privacy, [one.result]) for one in done)
    return WrittenSweep(
        written, page.records, tuple(kept.cells), damaged, page.headline, differences, tuple(claims), noted(done)
    )


@dataclass(frozen=True)
class _Kept:
    """What `sweep.json` says: a sweep's name, its cells and where they are, and the command that runs it again."""

    name: str
    cells: list[Cell]
    store: CellStore
    command: str


def _read_kept(path: Path) -> _Kept:
    kept = read_object(path, "sweep", "cells", "command", remedy=_AGAIN)
    shapes = {"sweep": (dict,), "base": (dict, NoneType), "cells": (str, NoneType), "command": (str,)}
    if wrong := [key for key, kinds in shapes.items() if not isinstance(kept.get(key), kinds)]:
        raise CorruptFile(f"{path}: {wrong[0]} must not be {kept[wrong[0]]!r}. {_AGAIN}")
    try:
        sweep = make_sweep_config(kept["sweep"], str(path))
        cells = make_cells(sweep, kept.get("base"), str(path))
    except InvalidInput as error:
        raise CorruptFile(f"{error} {_AGAIN}") from None
    place = path.parent if kept["cells"] is None else Path(kept["cells"])
    if not place.is_dir():
        raise CorruptFile(f"{path}: its cells are in {place}, which is not there. Put it back. Or: {_AGAIN}")
    return _Kept(sweep.name, cells, CellStore(place), kept["command"])


def print_sweep(written: WrittenSweep, *, as_json: bool) -> None:
    """Print what a sweep came to, what is sure first: a sentence and its tables, or one JSON object."""
    rows = written.records
    if as_json:
        told = [{"variant": at.variant, "setting": dict(at.point), **one.numbers} for at, one in written.compared]
        said = {"report": str(written.report), "headline": written.headline, "differences": told}
        print(json.dumps({**said, "cells": list(rows)}))
        return
    if written.compared:
        print_differences(written.headline, [(at.words, one) for at, one in written.compared])
    of_grid = {name: name.rpartition(".")[2] for name in (rows[0] if rows else {}) if name.startswith("set.")}
    of_grid |= {name: name for name in ("data", "mode", "clip_norm") if len({row[name] for row in rows}) > 1}
    columns = {**_SHOWN, **of_grid, "sampler": "sampler"}
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[name]) for name in columns), []).append(row["accuracy"])
    table = Table(box=None, padding=(0, 1, 0, 0))
    for name in (*columns.values(), "accuracy", "seeds"):
        table.add_column(name, no_wrap=True)
    for place, accuracy in groups.items():
        table.add_row(*place, _format.mean_and_spread(accuracy), str(len(accuracy)))
    print_whole(table)
    for words in (*written.privacy, *written.notes):
        print(words)
    print(written.report)


def raise_if_damaged(damaged: Mapping[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some finished cells could not be read; the page is there all the same.

    Raises:
        CorruptFile: Some could not.
    """
    if damaged:
        words = {cell.key: cell.words for cell in cells}
        first = next(iter(damaged))
        raise CorruptFile(
            f"{len(damaged)} finished cells cannot be read and are left out, such as {words[first]}: {damaged[first]}"
        )


def raise_if_failed(failures: dict[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some cells could not be run; the page is there all the same."""
    if failures:
        words = {cell.key: cell.words for cell in cells}
        first = next(iter(failures))
        raise FedpcsError(f"{len(failures)} cells could not be run, such as {words[first]}: {failures[first]}")
