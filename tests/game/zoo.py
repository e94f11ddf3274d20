"""Thirty games unlike each other, drawn once from a seed: what the reward policies are tried on."""

from __future__ import annotations

import numpy as np

from fedpcs.game import Game, make_game, uniform

_BOUNDS = ((0.01, 1.0), (0.01, 12.0), (0.5, 50.0))


def zoo(count: int = 30, *, seed: int = 2024) -> list[Game]:
    """Return `count` games; the first k are the same however many are asked for.

    N in 20…200, T in 5…40, K/N in 0.1…0.8, accuracy_scale log-uniform in 300…30 000, accuracy_priority in
    0.3…0.7, budgets in [0.01, 1], [0.01, 12] or [0.5, 50], rewards up to 100.
    """
    return [_draw(np.random.default_rng([seed, index])) for index in range(count)]


def _draw(rng: np.random.Generator) -> Game:
    clients = int(rng.integers(20, 201))
    bounds = _BOUNDS[rng.integers(len(_BOUNDS))]
    return make_game(
        uniform(clients, seed=int(rng.integers(2**31)), budget_bounds=bounds),
        last_round=int(rng.integers(5, 41)),
        cohort_size=max(1, round(rng.uniform(0.1, 0.8) * clients)),
        budget_bounds=bounds,
        accuracy_priority=rng.uniform(0.3, 0.7),
        accuracy_scale=float(np.exp(rng.uniform(np.log(300.0), np.log(30_000.0)))),
        reward_max=100.0,
    )
