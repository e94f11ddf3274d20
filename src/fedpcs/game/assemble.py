"""From a configuration to a game: who plays, for how long, how many are drawn, under which rules."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict

from fedpcs._files import MOST_TABLE, open_regular
from fedpcs._keys import checked
from fedpcs.errors import InvalidInput
from fedpcs.game import population
from fedpcs.game.config import Aversion, GameConfig, GameFile, InitialBudget, NumSamples, Weight
from fedpcs.game.population import Population
from fedpcs.game.rules import Game, Selection, cohort_from_ratio, make_game

_MOST_ROW = 10_000  # characters


def game_from(
    config: GameConfig,
    crowd: Population,
    *,
    last_round: int,
    selection: Selection,
    sampling_ratio: float | None = None,
    cohort_size: int | ArrayLike | None = None,
) -> Game:
    """Return the game of a crowd under a configuration's rules, with a ratio where no cohort size is given."""
    if cohort_size is None:
        cohort_size = cohort_from_ratio(0.2 if sampling_ratio is None else float(sampling_ratio), crowd.num_clients)
    return make_game(
        crowd,
        last_round=last_round,
        cohort_size=cohort_size,
        budget_bounds=config.bounds,
        accuracy_priority=float(config.accuracy_priority),
        accuracy_scale=float(config.accuracy_scale),
        reward_max=float(config.reward_max),
        selection=selection,
    )


def game_of_file(config: GameFile, folder: Path | None = None) -> Game:
    """Return the game a file describes; `folder` is where a relative population file is looked for."""
    return game_from(
        config,
        _population(config, folder or Path()),
        last_round=config.last_round,
        selection=config.selection,
        sampling_ratio=config.sampling_ratio,
        cohort_size=config.cohort_size,
    )


def _population(config: GameFile, folder: Path) -> Population:
    who = config.population
    if who.file is not None:
        return _listed(config, _read_csv(folder / who.file))
    if who.privacy_aversion is not None:
        return _listed(config, who.model_dump(exclude_none=True))
    clients = 100 if config.num_clients is None else config.num_clients
    if who.bins is not None:
        return population.uniform_density(clients, config.bounds, (who.bins[0], who.bins[1]))
    return population.uniform(clients, 0 if who.seed is None else who.seed, config.bounds)


def _listed(config: GameFile, columns: dict[str, ArrayLike]) -> Population:
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


class _Row(BaseModel):
    """A row of a population file, whose numbers are text."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    privacy_aversion: Aversion
    initial_budget: InitialBudget
    num_samples: NumSamples = 1
    weight: Weight = 1


def _read_csv(path: Path) -> dict[str, ArrayLike]:
    """Read a population file: a header with the columns' names, one client or type per row."""
    try:
        with io.TextIOWrapper(open_regular(path, MOST_TABLE), encoding="utf-8-sig", newline="") as text:
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
    header, known = [name.strip() for name in next(rows, [])], list(_Row.model_fields)
    if len(set(header)) < len(header) or not set(known[:2]) <= set(header) <= set(known):
        raise InvalidInput(
            f"{path}: line 1 must name the columns {', '.join(known[:2])} (and, if wanted, {', '.join(known[2:])}), "
            f"got {','.join(header)!r}."
        )
    found = array("d")
    for line, cells in enumerate(rows, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise InvalidInput(f"{path}: line {line} must have {len(header)} values like the header, got {len(cells)}.")
        row = checked(_Row, dict(zip(header, cells, strict=True)), f"{path}: line {line}")
        found.extend(float(getattr(row, name)) for name in header)
    if not found:
        raise InvalidInput(f"{path}: no clients below the header. Add one row per client.")
    return dict(zip(header, np.array(found).reshape(-1, len(header)).T, strict=True))
