"""The trials of a study on disk. Several studies may share a store: equal trials are run once.

STORE/games/…   STORE/trials/DATA-SPLIT-RATIO-SAMPLER-seedN-KEY/…
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fedpcs._files import NEW_RUN, lines_of, read_json, read_text, write_text
from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import TrialData
from fedpcs.trial.config import RunConfig
from fedpcs.trial.identity import trial_key
from fedpcs.trial.records import Manifest, TrialResult, read_record
from fedpcs.trial.store import TrialStore

_MOST_SECONDS = 1e10
_MOST_REASON = 2000
# What a cell's process ends with if another command is at that cell.
IN_USE = 75


@dataclass(frozen=True)
class CellStore:
    """A folder of cells."""

    folder: Path

    @property
    def games(self) -> Path:
        """The games that were solved for them."""
        return self.folder / "games"

    def trial_of(self, cell: Cell) -> TrialStore:
        """Return the folder of a trial."""
        return TrialStore(self.folder / "trials" / cell.folder_name)

    def is_done(self, cell: Cell) -> bool:
        """Say whether a cell has its result."""
        return (self.trial_of(cell).folder / "result.json").is_file()

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
        folder = self.trial_of(cell).folder
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
        trial = self.trial_of(cell)
        remedy = f"Delete the folder {trial.folder}, and the cell is run again."
        return read_trial(cell, trial, remedy)

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


def read_trial(cell: Cell, trial: TrialStore, remedy: str = NEW_RUN) -> TrialData:
    """Read one trial, finished or not.

    Raises:
        CorruptFile: A file is damaged, does not agree with the others, or is of another trial.
    """
    manifest = read_record(Manifest, trial.folder / "manifest.json", remedy)
    if _key_of(manifest) != cell.key:  # its folder's name has the key too
        raise CorruptFile(f"{trial.folder}: is not the cell {cell.label!r}. {remedy}")
    path, num_clients = trial.folder / "result.json", cell.config.data.num_clients
    result = read_record(TrialResult, path, remedy) if path.exists() else None
    rounds = tuple(trial.rounds(remedy))
    for line in rounds:
        if max((*line.cohort, *line.heard, *line.left), default=0) >= num_clients:
            where = f"{trial.log}: line {line.round + 1}"
            raise CorruptFile(f"{where} names a client that is none of the {num_clients:,}. {remedy}")
    if result is not None:
        _check_result(cell, result, len(rounds), path, remedy)
    seconds = _seconds(trial.folder / "seconds.json", remedy)
    return TrialData(cell, result, rounds, manifest, seconds, trial.folder)


def _key_of(manifest: Manifest) -> str | None:
    try:
        return trial_key(RunConfig.model_validate_json(json.dumps(manifest.config)))
    except (ValidationError, InvalidInput):
        return None


def _check_result(cell: Cell, result: TrialResult, num_rounds: int, path: Path, remedy: str) -> None:
    """Check that a result is of its trial, and agrees with the log and the number of clients."""
    num_clients = cell.config.data.num_clients
    if (result.sampler, result.seed) != (cell.sampler, cell.seed):
        raise CorruptFile(f"{path}: is not of {cell.label!r}. {remedy}")
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
