"""A solved game with like types merged, for figures that would take too long with all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.population import compress, mean_by_cell
from fedpcs.game.rules import Game

_MOST_BINS = 32


def merge_types(found: Equilibrium, most_types: int) -> tuple[Game, FloatArray]:
    """Return the game and its (rounds, types) budgets, types merged where there are more than `most_types`.

    Merged types take the mean of theirs, so mean budgets and the mean aversion stay what they were.
    """
    crowd = found.game.population
    if crowd.num_types <= most_types:
        return found.game, found.profile.budget
    side = min(_MOST_BINS, math.isqrt(most_types))
    mean, _ = mean_by_cell(crowd, (side, side))
    few = compress(crowd, (side, side))
    return replace(found.game, population=few), np.array([mean(row) for row in found.profile.budget])


def merge_note(found: Equilibrium, game: Game) -> str:
    """Return what a figure must say when it was computed for `game` in place of `found.game`."""
    if game is found.game:
        return ""
    whole, merged = found.game.population.num_types, game.population.num_types
    return f"Computed with the {whole:,} types merged into {merged:,}."
