"""What a client states itself, in a file on its own machine: who it is, its private numbers, and what it accepts.

The file is the law there. Nothing that comes from the server changes it, not even the run file, which Flower sends to
the node together with the app. Nobody else on the machine may read it; so it is no part of a command line either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from fedpcs import _validate
from fedpcs._files import MOST_TEXT, open_regular
from fedpcs._keys import first_problem
from fedpcs._outside import printable
from fedpcs._toml import parse_toml
from fedpcs.engines.flower.client_books import ClientBooks, Preferences, refuse_open
from fedpcs.engines.flower.conditions import Conditions
from fedpcs.errors import InvalidInput
from fedpcs.game.config import STRICT, Number
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_rho
from fedpcs.privacy.modes.mode import Trust
from fedpcs.privacy.modes.record import RECORD
from fedpcs.trial.config import ModeName, RunConfig

VARIABLE = "FEDPCS_NODE_SETTINGS"


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


def settings_path(node_config: Mapping[str, Any], environment: Mapping[str, str]) -> Path:
    """Return where a node's settings are: named on its command line, or by FEDPCS_NODE_SETTINGS.

    Raises:
        InvalidInput: Neither names a file, or the command line holds settings of its own.
    """
    _refuse_told(node_config)
    told = node_config.get("settings", environment.get(VARIABLE, ""))
    if not (isinstance(told, str) and told):
        raise InvalidInput(
            "this node has no settings. Write them to a file that only you can read, and start the node with "
            f"--node-config 'settings=\"/path/node.toml\"', or set {VARIABLE}."
        )
    return Path(told).expanduser().absolute()


def _refuse_told(names: Iterable[str]) -> None:
    """Refuse settings on a command line, which every user of the machine can read there."""
    known = [*NodeSettings.model_fields, *Accepts.model_fields]
    for name in names:
        if (near := _validate.nearest(str(name).replace("-", "_"), known)) is not None and name != "settings":
            raise InvalidInput(
                f"--node-config names {name}, which everybody on this machine can read in `ps`. Put {near} into the "
                "node's settings file, and start the node with --node-config 'settings=\"/path/node.toml\"' alone."
            )


def read_settings(path: Path) -> NodeSettings:
    """Read a client's settings.

    Raises:
        InvalidInput: Other users of the machine can read them, or they are none.
    """
    text = _private_text(path)
    try:
        values = parse_toml(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
    try:
        found = NodeSettings.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"{path}: {first_problem(error, NodeSettings)}") from None
    return found.model_copy(update={name: _beside(path, getattr(found, name)) for name in ("state_dir", "data_dir")})


def _beside(path: Path, name: str | None) -> str | None:
    return None if name is None else str(path.parent / Path(name).expanduser())


def _private_text(path: Path) -> str:
    try:
        with open_regular(path, MOST_TEXT) as stream:
            refuse_open(path, os.fstat(stream.fileno()).st_mode)
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        words = f"{path}: cannot be read: {error.strerror}. Give the node's settings as a TOML file."
        raise InvalidInput(words) from None
    except ValueError as error:  # no text, or a name that no file can have
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: cannot be read: {printable(error)}.") from None


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
