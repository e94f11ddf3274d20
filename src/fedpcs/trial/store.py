"""What was begun on disk; a trial of a run: log, ledger, checkpoints, model, and its result written last."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from fedpcs._chain import END_LENGTH, START, hash_at_end, sealed_line, unsealed
from fedpcs._files import (
    NEW_RUN,
    PRIVATE_FOLDER,
    disk_errors,
    lines_of,
    open_private,
    write_json,
    write_whole,
)
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.trial.config import RunConfig, as_toml
from fedpcs.trial.records import Manifest, RoundRecord, TrialResult, checked, read_record


@dataclass(frozen=True)
class BegunFolder:
    """The folder of a run or a trial: what was asked for, and what it was begun with.

    Attributes:
        folder: Where it is.
    """

    folder: Path

    @property
    def has_begun(self) -> bool:
        """Whether something was begun here."""
        return (self.folder / "manifest.json").exists()

    @property
    def manifest(self) -> Manifest:
        """What it was begun with."""
        return read_record(Manifest, self.folder / "manifest.json")

    def write_manifest(self, manifest: Manifest) -> None:
        """Write down what it was begun with."""
        write_json(self.folder / "manifest.json", manifest.model_dump())

    def add_note(self, note: str) -> None:
        """Write something down that whoever reads the results must know."""
        if note not in (before := self.manifest).notes:
            self.write_manifest(before.model_copy(update={"notes": [*before.notes, note]}))

    def begin(self, config: RunConfig, manifest: Manifest) -> None:
        """Write down what it is: from here on it has begun.

        Raises:
            InvalidInput: Something is there already.
        """
        self.check_free()
        self.create()
        write_whole(self.folder / "config.toml", as_toml(config).encode())
        self.write_manifest(manifest)

    def check_free(self) -> None:
        """Refuse a folder that holds something already.

        Raises:
            InvalidInput: It does.
        """
        # A run killed before its manifest was written has done nothing: it is begun again.
        unfinished = {"lock", "config.toml", "config.toml.partial", "manifest.json.partial"}
        if self.folder.is_dir() and any(item.name not in unfinished for item in self.folder.iterdir()):
            raise InvalidInput(
                f"{self.folder}: is not empty. Go on with a run by `fedpcs resume {self.folder}`, or give another "
                "--out."
            )

    def create(self) -> None:
        """Make the folder."""
        with disk_errors(self.folder):
            self.folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)


class TrialStore(BegunFolder):
    """The folder of one sampler and seed."""

    @property
    def log(self) -> Path:
        """`rounds.jsonl`."""
        return self.folder / "rounds.jsonl"

    @property
    def ledger(self) -> Path:
        """`ledger.sqlite`."""
        return self.folder / "ledger.sqlite"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.folder / "checkpoints"

    @property
    def result(self) -> TrialResult | None:
        """What the trial came to; None while it is not done."""
        path = self.folder / "result.json"
        return read_record(TrialResult, path) if path.exists() else None

    @property
    def num_rounds_known(self) -> int:
        """How many rounds the result, or else the newest checkpoint, knows of."""
        if (result := self.result) is not None:
            return result.rounds
        return max((int(path.stem) for path in self.checkpoints.glob("[0-9]*.ckpt")), default=0)

    def append(self, record: RoundRecord) -> None:
        """Add a round's line with the hash of all lines up to it, and have it on the disk before returning.

        Raises:
            CorruptFile: The line before it carries no hash.
        """
        with disk_errors(self.log), open_private(self.log) as stream:
            start = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, start - END_LENGTH))
            try:
                before = hash_at_end(stream.read()) if start else START
            except ValueError as error:
                raise CorruptFile(f"{self.log}: its last line is damaged: {error}. {NEW_RUN}") from None
            stream.write(sealed_line(record.model_dump(exclude_unset=True), before))
            stream.flush()
            os.fsync(stream.fileno())

    def keep_rounds(self, num_rounds: int) -> None:
        """Cut the log back to its first rounds: those a checkpoint knows of.

        Raises:
            CorruptFile: The log has fewer, or one of them is not as it was written.
        """
        lines = self._lines()
        whole = _whole(lines)
        if len(whole) < num_rounds:
            raise CorruptFile(f"{self.log} has {len(whole)} rounds, the checkpoint {num_rounds}. {NEW_RUN}")
        self._records(whole[:num_rounds], NEW_RUN)
        if len(lines) > num_rounds:
            write_whole(self.log, b"".join(whole[:num_rounds]))

    def rounds(self, remedy: str = NEW_RUN) -> list[RoundRecord]:
        """Read the log. A last line without its end, as a crash leaves it, is not in it.

        Raises:
            CorruptFile: A line is not as it was written; says which, and the remedy.
        """
        return self._records(_whole(self._lines()), remedy)

    def _lines(self) -> list[bytes]:
        try:
            return list(lines_of(self.log))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CorruptFile(f"{self.log}: cannot be read: {error.strerror}. {NEW_RUN}") from None

    def _records(self, lines: list[bytes], remedy: str) -> list[RoundRecord]:
        found: list[RoundRecord] = []
        before = START
        for number, line in enumerate(lines, 1):
            try:
                record, before = unsealed(line, before)
            except (ValueError, RecursionError) as error:
                raise CorruptFile(f"{self.log}: line {number} is damaged: {error}. {remedy}") from None
            line_record = checked(RoundRecord, record, f"{self.log}: line {number}", remedy)
            if line_record.round != number - 1:
                raise CorruptFile(f"{self.log}: line {number} is of round {line_record.round}. {remedy}")
            found.append(line_record)
        return found

    def save_model(self, state_dict: dict[str, Tensor]) -> None:
        """Write the model as `model.pt`, for `torch.load(..., weights_only=True)`."""
        buffer = io.BytesIO()
        torch.save(state_dict, buffer)
        write_whole(self.folder / "model.pt", buffer.getvalue())

    def finish(self, result: TrialResult) -> None:
        """Write the result: the trial is done."""
        write_json(self.folder / "result.json", result.model_dump())

    def write_seconds(self, seconds: float) -> None:
        """Write down how long a trial took that was never stopped; sweeps plan by it."""
        write_json(self.folder / "seconds.json", round(seconds, 3))


def _whole(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if line.endswith(b"\n")]
