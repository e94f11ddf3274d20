"""A solved game with like types merged, for figures that would take too long with all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.population import Population
from fedpcs.game.rules import Game

_MOST_STRIPS = 32


def merge_types(found: Equilibrium, most_types: int) -> tuple[Game, FloatArray]:
    """Return the game and its (rounds, types) budgets, types merged where there are more than `most_types`.

    Merged types take the mean of theirs, so mean budgets and the mean aversion stay what they were.
    """
    crowd = found.game.population
    if crowd.num_types <= most_types:
        return found.game, found.profile.budget
    order, starts = _runs(crowd, min(_MOST_STRIPS, int(np.sqrt(most_types))))
    mass = np.add.reduceat(crowd.weight[order], starts)

    def merged(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat((crowd.weight * values)[order], starts) / mass)

    few = Population(
        merged(crowd.privacy_aversion),
        merged(crowd.initial_budget),
        mass / mass.sum(),
        crowd.num_clients,
        merged(crowd.num_samples),
    )
    return replace(found.game, population=few), np.array([merged(row) for row in found.profile.budget])


def merge_note(found: Equilibrium, game: Game) -> str:
    """Return what a figure must say when it was computed for `game` in place of `found.game`."""
    if game is found.game:
        return ""
    whole, merged = found.game.population.num_types, game.population.num_types
    return f"Computed with the {whole:,} types merged into {merged:,}."


def _runs(crowd: Population, num_strips: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return an order of the types and where each run of like ones begins in it.

    Types are sorted into strips of aversion, then by initial budget; a run stays in its strip and
    holds about 1/num_strips² of the clients, or one type that holds more.
    """
    strip = (crowd.privacy_aversion * num_strips).astype(np.int64)
    order = np.lexsort((crowd.initial_budget, strip))
    order = order[crowd.weight[order] > 0.0]
    share = (np.cumsum(crowd.weight[order]) * num_strips**2).astype(np.int64)
    is_new = (np.diff(share, prepend=-1) != 0) | (np.diff(strip[order], prepend=-1) != 0)
    return order, np.flatnonzero(is_new)
