"""Utilities and costs are what the formulas say."""

from dataclasses import replace

import numpy as np
import pytest
from twins import utility

from fedpcs.errors import InvalidInput
from fedpcs.game import accuracy_scale_from_constants, announce, histogram, individuals, make_game, uniform
from fedpcs.game.payoffs import client_utility, profile_from_retention, selection_probability, server_cost


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
def test_utility_agrees_with_the_sum_written_out(selection):
    rng = np.random.default_rng(0)
    terms = announce(rng.uniform(0, 9, 7), rng.uniform(2, 9, 7), rng.integers(1, 30, 7), 30, selection)
    budget, retention, aversion = rng.uniform(0.1, 12, (7, 5)), rng.uniform(0, 1, (7, 5)), rng.uniform(0.1, 0.9, 5)
    expected = [utility(budget[:, i], retention[:, i], aversion[i], terms) for i in range(5)]
    assert client_utility(budget, retention, aversion, terms) == pytest.approx(expected)


def test_selection_keeps_digits_when_shares_are_tiny():
    """K = 1: P = x exactly, also at x = 1e-12 where 1 − (1 − x) loses most digits."""
    terms = announce([0.0, 0.0], [1.0, 1.0], 1, 10)
    assert selection_probability(np.full((2, 1), 1e-11), terms) == pytest.approx(np.full((2, 1), 1e-12), rel=1e-12)


def test_a_share_above_one_is_certain():
    terms = announce([0.0, 0.0], [1.0, 1.0], 3, 4)
    assert selection_probability(np.full((2, 1), 9.0), terms) == pytest.approx(np.ones((2, 1)))


def test_server_cost_written_out():
    game = make_game(individuals([0.2, 0.5, 0.8], [1.0, 2.0, 3.0]), last_round=1, cohort_size=2, accuracy_scale=30.0)
    budget = np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 2.0]])
    cost = server_cost(budget, np.array([4.0, 6.0]), game)
    inclusion = [1 / 3, 2 / 3, 1.0]
    first = sum(p * (15.0 / rho + 0.5 * 4.0 * rho) for p, rho in zip(inclusion, [1, 2, 3], strict=True))
    second = 2.0 * (0.5 * 30.0 / (2 * 2.0) + 0.5 * 6.0 * 2.0)
    assert cost == pytest.approx([first, second])


def test_budget_blind_cost_draws_everyone_alike():
    game = make_game(individuals([0.2, 0.5], [1.0, 4.0]), last_round=1, cohort_size=1, selection="budget-blind")
    cost = server_cost(np.array([[1.0, 4.0], [1.0, 4.0]]), np.zeros(2), game)
    assert cost[0] == pytest.approx(0.5 * 0.5 * 10_000 * (1.0 + 0.25))
    assert cost[1] == pytest.approx(cost[0] / 2)


def test_a_histogram_costs_what_its_clients_cost():
    crowd = individuals([0.3, 0.3, 0.7, 0.7], [2.0, 2.0, 5.0, 5.0])
    merged = histogram([0.3, 0.7], [2.0, 5.0], [1, 1], num_clients=4)
    game = make_game(crowd, last_round=2, cohort_size=3)
    rows = np.array([[2.0, 5.0], [3.0, 4.0], [3.5, 3.5]])
    one = server_cost(np.repeat(rows, 2, axis=1), np.ones(3), game)
    other = server_cost(rows, np.ones(3), replace(game, population=merged))
    assert one == pytest.approx(other)


def test_a_profile_is_consistent_with_its_own_mean():
    crowd = uniform(50, 0)
    retention = np.random.default_rng(0).uniform(0, 1, (9, 50))
    profile = profile_from_retention(crowd, retention)
    assert profile.mean_budget == pytest.approx(profile.budget.mean(axis=1))
    expected = profile.mean_budget[3] + retention[3] * (profile.budget[3] - profile.mean_budget[3])
    assert profile.budget[4] == pytest.approx(expected)


def test_accuracy_scale_restores_the_dropped_constant():
    """Proposition 2 with and without it: β/(2μ²t)·2dW² Σ θ²/(|D|²ρ) = (a/t) Σ 1/ρ."""
    beta, mu, dimension, norm, samples = 3.0, 0.2, 1000, 2.0, np.array([10.0, 30.0, 60.0])
    budget = np.array([1.0, 2.0, 3.0])
    theta = samples / samples.sum()
    printed = beta / (2 * mu**2) * 2 * dimension * norm**2 * (theta**2 / (samples**2 * budget)).sum()
    scale = accuracy_scale_from_constants(
        smoothness=beta, pl_constant=mu, dimension=dimension, clip_norm=norm, total_samples=100
    )
    assert scale * (1 / budget).sum() == pytest.approx(printed)


@pytest.mark.parametrize("bad", [float("nan"), 0.0, -1.0, None, "3", True])
@pytest.mark.parametrize("name", ["smoothness", "pl_constant", "clip_norm", "dimension", "total_samples"])
def test_accuracy_scale_refuses_bad_constants(name, bad):
    good = {"smoothness": 1.0, "pl_constant": 1.0, "clip_norm": 1.0, "dimension": 5, "total_samples": 5}
    with pytest.raises(InvalidInput, match=name):
        accuracy_scale_from_constants(**{**good, name: bad})
