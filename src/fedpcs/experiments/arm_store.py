"""One arm of a run on disk: its log, its ledger, its checkpoints, its model, and its result written last."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fedpcs._files import NEW_RUN, disk_errors, lines_of, open_own, read_object, write_json, write_whole
from fedpcs.errors import CorruptFile
from fedpcs.experiments.cell_shape import ResultShape, check_shape


@dataclass(frozen=True)
class ArmStore:
    """The folder of one sampler and seed.

    Attributes:
        folder: Where it is.
    """

    folder: Path

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
    def result(self) -> dict[str, Any] | None:
        """What the arm came to; None while it is not done."""
        path = self.folder / "result.json"
        if not path.exists():
            return None
        found = read_object(path)
        check_shape(found, ResultShape, str(path), NEW_RUN)
        return found

    def create(self) -> None:
        """Make the folder."""
        with disk_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def append(self, record: dict[str, Any]) -> None:
        """Add a round's line, and have it on the disk before returning."""
        line = json.dumps(record, allow_nan=False) + "\n"
        with disk_errors(self.log), os.fdopen(open_own(self.log, os.O_WRONLY | os.O_APPEND), "ab") as stream:
            stream.write(line.encode())
            stream.flush()
            os.fsync(stream.fileno())

    def keep_rounds(self, num_rounds: int) -> None:
        """Cut the log back to its first rounds: those a checkpoint knows of.

        Raises:
            CorruptFile: The log has fewer.
        """
        lines = self._lines()
        whole = [line for line in lines if line.endswith(b"\n")]
        if len(whole) < num_rounds:
            raise CorruptFile(
                f"{self.log} has {len(whole)} rounds, the checkpoint {num_rounds}. Put back a copy, or start a new run."
            )
        for index, line in enumerate(whole[:num_rounds]):
            if _round_of(line) != index:
                raise CorruptFile(
                    f"{self.log}: line {index + 1} is not round {index}. Put back a copy, or start a new run."
                )
        if len(lines) > num_rounds:
            write_whole(self.log, b"".join(whole[:num_rounds]))

    def rounds(self) -> list[dict[str, Any]]:
        """Read the log."""
        try:
            return [json.loads(line) for line in self._lines() if line.endswith(b"\n")]
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"{self.log}: not a log of rounds: {error}. {NEW_RUN}") from None

    def _lines(self) -> list[bytes]:
        try:
            return list(lines_of(self.log))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise CorruptFile(f"{self.log}: cannot be read: {error.strerror}. {NEW_RUN}") from None

    def save_model(self, state_dict: dict[str, Tensor]) -> None:
        """Write the model as `model.pt`, for `torch.load(..., weights_only=True)`."""
        buffer = io.BytesIO()
        torch.save(state_dict, buffer)
        write_whole(self.folder / "model.pt", buffer.getvalue())

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result: the arm is done."""
        write_json(self.folder / "result.json", result)


def _round_of(line: bytes) -> int | None:
    """Return which round a line of a log is of; None if it is no such line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = found.get("round") if isinstance(found, dict) else None
    return number if isinstance(number, int) else None
