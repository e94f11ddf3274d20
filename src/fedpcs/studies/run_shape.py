"""What a run's report reads of a trial, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedpcs.errors import CorruptFile
from fedpcs.trial.shapes import RoundShape, check_shape

_REMEDY = "Put back a copy of the file, or start a new run."


def check_trial(folder: Path, rounds: Sequence[Any], result: Any, num_clients: int) -> None:
    """Check that a trial's log and its result, where it has one, hold what is shown, and agree with each other.

    Raises:
        CorruptFile: They do not; says which file, what is wrong, and the remedy.
    """
    log = folder / "rounds.jsonl"
    for number, line in enumerate(rounds):
        where = f"{log}: line {number + 1}"
        check_shape(line, RoundShape, where, _REMEDY)
        if line["round"] != number:
            raise CorruptFile(f"{where} is of round {line['round']}. {_REMEDY}")
        if max((*line["cohort"], *line["heard"], *line["left"]), default=0) >= num_clients:
            raise CorruptFile(f"{where} names a client that is none of the {num_clients:,}. {_REMEDY}")
    if result is None:
        return
    path = folder / "result.json"
    if len(rounds) < result["rounds"]:
        raise CorruptFile(f"{log}: has {len(rounds)} of the {result['rounds']} rounds of result.json. {_REMEDY}")
    for name in ("times_designed", "times_drawn", "label_counts"):
        if (listed := result.get(name)) is not None and len(listed) != num_clients:
            raise CorruptFile(f"{path}: {name} must have an entry for each of {num_clients:,} clients. {_REMEDY}")
    if len({len(row) for row in result.get("label_counts") or ()}) > 1:
        raise CorruptFile(f"{path}: label_counts must be a table. {_REMEDY}")
