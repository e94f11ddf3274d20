"""The certificate sees every profitable deviation, and invents none."""

from dataclasses import replace

import numpy as np
import pytest
from twins import brute_force, utility

from fedpcs.errors import InvalidInput
from fedpcs.game import certify, individuals, make_game, mean_field, uniform
from fedpcs.game.payoffs import Profile, profile_from_retention
from fedpcs.game.verify import best_achievable, check_profile


@pytest.fixture(scope="module")
def solved():
    game = make_game(uniform(60, 3), last_round=12)
    reward = np.full(13, 4.0)
    return game, reward, mean_field.settle(game, reward).profile


def test_an_equilibrium_certifies(solved):
    game, reward, profile = solved
    certificate = certify(profile, reward, game)
    assert certificate.is_equilibrium(1e-4)
    assert certificate.inconsistency < 1e-9


def test_a_finer_grid_changes_little(solved):
    game, reward, profile = solved
    terms = game.terms(reward, profile.mean_budget)
    coarse, fine = (best_achievable(profile.budget, terms, game.population, num_nodes=nodes) for nodes in (240, 1200))
    assert (fine >= coarse - 1e-9).all() or np.abs(fine - coarse).max() < 1e-3
    assert np.abs(fine - coarse).mean() < 1e-4 * np.abs(fine).mean()


def test_it_agrees_with_brute_force():
    game = make_game(individuals([0.2, 0.6, 0.9], [2.0, 6.0, 11.0]), last_round=3, cohort_size=2)
    reward = np.array([3.0, 5.0, 2.0, 8.0])
    profile = mean_field.settle(game, reward).profile
    terms = game.terms(reward, profile.mean_budget)
    best = best_achievable(profile.budget, terms, game.population)
    for i, aversion in enumerate(game.population.privacy_aversion):
        start = float(profile.budget[0, i])
        assert best[i] == pytest.approx(brute_force(start, aversion, terms), rel=2e-3)


@pytest.mark.parametrize("client", [0, 17, 59])
def test_one_client_off_its_best_response_is_seen(solved, client):
    """Sabotage one client of 60: its gain is found, and it is at least what brute comparison says."""
    game, reward, profile = solved
    retention = profile.retention.copy()
    retention[:-1, client] = 1.0 - retention[:-1, client]
    spoiled = profile_from_retention(game.population, retention)
    terms = game.terms(reward, spoiled.mean_budget)
    own = utility(spoiled.budget[:, client], retention[:, client], game.population.privacy_aversion[client], terms)
    honest = replace_path(spoiled, profile, client, terms, game)
    certificate = certify(spoiled, reward, game)
    assert certificate.gain[client] >= (honest - own) * (1 - 1e-3)
    assert certificate.gain[client] > 0.0
    assert certificate.relative > certify(profile, reward, game).relative


def replace_path(spoiled, profile, client, terms, game):
    """Utility of the client's old retentions against the spoiled mean field: one deviation it certainly has."""
    budget = [spoiled.budget[0, client]]
    for t in range(terms.last_round):
        kept = profile.retention[t, client]
        budget.append((1 - kept) * terms.mean_budget[t] + kept * budget[-1])
    return utility(budget, profile.retention[:, client], game.population.privacy_aversion[client], terms)


def test_everyone_joining_the_crowd_is_no_equilibrium_when_keeping_pays():
    game = make_game(uniform(50, 0), last_round=10)
    lazy = profile_from_retention(game.population, np.zeros((11, 50)))
    assert certify(lazy, np.full(11, 15.0), game).relative > 0.05


def test_budgets_that_break_the_dynamics_are_not_an_equilibrium(solved):
    game, reward, profile = solved
    budget = profile.budget.copy()
    budget[5] *= 1.01
    forged = Profile(budget, profile.retention, profile.mean_budget)
    certificate = certify(forged, reward, game)
    assert certificate.inconsistency > 1e-3
    assert not certificate.is_equilibrium(1.0)


def test_other_rewards_than_those_answered_are_not_an_equilibrium(solved):
    game, reward, profile = solved
    assert certify(profile, 3.0 * reward, game).relative > 1e-2


def test_the_shared_grid_of_large_populations_agrees_with_grids_of_their_own():
    """Read linearly between rows of ψ it errs upward, from node to node downward: within 2e-3 of the mean utility."""
    game = make_game(uniform(3_000, 0), last_round=8)
    reward = np.full(9, 5.0)
    profile = mean_field.settle(game, reward).profile
    terms = game.terms(reward, profile.mean_budget)
    shared = best_achievable(profile.budget, terms, game.population)
    some = np.arange(0, 3_000, 50)
    crowd = individuals(game.population.privacy_aversion[some], game.population.initial_budget[some])
    own = best_achievable(profile.budget[:, some], terms, replace(crowd, num_clients=3_000))
    assert (shared[some] >= own - 2e-3 * np.abs(own).mean()).all()
    assert shared[some] == pytest.approx(own, rel=2e-2, abs=2e-3 * np.abs(own).mean())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": np.ones((3, 2))}, "shape"),
        ({"retention": np.ones((2, 5))}, "shape"),
        ({"budget": np.full((3, 4), np.nan)}, "NaN"),
        ({"retention": np.full((3, 4), 1.5)}, r"retention must lie in \[0, 1\]"),
        ({"retention": np.full((3, 4), -0.5)}, r"retention must lie in \[0, 1\]"),
        ({"budget": np.full((3, 4), 13.0)}, "budget_bounds"),
    ],
)
def test_what_is_not_a_profile_is_refused(change, words):
    game = make_game(uniform(4, 0), last_round=2, cohort_size=2)
    good = {"budget": np.ones((3, 4)), "retention": np.zeros((3, 4)), "mean_budget": np.ones(3)}
    with pytest.raises(InvalidInput, match=words):
        check_profile(Profile(**{**good, **change}), game)
