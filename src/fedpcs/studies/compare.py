"""A sweep in its folder: run again, it does what is missing and no more.

SWEEP/sweep.json   trials/…   games/…   report.html   figures/…   cells.csv
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcs._files import disk_errors, write_json
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.studies.cell_store import CellStore
from fedpcs.studies.grid import Cell, SweepConfig, make_cells
from fedpcs.studies.plan import SweepPlan
from fedpcs.studies.pool import run_cells
from fedpcs.studies.progress import SweepDisplay
from fedpcs.trial.config import read_tables
from fedpcs.trial.records import Record, read_record

MAKE_AGAIN = "Give the `fedpcs compare` that made it again: done cells are reused."


def carry_out(plan: SweepPlan, store: CellStore, data_dir: Path | None) -> dict[str, str]:
    """Run what is missing and show how it goes; return why cells could not be run, by key."""
    with SweepDisplay(plan.cells, plan.seconds) as display:
        display.say(plan.text)
        return run_cells(plan.cells, store, data_dir, num_jobs=plan.num_jobs, say=display.say, moved=display.moved)


class _SweepFile(Record):
    """`sweep.json`: a page is made of what was run, whatever becomes of the files it was read from."""

    sweep: SweepConfig
    base: dict[str, Any]
    cells: str | None
    command: str
    data_dir: str | None


def remember_sweep(
    folder: Path, sweep: SweepConfig, cells_folder: Path | None, command: str, data_dir: Path | None = None
) -> None:
    """Write down what a folder's page is made of."""
    for made in (*([] if cells_folder is None else [cells_folder]), folder):
        with disk_errors(made):
            made.mkdir(parents=True, exist_ok=True)
    cells, data = (None if place is None else str(place.resolve()) for place in (cells_folder, data_dir))
    kept = _SweepFile(sweep=sweep, base=read_tables(sweep.base), cells=cells, command=command, data_dir=data)
    write_json(folder / "sweep.json", kept.model_dump(mode="json"))


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
    if strange := sorted(path.name for path in folder.iterdir() if path.name not in ("trials", "games")):
        raise InvalidInput(
            f"--out {folder}: holds {strange[0]!r}, and is no sweep's folder: files could be lost. Give another folder."
        )


def _kept_name(path: Path) -> str | None:
    """Return the name of a sweep that is kept; None if its file is damaged, and so is to be written again."""
    try:
        return read_record(_SweepFile, path).sweep.name
    except CorruptFile:
        return None


def is_sweep(folder: Path) -> bool:
    """Say whether a folder holds a sweep."""
    return (folder / "sweep.json").is_file()


@dataclass(frozen=True)
class KeptSweep:
    """What `sweep.json` says: a sweep's name, its cells and where they are, the command that makes it, its data."""

    name: str
    cells: list[Cell]
    store: CellStore
    command: str
    data_dir: Path | None


def read_sweep(path: Path) -> KeptSweep:
    """Read what a folder's page is made of.

    Raises:
        CorruptFile: It is damaged, or its cells are not there.
    """
    kept = read_record(_SweepFile, path, MAKE_AGAIN)
    try:
        cells = make_cells(kept.sweep, kept.base, str(path))
    except InvalidInput as error:
        raise CorruptFile(f"{error} {MAKE_AGAIN}") from None
    place = path.parent if kept.cells is None else Path(kept.cells)
    if not place.is_dir():
        raise CorruptFile(f"{path}: its cells are in {place}, which is not there. Put it back. Or: {MAKE_AGAIN}")
    data_dir = None if kept.data_dir is None else Path(kept.data_dir)
    return KeptSweep(kept.sweep.name, cells, CellStore(place), kept.command, data_dir)


def raise_if_damaged(damaged: Mapping[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some finished cells could not be read; the page is there all the same.

    Raises:
        CorruptFile: Some could not.
    """
    if damaged:
        labels = {cell.key: cell.label for cell in cells}
        first = next(iter(damaged))
        raise CorruptFile(
            f"{len(damaged)} finished cells cannot be read and are left out, such as {labels[first]}: {damaged[first]}"
        )


def raise_if_failed(failures: Mapping[str, str], cells: Sequence[Cell]) -> None:
    """Raise if some cells could not be run; the page is there all the same."""
    if failures:
        labels = {cell.key: cell.label for cell in cells}
        first = next(iter(failures))
        raise FedpcsError(f"{len(failures)} cells could not be run, such as {labels[first]}: {failures[first]}")
