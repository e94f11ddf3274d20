"""Mean fields reproduce themselves, whatever the population's form, and say so when they do not."""

from dataclasses import replace

import numpy as np
import pytest
from twins import algorithm_1
from zoo import zoo

from fedpcs.game import (
    certify,
    compress,
    exact,
    histogram,
    individuals,
    make_game,
    mean_field,
    uniform,
    uniform_density,
)


def best_responses_to(game, reward, mean):
    """Every client answers the announced φ: the definition, without sweeping in order."""
    terms = game.terms(reward, mean)
    rows = exact.table_rows(game.population)
    table = exact.tabulate(terms, rows, game.population.initial_budget)
    return exact.play(table, terms, game.population, in_order=False)


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
@pytest.mark.parametrize("reward", [0.0, 1.0, 5.0, 10.0, 20.0])
def test_the_mean_of_the_best_responses_is_the_announced_mean(selection, reward):
    game = make_game(uniform(80, 2), last_round=15, selection=selection)
    path = np.full(16, reward)
    found = mean_field.settle(game, path, tolerance=1e-5)
    assert found.is_settled
    assert found.residual <= 1e-5
    answer = best_responses_to(game, path, found.profile.mean_budget)
    assert answer.mean_budget == pytest.approx(found.profile.mean_budget, abs=1e-3)


def test_budgets_stay_in_bounds_and_levels_narrow():
    game = make_game(uniform(60, 1), last_round=20)
    budget = mean_field.settle(game, np.full(21, 6.0)).profile.budget
    low, high = game.budget_bounds
    assert budget.min() >= low
    assert budget.max() <= high
    spread = budget.max(axis=1) - budget.min(axis=1)
    assert (np.diff(spread) <= 1e-9).all()


def test_reordering_clients_reorders_the_answer():
    game = make_game(uniform(40, 5), last_round=8)
    order = np.random.default_rng(0).permutation(40)
    crowd = game.population
    shuffled = replace(game, population=individuals(crowd.privacy_aversion[order], crowd.initial_budget[order]))
    one, other = (mean_field.settle(g, np.full(9, 4.0)) for g in (game, shuffled))
    assert other.profile.budget == pytest.approx(one.profile.budget[:, order], abs=1e-8)


def test_the_same_game_gives_the_same_bits():
    game = make_game(uniform(70, 5), last_round=8)
    one, other = (mean_field.settle(game, np.full(9, 4.0)) for _ in range(2))
    assert np.array_equal(one.profile.budget, other.profile.budget)


def test_a_histogram_of_equal_clients_is_those_clients():
    game = make_game(individuals([0.3] * 6 + [0.8] * 4, [2.0] * 6 + [9.0] * 4), last_round=6, cohort_size=3)
    merged = replace(game, population=histogram([0.3, 0.8], [2.0, 9.0], [6, 4], num_clients=10))
    one, other = (mean_field.settle(g, np.full(7, 5.0), tolerance=1e-8).profile.mean_budget for g in (game, merged))
    assert one == pytest.approx(other, abs=1e-6)


def test_equals_stay_where_they_are():
    game = make_game(individuals([0.5] * 9, [3.0] * 9), last_round=5, cohort_size=2)
    found = mean_field.settle(game, np.full(6, 7.0))
    assert found.profile.budget == pytest.approx(np.full((6, 9), 3.0), abs=1e-9)


def test_one_client_alone_is_its_own_crowd():
    game = make_game(individuals([0.4], [5.0]), last_round=3, cohort_size=1)
    assert mean_field.settle(game, np.full(4, 2.0)).profile.mean_budget == pytest.approx(np.full(4, 5.0))


def test_many_clients_approach_the_density():
    """30,000 sampled clients go through the histogram first; their φ is the density's to sampling error (6 s.e.)."""
    reward = np.full(13, 5.0)
    crowd = make_game(uniform(30_000, 0), last_round=12, cohort_size=6_000)
    density = make_game(uniform_density(30_000), last_round=12, cohort_size=6_000)
    one, other = (mean_field.settle(game, reward).profile.mean_budget for game in (crowd, density))
    assert np.abs(one - other).max() < 6 * 12 / np.sqrt(12 * 30_000)


