"""Erratum 6: budgets only ever close in on the mean; once they agree no reward moves them."""

from __future__ import annotations

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import Game, Profile, individuals, make_game, mean_field
from fedpcs.game.equilibrium import plan_rewards

ROUNDS = (0, 1, 2, 5, 10, 30)


def spread(budget: FloatArray) -> FloatArray:
    """Return max − min of the budgets in each round."""
    return np.asarray(budget.max(axis=1) - budget.min(axis=1))


def largest_escape(profile: Profile) -> float:
    """Return how far any next budget lies outside the interval between its budget and the mean."""
    mean = profile.mean_budget[:-1, None]
    low, high = np.minimum(profile.budget[:-1], mean), np.maximum(profile.budget[:-1], mean)
    return float(np.maximum(low - profile.budget[1:], profile.budget[1:] - high).max())


def agreed_game() -> Game:
    """Return the default game with everybody starting at budget 6."""
    aversion = make_game().population.privacy_aversion
    return make_game(individuals(aversion, np.full(aversion.size, 6.0)))


def main() -> None:
    """Print spread and mean of budgets, for the default crowd and for one that starts in agreement."""
    rows = []
    for name, game in (("default", make_game()), ("all start at 6", agreed_game())):
        for reward in (1.0, 10.0, 20.0):
            profile = mean_field.settle(game, game.reward_path(reward)).profile
            wide = spread(profile.budget)[list(ROUNDS)]
            cells = (f"{wide[k]:.2f}" for k in range(len(ROUNDS)))
            rows.append([name, f"{reward:g}", *cells, f"{profile.mean_budget[-1]:.2f}"])
    print(table(["crowd", "reward", *(f"spread({t})" for t in ROUNDS), "φ(30)"], rows))
    lemma = plan_rewards(agreed_game(), "per-round").path
    print(f"\nIn agreement, the per-round policy pays {lemma.max():g} at most.")


if __name__ == "__main__":
    main()
