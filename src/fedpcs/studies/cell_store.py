"""Cells on disk, each the folder of a run of its own. Several sweeps may share a store: equal cells are run once.

STORE/games/…   STORE/cells/DATA-SPLIT-RATIO-SAMPLER-seedN-KEY/…
"""

from __future__ import annotations

import functools
import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedpcs._files import NEW_RUN, lines_of, read_json, read_object, read_text, write_text
from fedpcs._outside import printable
from fedpcs.errors import CorruptFile
from fedpcs.studies.grid import Cell, kept_key
from fedpcs.studies.results import TrialData
from fedpcs.trial.records import Manifest, TrialResult, read_record
from fedpcs.trial.run_store import RunStore
from fedpcs.trial.store import TrialStore

_MOST_SECONDS = 1e10
_MOST_REASON = 2000
# What a cell's process ends with if another command is at that cell.
IN_USE = 75


Done = TrialData  # until nobody calls it so


@dataclass(frozen=True)
class CellStore:
    """A folder of cells."""

    folder: Path

    @property
    def games(self) -> Path:
        """The games that were solved for them."""
        return self.folder / "games"

    def run_of(self, cell: Cell) -> RunStore:
        """Return the run a cell is kept as."""
        named = self.folder / "cells" / cell.folder_name
        return RunStore(named if named.exists() else self._named_otherwise(cell) or named)

    def _named_otherwise(self, cell: Cell) -> Path | None:
        """Return the folder of the cell if a version that made other keys has finished it: found by its manifest."""
        for result in sorted((self.folder / "cells").glob(f"{glob.escape(cell.place)}-*/result.json")):
            manifest = result.with_name("manifest.json")
            if manifest.is_file() and _key_in(manifest, manifest.stat().st_mtime_ns) == cell.key:
                return result.parent
        return None

    def trial_of(self, cell: Cell) -> TrialStore:
        """Return the one trial of that run."""
        return self.run_of(cell).trial(cell.sampler, cell.seed)

    def is_done(self, cell: Cell) -> bool:
        """Say whether a cell has its result."""
        return (self.run_of(cell).folder / "result.json").is_file()

    def failure_of(self, cell: Cell) -> str:
        """Return why a cell could not be run; empty if it was not tried or was done."""
        path = self._failed(cell)
        if self.is_done(cell) or not path.is_file():
            return ""
        try:
            return printable(read_text(path).strip(), _MOST_REASON)
        except (OSError, ValueError) as error:
            return f"why could not be read: {printable(error)}"

    def fail(self, cell: Cell, reason: str) -> None:
        """Write down why a cell could not be run. It is tried again the next time."""
        path = self._failed(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, f"{reason}\n")

    def forget_failure(self, cell: Cell) -> None:
        """Take back what was written down, before a cell is tried again."""
        self._failed(cell).unlink(missing_ok=True)

    def _failed(self, cell: Cell) -> Path:
        folder = self.run_of(cell).folder
        return folder.with_name(f"{folder.name}.failed")

    def num_rounds_done(self, cell: Cell) -> int:
        """Return how many rounds of a cell are in its log."""
        try:
            return sum(line.endswith(b"\n") for line in lines_of(self.trial_of(cell).log))
        except OSError:
            return 0

    def read(self, cell: Cell) -> TrialData:
        """Read a finished cell.

        Raises:
            CorruptFile: It is not whole, or not the cell its folder's name says.
        """
        run, trial = self.run_of(cell), self.trial_of(cell)
        remedy = f"Delete the folder {run.folder}, and the cell is run again."
        manifest = read_record(Manifest, run.folder / "manifest.json", remedy)
        if kept_key(manifest.config) not in (cell.key, None):  # its folder's name has the key too
            raise CorruptFile(f"{run.folder}: is not the cell {cell.words!r}. {remedy}")
        return read_trial(cell, trial, manifest, _seconds(run.folder / "seconds.json", remedy), remedy)

    def read_all(self, cells: Sequence[Cell]) -> tuple[list[TrialData], dict[str, str]]:
        """Read those of some cells that are done; return them, and why others that should be cannot be read, by key."""
        done: list[TrialData] = []
        damaged: dict[str, str] = {}
        for cell in filter(self.is_done, cells):
            try:
                done.append(self.read(cell))
            except CorruptFile as error:
                damaged[cell.key] = str(error)
        return done, damaged


@functools.lru_cache(maxsize=4096)
def _key_in(manifest: Path, written: int) -> str | None:
    """Return the key of the cell a manifest is of, as it was written at a time; None if it cannot be read."""
    try:
        return kept_key(read_object(manifest, "config")["config"])
    except CorruptFile:
        return None


def read_trial(
    cell: Cell, trial: TrialStore, manifest: Manifest, seconds: float | None, remedy: str = NEW_RUN
) -> TrialData:
    """Read one trial, finished or not.

    Raises:
        CorruptFile: A file is damaged, or does not agree with the others.
    """
    path, num_clients = trial.folder / "result.json", cell.config.data.num_clients
    result = read_record(TrialResult, path, remedy) if path.exists() else None
    rounds = tuple(trial.rounds(remedy))
    for line in rounds:
        if max((*line.cohort, *line.heard, *line.left), default=0) >= num_clients:
            where = f"{trial.log}: line {line.round + 1}"
            raise CorruptFile(f"{where} names a client that is none of the {num_clients:,}. {remedy}")
    if result is not None:
        _check_result(cell, result, len(rounds), path, remedy)
    return TrialData(cell, result, rounds, manifest, seconds, trial.folder)


def _check_result(cell: Cell, result: TrialResult, num_rounds: int, path: Path, remedy: str) -> None:
    """Check that a result is of its trial, and agrees with the log and the number of clients."""
    num_clients = cell.config.data.num_clients
    if (result.sampler, result.seed) != (cell.sampler, cell.seed):
        raise CorruptFile(f"{path}: is not of {cell.words!r}. {remedy}")
    if num_rounds < result.rounds:
        raise CorruptFile(f"{path.parent}: has {num_rounds} of {result.rounds} rounds in its log. {remedy}")
    for name in ("times_designed", "times_drawn", "label_counts"):
        if (listed := getattr(result, name)) is not None and len(listed) != num_clients:
            raise CorruptFile(f"{path}: {name} must have an entry for each of {num_clients:,} clients. {remedy}")
    if len({len(row) for row in result.label_counts or ()}) > 1:
        raise CorruptFile(f"{path}: label_counts must be a table. {remedy}")


def _seconds(path: Path, remedy: str) -> float | None:
    found = read_json(path, remedy) if path.is_file() else None
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0.0 <= found <= _MOST_SECONDS:
        raise CorruptFile(f"{path}: must be a number in [0, {_MOST_SECONDS:g}], got {str(found)[:40]!r}. {remedy}")
    return float(found)
