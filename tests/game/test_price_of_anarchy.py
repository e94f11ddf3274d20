"""Welfare and price of anarchy: closed forms, bounds that hold, bounds that do not."""

import numpy as np
import pytest

from fedpcs.game import individuals, make_game, solve, uniform
from fedpcs.game.welfare import assess, optimal_budget, social_welfare


def test_the_unbounded_optimum_is_a_quarter_of_reward_squared_over_aversion():
    game = make_game(individuals([0.2, 0.5], [1.0, 2.0]), last_round=1, cohort_size=1, budget_bounds=(1e-6, 1e6))
    reward = np.array([2.0, 3.0])
    budget = optimal_budget(reward, game)
    welfare, _ = assess(budget, budget, reward, game)
    assert welfare.optimum_unbounded == pytest.approx(0.25 * 13.0 * (5.0 + 2.0))
    assert welfare.optimum_bounded == pytest.approx(welfare.optimum_unbounded)


def test_no_profile_within_bounds_beats_the_bounded_optimum():
    game = make_game(uniform(20, 0), last_round=4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        reward = rng.uniform(0, 20, 5)
        budget = rng.uniform(*game.budget_bounds, (5, 20))
        best = social_welfare(optimal_budget(reward, game), reward, game)
        assert social_welfare(budget, reward, game) <= best


def test_anarchy_costs_at_least_one_wherever_welfare_is_positive():
    for reward in (2.0, 8.0, 20.0):
        welfare, price = solve(make_game(uniform(40, 1), last_round=8), reward).welfare()
        for value, ratio in (
            (welfare.equilibrium, price.equilibrium),
            (welfare.budget_blind, price.budget_blind),
            (welfare.worst_case, price.worst_case),
        ):
            assert (ratio is None) == (value <= 0.0)
            assert ratio is None or ratio >= 1.0


def test_negative_welfare_has_no_price():
    game = make_game(individuals([0.9, 0.9], [10.0, 11.0]), last_round=3, cohort_size=1)
    welfare, price = solve(game, 0.1).welfare()
    assert welfare.equilibrium < 0.0
    assert price.equilibrium is None
