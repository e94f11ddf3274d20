"""Random games of every shape: they converge, they certify, and the few that do not say so.

N 10–1,000, T 5–100, K/N 0.05–0.9, rewards 0.1–50 constant, declining and random, bounds from [0.01, 1]
to [0.5, 50], several seeds.
"""

import numpy as np
import pytest

from fedpcs.game import make_game, solve, uniform


def random_game(index, most_clients=1_000, most_rounds=100):
    """Game number `index` and its reward path."""
    rng = np.random.default_rng([2026, index])
    clients = int(rng.integers(10, most_clients + 1))
    last_round = int(rng.integers(5, most_rounds + 1))
    low = float(np.exp(rng.uniform(np.log(0.01), np.log(0.5))))
    high = float(np.exp(rng.uniform(np.log(1.0), np.log(50.0))))
    level = float(np.exp(rng.uniform(np.log(0.1), np.log(50.0))))
    reward = [
        np.full(last_round + 1, level),
        level * np.linspace(1.0, 0.2, last_round + 1),
        np.exp(rng.uniform(np.log(0.1), np.log(50.0), last_round + 1)),
    ][index % 3]
    game = make_game(
        uniform(clients, int(rng.integers(10**6)), (low, high)),
        last_round=last_round,
        cohort_size=max(1, round(rng.uniform(0.05, 0.9) * clients)),
        budget_bounds=(low, high),
    )
    return game, reward


def outcomes(indices, **limits):
    return [solve(*random_game(index, **limits), throw=False) for index in indices]


def test_small_random_games_converge_and_certify():
    for found in outcomes(range(12), most_clients=120, most_rounds=25):
        assert found.status == "converged"
        assert found.certificate.relative <= 1e-3


@pytest.mark.slow
def test_99_of_100_random_games_converge_and_all_that_do_certify():
    found = outcomes(range(200))
    converged = [one for one in found if one.status == "converged"]
    assert len(converged) >= 0.99 * len(found)
    assert all(one.certificate.relative <= 1e-3 for one in converged)
    assert {one.status for one in found} <= {"converged", "not-converged", "not-an-equilibrium"}
