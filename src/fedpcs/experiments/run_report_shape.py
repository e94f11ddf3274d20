"""What a run's report reads of an arm beyond what pages of sweeps do, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fedpcs.errors import CorruptFile
from fedpcs.experiments.cell_shape import ResultShape, RoundShape, check_shape

_REMEDY = "Put back a copy of the file, or start a new run."


class _Attempt(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)
    failures: dict[str, int]
    refusals: dict[str, int]


class _Draw(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)
    largest_weight: float = Field(ge=0.0)


class _Result(ResultShape):
    ended_by: str


class _Round(RoundShape):
    attempt: int = Field(ge=0)
    cohort: list[int]
    heard: list[int]
    draw: _Draw
    num_capped: int | None = Field(None, ge=0)
    failures: dict[str, int]
    refusals: dict[str, int]
    left: list[int]
    given_up: list[_Attempt] = Field(default_factory=list)


def check_arm(folder: Path, rounds: Sequence[Any], result: Any) -> None:
    """Check that an arm's log and its result, where it has one, hold what is shown, and agree on how far it came.

    Raises:
        CorruptFile: They do not; says which file, what is wrong, and the remedy.
    """
    log = folder / "rounds.jsonl"
    for number, line in enumerate(rounds, 1):
        check_shape(line, _Round, f"{log}: line {number}", _REMEDY)
    if result is None:
        return
    check_shape(result, _Result, str(folder / "result.json"), _REMEDY)
    if len(rounds) < result["rounds"]:
        raise CorruptFile(f"{log}: has {len(rounds)} of the {result['rounds']} rounds of result.json. {_REMEDY}")
