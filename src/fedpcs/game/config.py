"""A game from a TOML file. One frozen tree; every error names the key, the value, what is allowed and what to do.

Types are checked here, ranges where the value is used (`fedpcs.game`), so that a file and a Python call are
refused with the same words.
"""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from fedpcs import _validate
from fedpcs._files import MOST_TABLE, open_regular
from fedpcs._keys import first_problem
from fedpcs._toml import read_toml
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

if TYPE_CHECKING:  # the solver brings Numba, and a misspelt key should not wait for it
    from fedpcs.game.population import Population
    from fedpcs.game.rules import Game

Number = float | int
_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True)
_MOST_ROW = 10_000  # characters
_COLUMNS = ("privacy_aversion", "initial_budget", "num_samples", "weight")


class PopulationConfig(BaseModel):
    """Who plays: drawn from a seed, listed, read from a CSV file, or the uniform density in bins."""

    model_config = _STRICT
    seed: int | None = None
    privacy_aversion: list[Number] | None = None
    initial_budget: list[Number] | None = None
    num_samples: list[Number] | None = None
    weight: list[Number] | None = None
    file: str | None = None
    bins: list[int] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> PopulationConfig:
        sources = {
            "seed": self.seed is not None,
            "lists": self.privacy_aversion is not None or self.initial_budget is not None,
            "file": self.file is not None,
            "bins": self.bins is not None,
        }
        given = [name for name, is_given in sources.items() if is_given]
        if len(given) > 1:
            raise ValueError(f"population takes one source, got {' and '.join(given)}; keep one")
        if (self.privacy_aversion is None) != (self.initial_budget is None):
            raise ValueError("population needs both privacy_aversion and initial_budget, got one of them")
        if given != ["lists"] and (self.num_samples is not None or self.weight is not None):
            raise ValueError("population: num_samples and weight go with the lists privacy_aversion and initial_budget")
        if self.bins is not None and len(self.bins) != 2:
            raise ValueError(f"population.bins must be two whole numbers (aversion, budget), got {self.bins}")
        return self


class GameConfig(BaseModel):
    """Everything `fedpcs solve` needs; an empty file is the default game."""

    model_config = _STRICT
    num_clients: int | None = None
    last_round: int = 30
    cohort_size: int | None = None
    sampling_ratio: Number | None = None
    budget_bounds: list[Number] = [0.01, 12.0]
    accuracy_priority: Number = 0.5
    accuracy_scale: Number = 10_000.0
    reward: Number | list[Number] | Literal["commitment", "per-round"] = "commitment"
    reward_max: Number = 100.0
    response: Literal["exact", "costate", "paper", "paper-backward"] = "exact"
    selection: Literal["budget-aware", "budget-blind"] = "budget-aware"
    tolerance: Number = 1e-3
    budget_cap: Number | list[Number] | None = None
    population: PopulationConfig = PopulationConfig(seed=0)

    @model_validator(mode="after")
    def _one_cohort(self) -> GameConfig:
        if self.cohort_size is not None and self.sampling_ratio is not None:
            raise ValueError("the game takes cohort_size or sampling_ratio, got both; keep one")
        if len(self.budget_bounds) != 2:
            raise ValueError(f"budget_bounds must be two numbers [low, high], got {self.budget_bounds}")
        return self


def load_game_config(path: Path | None) -> GameConfig:
    """Read a game's TOML file; without one, the default game.

    Raises:
        InvalidInput: The file is missing, is not TOML, or has an unknown key or a value of the wrong type.
    """
    if path is None:
        return GameConfig()
    try:
        values = read_toml(path)
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "is a folder" if isinstance(error, IsADirectoryError) else "no such file"
        raise InvalidInput(f"{path}: {what}. Give the path of a game's TOML file, or none for the default.") from None
    try:
        return GameConfig.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"{path}: {first_problem(error, GameConfig)}") from None


def build_game(config: GameConfig, folder: Path | None = None) -> Game:
    """Return the game a configuration describes; `folder` is where a relative population file is looked for."""
    from fedpcs.game.population import check_bounds
    from fedpcs.game.rules import cohort_from_ratio, make_game

    bounds = (float(config.budget_bounds[0]), float(config.budget_bounds[1]))
    crowd = _population(config, check_bounds(bounds), folder or Path())
    cohort = config.cohort_size
    if cohort is None:
        ratio = 0.2 if config.sampling_ratio is None else config.sampling_ratio
        cohort = cohort_from_ratio(ratio, crowd.num_clients)
    return make_game(
        crowd,
        last_round=config.last_round,
        cohort_size=cohort,
        budget_bounds=bounds,
        accuracy_priority=config.accuracy_priority,
        accuracy_scale=config.accuracy_scale,
        reward_max=config.reward_max,
        selection=config.selection,
    )