def test_a_compressed_population_has_nearly_the_same_mean_field():
    game = make_game(uniform(2_000, 1), last_round=10)
    small = replace(game, population=compress(game.population, (40, 40)))
    one, other = (mean_field.settle(g, np.full(11, 4.0)).profile.mean_budget for g in (game, small))
    assert one == pytest.approx(other, abs=0.03)


def test_history_starts_at_the_start_and_ends_at_the_end():
    game = make_game(uniform(50, 0), last_round=6)
    found = mean_field.settle(game, np.full(7, 3.0))
    assert found.history.shape == (found.iterations + 1, 7)
    assert found.history[0] == pytest.approx(np.full(7, game.population.initial_budget.mean()))
    assert found.history[-1] == pytest.approx(found.profile.mean_budget)


def test_a_warm_start_saves_sweeps_and_changes_nothing():
    game = make_game(uniform(50, 0), last_round=20)
    cold = mean_field.settle(game, np.full(21, 3.0), tolerance=1e-6)
    warm = mean_field.settle(game, np.full(21, 3.0), tolerance=1e-6, start=cold.profile.mean_budget)
    assert warm.iterations < cold.iterations
    assert warm.profile.mean_budget == pytest.approx(cold.profile.mean_budget, abs=1e-5)


@pytest.mark.parametrize("response", ["paper", "paper-backward"])
def test_the_printed_formula_oscillates_and_says_so(response):
    found = mean_field.settle(make_game(), np.full(31, 10.0), response)
    assert not found.is_settled
    assert found.residual > 1e-2


@pytest.mark.parametrize("response", ["paper", "paper-backward"])
@pytest.mark.parametrize("reward", [1.0, 5.0, 20.0])
def test_algorithm_1_runs_as_printed(response, reward):
    """Against plain loops over its lines: φ of every sweep, and the last sweep's budgets and factors, to 1e-12."""
    game = make_game(uniform(6, 3), last_round=5, cohort_size=2)
    path = reward * np.linspace(1.0, 0.4, 6)
    found = mean_field.settle(game, path, response)
    history, budget, retention = algorithm_1(game, path, found.iterations, backward=response == "paper-backward")
    np.testing.assert_allclose(found.history, history, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found.profile.budget, budget, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found.profile.retention, retention, rtol=0.0, atol=1e-12)
    assert np.array_equal(found.profile.mean_budget, found.history[-1])


@pytest.mark.parametrize("response", ["paper", "paper-backward"])
def test_where_the_printed_iteration_comes_to_rest_its_profile_certifies(response):
    """Budgets follow the φ before the last sweep, so φ must stand still far below the tolerance."""
    game = zoo(2)[1]
    found = mean_field.settle(game, game.reward_path(5.0), response)
    assert found.is_settled
    assert certify(found.profile, game.reward_path(5.0), game).is_equilibrium(1e-3)


def test_the_costate_sweep_settles_where_everyone_wants_more():
    found = mean_field.settle(make_game(), np.full(31, 20.0), "costate")
    exact_found = mean_field.settle(make_game(), np.full(31, 20.0))
    assert found.is_settled
    assert found.profile.mean_budget == pytest.approx(exact_found.profile.mean_budget, abs=0.01)


def test_when_mean_budgets_jump_for_ever_the_search_finds_a_profile_nobody_leaves():
    """N = 36: one client's indifference keeps plain sweeps jumping by 0.05; the search stops at a harmless profile."""
    rng = np.random.default_rng(1002)
    crowd = jumping_crowd(rng)
    game = make_game(crowd, last_round=48, cohort_size=25)
    reward = 0.8 * np.linspace(1.0, 0.2, 49)
    found = mean_field.settle(game, reward, tolerance=1e-3)
    assert found.is_settled
    assert certify(found.profile, reward, game).relative <= 1e-3


def jumping_crowd(rng):
    return individuals(rng.uniform(0, 1, 36).clip(0.001, 0.999), rng.uniform(0.01, 12, 36))
