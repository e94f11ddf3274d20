"""What is read of a run's files, and so what they must hold: checked where they are read, not where they are used.

Bounds are far beyond what any run writes. They keep sums and arrays that are made of the numbers within what floats and
memory can hold.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedpcs._keys import first_problem
from fedpcs.errors import CorruptFile

_SHAPE = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)
_Amount = Annotated[float, Field(ge=0.0, le=1e100)]
_Number = Annotated[float, Field(ge=-1e100, le=1e100)]
_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Count = Annotated[int, Field(ge=0, le=10**15)]
_Client = Annotated[int, Field(ge=0, lt=10_000_000)]


class _Spread(BaseModel):
    model_config = ConfigDict(**{**_SHAPE, "extra": "forbid"})  # tables have a column for each of its keys
    minimum: _Amount
    median: _Amount
    maximum: _Amount


class _Spent(BaseModel):
    model_config = _SHAPE
    rho: _Spread
    epsilon: _Spread
    num_clients: _Count


class _Game(BaseModel):
    model_config = _SHAPE
    exploitability: _Number | None
    standing: Literal["converged", "not-played"]
    behaviour: Literal["rational", "static", "selfish", "raised"]
    reward: list[_Amount]
    mean_budget: list[_Amount]


class ResultShape(BaseModel):
    """A trial's `result.json`."""

    model_config = _SHAPE
    sampler: str
    seed: int
    accuracy: _Share
    loss: _Number | None
    rounds: int = Field(ge=0, le=100_000)
    ended_by: str
    spent: _Spent
    delta: _Share
    paid: _Amount
    game: _Game
    num_test: _Count = Field(ge=1)
    num_parameters: _Count = Field(ge=1)
    num_left: _Count
    times_designed: list[_Amount] | None = None
    times_drawn: list[_Amount] | None = None
    label_counts: list[list[_Count]] | None = None
    disclosure: str


class RunResultShape(BaseModel):
    """A run's `result.json`."""

    model_config = _SHAPE
    name: str
    trials: list[ResultShape]
    is_exhausted: bool


class _Draw(BaseModel):
    model_config = _SHAPE
    largest_weight: _Amount
    inclusion_score: _Amount | None
    evenness: _Amount


class _Attempt(BaseModel):
    model_config = _SHAPE
    attempt: _Count
    cohort: list[_Client]
    heard: list[_Client]
    failures: dict[str, _Count]
    refusals: dict[str, _Count]


class RoundShape(_Attempt):
    """A line of a trial's log."""

    round: int = Field(ge=0, le=100_000)
    rule: str
    accuracy: _Share | None
    loss: _Number | None
    update_norm: _Spread
    noise_norm: _Spread
    draw: _Draw
    num_capped: _Count | None = None
    realised_mean_budget: _Amount
    cohort_budget: _Amount
    spent: _Spent
    exploitability: _Number | None = None  # of rounds before which the game was solved anew
    left: list[_Client]
    given_up: list[_Attempt] = []


class _Data(BaseModel):
    model_config = _SHAPE
    checksum: str


class _Named(BaseModel):
    model_config = _SHAPE
    name: str


class _Forced(BaseModel):
    model_config = _SHAPE
    at: str
    differences: list[str]


class ManifestShape(BaseModel):
    """A run's `manifest.json`."""

    model_config = _SHAPE
    data_dir: str | None = None
    forced: list[_Forced] = []
    notes: list[str] = []


class CellManifestShape(ManifestShape):
    """What pages of sweeps read of it beyond that."""

    code: str
    data: _Data
    config: _Named


def check_shape(value: Any, shape: type[BaseModel], where: str, remedy: str) -> None:
    """Check that a value has what is read of it.

    Raises:
        CorruptFile: Something is missing, or of another type; says what, and the remedy.
    """
    if not isinstance(value, dict):
        raise CorruptFile(f"{where}: holds no object. {remedy}")
    try:
        shape.model_validate(value)
    except ValidationError as error:
        raise CorruptFile(f"{where}: {first_problem(error, shape)} {remedy}") from None