def cohort_path(cohort_size: FloatArray, game: Game) -> FloatArray:
    """Return a cohort size per round as a file states it, checked against the game."""
    return _validate.vector("cohort_size", cohort_size, length=game.last_round + 1, low=1.0, high=game.num_clients)


def _population(config: GameConfig, bounds: tuple[float, float], folder: Path) -> Population:
    from fedpcs.game import population

    who = config.population
    if who.file is not None:
        return _listed(config, _read_csv(folder / who.file))
    if who.privacy_aversion is not None:
        given = {name: getattr(who, name) for name in _COLUMNS if getattr(who, name) is not None}
        return _listed(config, given)
    clients = 100 if config.num_clients is None else config.num_clients
    if who.bins is not None:
        return population.uniform_density(clients, bounds, (who.bins[0], who.bins[1]))
    return population.uniform(clients, 0 if who.seed is None else who.seed, bounds)


def _listed(config: GameConfig, columns: dict[str, ArrayLike]) -> Population:
    from fedpcs.game import population

    size = int(np.size(columns["privacy_aversion"]))
    if "weight" in columns:
        if config.num_clients is None:
            raise InvalidInput("num_clients must be given with weights: they say how common a type is, not how many.")
        return population.histogram(**columns, num_clients=config.num_clients)
    if config.num_clients is not None and config.num_clients != size:
        raise InvalidInput(
            f"num_clients must equal the {size} clients listed in [population], got {config.num_clients}. "
            "Leave it out, or add a weight per entry for a histogram."
        )
    return population.individuals(**columns)


def _read_csv(path: Path) -> dict[str, ArrayLike]:
    """Read a population file: a header with the columns' names, one client or type per row."""
    try:
        with open_regular(path, MOST_TABLE) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            return _columns(path, csv.reader(_lines(text)))
    except InvalidInput:
        raise
    except OSError as error:
        raise InvalidInput(f"population.file: {path} cannot be read: {error.strerror}.") from None
    except csv.Error as error:
        raise InvalidInput(f"population.file: {path} is not CSV: {error}. Save it as CSV.") from None
    except ValueError:  # undecodable bytes, or a null byte in the path
        raise InvalidInput(f"population.file: {str(path)!r} is not a UTF-8 text file. Save it as CSV.") from None


def _lines(text: TextIO) -> Iterator[str]:
    while line := text.readline(_MOST_ROW + 1):
        if len(line) > _MOST_ROW:
            raise csv.Error(f"a line is longer than {_MOST_ROW:,} characters")
        yield line


def _columns(path: Path, rows: Iterator[list[str]]) -> dict[str, ArrayLike]:
    """Check rows one by one and keep their numbers alone: a file of many is never held as text."""
    header = [name.strip() for name in next(rows, [])]
    required = {"privacy_aversion", "initial_budget"}
    if len(set(header)) < len(header) or not required <= set(header) <= set(_COLUMNS):
        raise InvalidInput(
            f"{path}: line 1 must name the columns privacy_aversion, initial_budget (and, if wanted, num_samples, "
            f"weight), got {','.join(header)!r}."
        )
    found = array("d")
    for line, row in enumerate(rows, start=2):
        if any(cell.strip() for cell in row):
            found.extend(_numbers(path, line, row, header))
    if not found:
        raise InvalidInput(f"{path}: no clients below the header. Add one row per client.")
    return dict(zip(header, np.array(found).reshape(-1, len(header)).T, strict=True))


def _numbers(path: Path, line: int, row: list[str], header: list[str]) -> list[float]:
    from fedpcs.game.population import AVERSION_BOUNDS, MOST_SAMPLES

    if len(row) != len(header):
        raise InvalidInput(f"{path}: line {line} must have {len(header)} values like the header, got {len(row)}.")
    numbers = []
    for name, cell in zip(header, row, strict=True):
        try:
            number = float(cell)
        except ValueError:
            number = float("nan")
        bounds = {"privacy_aversion": AVERSION_BOUNDS, "num_samples": (1.0, MOST_SAMPLES)}
        low, high = bounds.get(name, (0.0, math.inf))
        is_whole = name != "num_samples" or number.is_integer()
        if not (low <= number <= high and math.isfinite(number) and is_whole):
            kind = "a whole number" if name == "num_samples" else "a number"
            allowed = f"{kind} in [{low:g}, {high:g}]" if math.isfinite(high) else f"a number of at least {low:g}"
            raise InvalidInput(f"{path}: line {line}: {name} must be {allowed}, got {cell.strip()!r}.")
        numbers.append(number)
    return numbers
