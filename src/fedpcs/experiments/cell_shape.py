"""What pages read of a finished cell, and so what its files must hold: checked where they are read, not where used."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedpcs.errors import CorruptFile
from fedpcs.experiments.dotted_keys import first_problem

_SHAPE = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)


class _Spread(BaseModel):
    model_config = _SHAPE
    minimum: float = Field(ge=0.0)
    median: float = Field(ge=0.0)
    maximum: float = Field(ge=0.0)


class _Spent(BaseModel):
    model_config = _SHAPE
    rho: _Spread
    epsilon: _Spread
    num_clients: int = Field(ge=0)


class _Game(BaseModel):
    model_config = _SHAPE
    exploitability: float | None


class ResultShape(BaseModel):
    """An arm's `result.json`."""

    model_config = _SHAPE
    sampler: str
    seed: int
    accuracy: float = Field(ge=0.0, le=1.0)
    loss: float | None
    rounds: int = Field(ge=0)
    spent: _Spent
    delta: float
    paid: float = Field(ge=0.0)
    game: _Game
    num_test: int = Field(ge=1)
    num_parameters: int = Field(ge=1)
    num_left: int = Field(ge=0)
    disclosure: str


class RoundShape(BaseModel):
    """A line of an arm's log."""

    model_config = _SHAPE
    round: int = Field(ge=0)
    rule: str
    accuracy: float | None = Field(ge=0.0, le=1.0)
    loss: float | None
    update_norm: _Spread
    noise_norm: _Spread


class _Data(BaseModel):
    model_config = _SHAPE
    checksum: str


class _Named(BaseModel):
    model_config = _SHAPE
    name: str


class ManifestShape(BaseModel):
    """A run's `manifest.json`."""

    model_config = _SHAPE
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
