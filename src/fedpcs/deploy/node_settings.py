"""What a client states itself, in a file on its own machine: who it is, its private numbers, and what it accepts.

The file is the law there. Nothing that comes from the server changes it, not even the run file, which Flower sends to
the node together with the app.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from fedpcs import _validate
from fedpcs.engines.flower.client_books import ClientBooks
from fedpcs.engines.flower.conditions import Conditions
from fedpcs.engines.flower.preferences import Preferences
from fedpcs.game.config import STRICT, Number
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_rho
from fedpcs.privacy.modes.mode import Trust
from fedpcs.privacy.modes.record import RECORD
from fedpcs.trial.config import ModeName, RunConfig


class Accepts(BaseModel):
    """What a client accepts of a run; one that announces anything else is refused."""

    model_config = STRICT
    budget_unit: Number = Field(ge=1e-6, le=1_000_000)
    budget_bounds: list[Number] = Field([0.01, 12.0], min_length=2, max_length=2)
    rounds: int = Field(100, ge=1, le=100_000)
    mode: ModeName = RECORD.name
    clip_norm: Number = Field(1.0, ge=1e-9, le=1_000_000_000)
    noise: Literal["fast", "secure", "exact"] = "secure"
    delta: Number = Field(1e-5, gt=0.0, lt=1.0)
    trust: Trust = "local"


class NodeSettings(BaseModel):
    """A client's settings. Relative paths start where the file is."""

    model_config = STRICT
    name: str = Field("", max_length=64)
    partition_id: int = Field(ge=0)
    num_partitions: int = Field(ge=1, le=10_000_000)
    privacy_aversion: Number = Field(ge=0.001, le=0.999)
    initial_budget: Number = Field(gt=0.0)
    state_dir: str = Field(min_length=1)
    data_dir: str | None = None
    limit_epsilon: Number = Field(10.0, gt=0.0, le=1_000_000)
    may_be_asked: bool = False
    accepts: Accepts

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> NodeSettings:
        if not self.partition_id < self.num_partitions:
            raise ValueError(f"partition_id must be in [0, {self.num_partitions - 1}], got {self.partition_id}")
        if not self.name.isprintable():
            raise ValueError(f"name must have printable characters alone, got {self.name!r}")
        low, high = self.accepted.budget_bounds
        _validate.number("initial_budget", self.initial_budget, low=low, high=high)
        return self

    @property
    def client(self) -> str:
        """What the server knows the client by."""
        return self.name or f"client-{self.partition_id}"

    @property
    def accepted(self) -> Conditions:
        """What it accepts of a run, to compare with what is announced."""
        low, high = (float(bound) for bound in self.accepts.budget_bounds)
        return Conditions(**{**self.accepts.model_dump(), "budget_bounds": (low, high)})

    @property
    def limit(self) -> Rho:
        """Most ρ it will ever spend, over all runs, by a conversion that holds for all kinds of noise."""
        return Rho.at_most(to_rho(float(self.limit_epsilon), float(self.accepts.delta), "tight"))

    @property
    def books(self) -> ClientBooks:
        """Its budgets and its ledger."""
        preferences = Preferences(float(self.privacy_aversion), float(self.initial_budget))
        return ClientBooks(Path(self.state_dir), preferences, self.accepted, self.limit)


def conditions_of(config: RunConfig) -> Conditions:
    """Return what a run does with its clients' privacy."""
    return Conditions(
        budget_unit=float(config.game.budget_unit),
        budget_bounds=config.game.bounds,
        rounds=config.rounds,
        mode=config.privacy.mode,
        clip_norm=float(config.privacy.clip_norm),
        noise=config.privacy.noise,
        delta=float(config.privacy.delta),
        trust=config.privacy.protection.trust,
    )
