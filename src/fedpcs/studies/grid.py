"""A sweep from a TOML file or flags: one run varied over a grid, samplers and seeds, as a list of cells.

base = "fashion-mnist"                       # a preset, or the path of a run file
samplers = ["fedpcs", "random"]
seeds = [0, 1, 2]

[set]                                        # for all cells
rounds = 10

[grid]                                       # every combination
"data.partition" = ["iid", "dirichlet"]
"sampling.sampling_ratio" = [0.2, 0.5]

[per_sampler.fedpcs]                         # what was tuned for one sampler
"privacy.clip_norm" = 4.0

[[variants]]                                 # instead of one unnamed variant
label = "static clients"
set = {"game.behaviour" = "static"}

Keys may stand in tables too, such as `[set.training]`: what such a table does not name stays as the base has it.
What comes later wins: the base, `set` and `grid`, `per_sampler`, the variant, flags of the command line.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from fedpcs._keys import checked, dotted_keys, set_key
from fedpcs._validate import did_you_mean
from fedpcs.errors import InvalidInput
from fedpcs.sampling import SAMPLERS, make_sampler
from fedpcs.sampling.contract import is_unbiased
from fedpcs.trial.config import RunConfig, make_run_config, read_tables
from fedpcs.trial.identity import trial_folder, trial_key

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_MOST_CELLS = 100_000
_CHOSEN_ELSEWHERE = ("name", "seeds", "sampling.samplers")
_SHORT = {
    "sampling.sampling_ratio": "τ",
    "data.partition": "split",
    "sampling.rule": "rule",
    "game.behaviour": "clients",
}
_Dotted = BeforeValidator(lambda value: dotted_keys(value) if isinstance(value, Mapping) else value)
Keys = Annotated[dict[str, Any], _Dotted]


class Variant(BaseModel):
    """Some keys changed together, under a name."""

    model_config = _STRICT
    label: str = Field(min_length=1, max_length=60)
    set: Keys = {}
    samplers: list[str] | None = Field(None, min_length=1)


class SweepConfig(BaseModel):
    """Everything `fedpcs compare` needs."""

    model_config = _STRICT
    name: str = Field("sweep", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    base: str = Field("default", min_length=1)
    samplers: list[str] = Field(["fedpcs", "random"], min_length=1)
    seeds: list[int] = Field([0, 1, 2], min_length=1)
    set: Keys = {}
    grid: Annotated[dict[str, list[Any]], _Dotted] = {}
    per_sampler: dict[str, Keys] = {}
    variants: list[Variant] = []

    @property
    def all_samplers(self) -> list[str]:
        """Whoever takes part in any variant."""
        more = [name for one in self.variants for name in one.samplers or []]
        return list(dict.fromkeys([*self.samplers, *more]))

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> SweepConfig:
        labels = [one.label for one in self.variants]
        distinct: dict[str, Sequence[Any]] = {
            "seeds": self.seeds,
            "samplers": self.samplers,
            "labels of variants": labels,
        }
        for name, values in distinct.items():
            if len(set_of(values)) < len(values):
                raise ValueError(f"{name} must be distinct, got {values}")
        tables = {"grid": _keys_of_grid(self.grid), "set": self.set}
        tables |= {f"per_sampler.{name}": changed for name, changed in self.per_sampler.items()}
        tables |= {f"variants.{one.label}": one.set for one in self.variants}
        for table, key in ((table, key) for table, changed in tables.items() for key in changed):
            if key in _CHOSEN_ELSEWHERE:
                raise ValueError(f"{table}.{key}: give name, samplers and seeds at the top, or by flags")
            if table != "grid" and key in tables["grid"]:
                raise ValueError(f"{table}.{key} is on the grid too: keep one of them")
        return self


def _keys_of_grid(grid: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """Return all keys a grid changes, each with that of the grid it is changed by: values may be tables."""
    found: dict[str, str] = {}
    for key, values in grid.items():
        if not values:
            raise ValueError(f"grid.{key} must list at least one value, got []")
        for changed in {one: key for value in values for one in dotted_keys({key: value})}:
            if changed in found:
                raise ValueError(f"grid.{changed} is changed by grid.{found[changed]} too: keep one of them")
            found[changed] = key
    return found


@dataclass(frozen=True)
class Cell:
    """One sampler with one seed at one point of a sweep.

    Attributes:
        config: The run it is, with this sampler and this seed alone.
        variant: The label of its variant; empty without variants.
        point: Its place on the grid, by key.
    """

    config: RunConfig
    variant: str
    point: Mapping[str, Any]

    @property
    def sampler(self) -> str:
        """Who draws."""
        return self.config.sampling.samplers[0]

    @property
    def seed(self) -> int:
        """Of all draws."""
        return self.config.seeds[0]

    @property
    def key(self) -> str:
        """Digest of all its numbers depend on, but data and code: equal cells of different sweeps are one."""
        return trial_key(self.config)

    @property
    def folder_name(self) -> str:
        """Where it is kept among other cells: readable, and unique by its key."""
        return trial_folder(self.config)

    @property
    def label(self) -> str:
        """What tells it from its neighbours."""
        return ", ".join([self.sampler, *place_labels(self.variant, self.point), f"seed {self.seed}"])


def place_labels(variant: str, point: Mapping[str, Any]) -> list[str]:
    """Return what tells a place of a sweep from others: its variant if it has one, then each key with its value."""
    place = [f"{_SHORT.get(key, key.rpartition('.')[2])} {_plain(value)}" for key, value in point.items()]
    return [*filter(None, [variant]), *place]


def hajek_or_own(sampler: str) -> str:
    """Return the rule that undoes a sampler's draw: Hájek's, or its own where it has no inclusion probabilities.

    Example:
        >>> hajek_or_own("fedpcs"), hajek_or_own("fed-cbs")
        ('hajek', 'own')
    """
    return "hajek" if is_unbiased(make_sampler(sampler)) else "own"


def set_of(values: Sequence[Any]) -> set[str]:
    """Return the distinct values, whatever their types."""
    return {json.dumps(value, sort_keys=True) for value in values}


def make_sweep_config(values: Mapping[str, Any], where: str = "sweep") -> SweepConfig:
    """Return a checked sweep from nested mappings."""
    return checked(SweepConfig, dict(values), where)


def make_cells(sweep: SweepConfig, base: dict[str, Any] | None = None, where: str | None = None) -> list[Cell]:
    """Return a sweep's cells, seeds innermost.

    Args:
        sweep: What is compared.
        base: The tables of the run that is varied; None: read from where `sweep.base` says, and checked by themselves.
        where: What errors name, such as the sweep's file; None: the sweep.

    Raises:
        InvalidInput: A key or value does not exist in a run, or two cells are the same.

    Example:
        >>> sweep = make_sweep_config({"seeds": [0, 1], "grid": {"rounds": [3, 4]}})
        >>> [cell.label for cell in make_cells(sweep)][:2]
        ['fedpcs, rounds 3, seed 0', 'fedpcs, rounds 3, seed 1']
    """
    where = f"sweep {sweep.name}" if where is None else where
    _check_size(sweep, where)
    if strangers := [name for name in sweep.per_sampler if name not in sweep.all_samplers]:
        meant = did_you_mean(strangers[0], sweep.all_samplers)
        raise InvalidInput(
            f"{where}: per_sampler names {strangers[0]!r}, which is not among samplers. Add it to them, or take it "
            f"out. {meant}".strip()
        )
    if base is None:
        base = read_tables(sweep.base)
        _check_base(base, sweep.base)
    found: dict[str, Cell] = {}
    for cell in _cells(sweep, base, where):
        if (other := found.setdefault(cell.key, cell)) is not cell:
            raise InvalidInput(
                f"{where}: the cells {other.label!r} and {cell.label!r} are the same run. Take out one of them: a "
                "value that is there twice, or a key that changes no numbers, such as engine.num_workers."
            )
    return list(found.values())


def _check_size(sweep: SweepConfig, where: str) -> None:
    rows = sum(len(one.samplers or sweep.samplers) for one in sweep.variants) or len(sweep.samplers)
    num_cells = rows * len(sweep.seeds) * math.prod(len(values) for values in sweep.grid.values())
    if num_cells > _MOST_CELLS:
        raise InvalidInput(f"{where}: {num_cells:,} cells are too many; at most {_MOST_CELLS:,}. Vary less at a time.")


def _check_base(tables: dict[str, Any], where: str) -> None:
    """Refuse a base that is no run by itself, in the name of its own file.

    It may have settings of samplers that only the sweep names: they are checked with the cells.
    """
    sampling = tables.get("sampling")
    if isinstance(sampling, dict):
        tables = {**tables, "sampling": {key: value for key, value in sampling.items() if key != "settings"}}
    make_run_config(tables, where)


def _cells(sweep: SweepConfig, tables: dict[str, Any], where: str) -> Iterator[Cell]:
    points = [dict(zip(sweep.grid, values, strict=True)) for values in itertools.product(*sweep.grid.values())]
    for variant, point in itertools.product(sweep.variants or [Variant(label="-")], points):
        for sampler in variant.samplers or sweep.samplers:
            changes = {**sweep.set, **dotted_keys(point), **sweep.per_sampler.get(sampler, {}), **variant.set}
            values = _varied(tables, changes, sampler, where)
            for seed in sweep.seeds:
                config = make_run_config({**values, "seeds": [seed], "name": sweep.name}, where)
                yield Cell(config, variant.label if sweep.variants else "", point)


def _varied(tables: dict[str, Any], changes: Mapping[str, Any], sampler: str, where: str) -> dict[str, Any]:
    """Return the tables of a run of one sampler, in this process, with some keys changed."""
    values = copy.deepcopy(tables)
    for key, value in changes.items():
        try:
            set_key(values, key, value)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
    sampling, engine = (_table(values, name, where) for name in ("sampling", "engine"))
    settings = _table(sampling, "settings", where)
    if unknown := [one for one in settings if one not in (sampler, *SAMPLERS) and ":" not in one]:
        raise InvalidInput(
            f"{where}: sampling.settings names {unknown[0]!r}, which is no sampler. Samplers are "
            f"{', '.join(SAMPLERS)}, and your own as package.module:name. {did_you_mean(unknown[0], SAMPLERS)}".strip()
        )
    mine = {name: one for name, one in settings.items() if name == sampler}
    values["sampling"] = {**sampling, "samplers": [sampler], "settings": mine}
    values["engine"] = {**engine, "kind": "in-process"}
    return values


def _table(values: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise InvalidInput(f"{where}: {name} must be a table, got {found!r}.")
    return found


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
