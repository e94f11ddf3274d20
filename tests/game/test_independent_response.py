"""The judge itself: its lower bound can be played and is the best there is, its upper bound is never beaten."""

import numpy as np
import pytest
from independent_response import Effort, Players, bracket, judge
from scipy.optimize import differential_evolution
from twins import brute_force, improve, path, utility

from fedpcs.game import announce, individuals, make_game
from fedpcs.game.payoffs import profile_from_retention


def any_profile(seed, *, clients, last_round, selection, bounds=(0.01, 12.0), cohort=None):
    """A game, its rewards and a profile drawn at random, which is no equilibrium of anything."""
    rng = np.random.default_rng(seed)
    aversion, budget = rng.uniform(0.001, 0.999, clients), rng.uniform(*bounds, clients)
    cohort = cohort or max(2, clients // 3)
    game = make_game(
        individuals(aversion, budget),
        last_round=last_round,
        cohort_size=cohort,
        budget_bounds=bounds,
        selection=selection,
    )
    retention = rng.uniform(0.0, 1.0, (last_round + 1, clients))
    retention[-1] = 0.0
    return game, rng.uniform(0.0, 12.0, last_round + 1), profile_from_retention(game.population, retention)


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
@pytest.mark.parametrize("last_round", [1, 2, 3])
def test_brute_force_finds_nothing_better_and_nothing_above_the_upper_bound(selection, last_round):
    game, reward, profile = any_profile(last_round, clients=3, last_round=last_round, selection=selection)
    terms, population = game.terms(reward, profile.mean_budget), game.population
    judged = judge(profile, reward, game)
    for i, (aversion, start) in enumerate(zip(population.privacy_aversion, population.initial_budget, strict=True)):
        brute = brute_force(start, aversion, terms, num_actions=15)
        assert brute - 1e-9 <= judged.lower[i]
        assert judged.lower[i] <= judged.upper[i]
        assert judged.lower[i] == pytest.approx(brute, rel=5e-3, abs=1e-3)


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
def test_a_global_optimiser_finds_nothing_better_in_longer_games(selection):
    game, reward, profile = any_profile(7, clients=2, last_round=7, selection=selection, bounds=(0.01, 40.0))
    terms, population = game.terms(reward, profile.mean_budget), game.population
    judged = judge(profile, reward, game)
    for i, (aversion, start) in enumerate(zip(population.privacy_aversion, population.initial_budget, strict=True)):

        def loss(kept, start=start, aversion=aversion):
            return -utility(path(np.append(kept, 0.0), start, terms), np.append(kept, 0.0), aversion, terms)

        found = differential_evolution(loss, [(0.0, 1.0)] * 7, seed=0, maxiter=60, popsize=12, tol=1e-10)
        assert -found.fun <= judged.lower[i] + 1e-7 * abs(found.fun)
        assert -found.fun <= judged.upper[i]


@pytest.mark.parametrize("seed", range(3))
def test_one_decision_has_a_closed_form(seed):
    """T = 1, P constant: α maximises yR − ψy² − (1−ψ)α² with y = φ + αg, so α = g(R − 2ψφ) / (2(ψg² + 1 − ψ))."""
    game, reward, profile = any_profile(seed, clients=40, last_round=1, selection="budget-blind", bounds=(0.001, 500.0))
    psi, start, mean = game.population.privacy_aversion, game.population.initial_budget, profile.mean_budget[0]
    gap = start - mean
    kept = (gap * (reward[1] - 2 * psi * mean) / (2 * (psi * gap**2 + 1 - psi))).clip(0.0, 1.0)
    then = mean + kept * gap
    chance = game.cohort_size[0] / game.num_clients
    first = start * reward[0] - psi * start**2 - (1 - psi) * kept**2
    best = chance * (first + then * reward[1] - psi * then**2)
    judged = judge(profile, reward, game)
    assert judged.lower == pytest.approx(best, rel=1e-9)
    assert (best <= judged.upper * (1.0 + 1e-12 * np.sign(judged.upper))).all()


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
def test_climbing_from_its_plan_gains_nothing(selection):
    """The lower bound is played, term by term, by the slow twin; steps of one retention do not improve it."""
    game, reward, profile = any_profile(11, clients=6, last_round=12, selection=selection, bounds=(0.001, 200.0))
    terms, population = game.terms(reward, profile.mean_budget), game.population
    judged = judge(profile, reward, game)
    for i in range(6):
        start, aversion = population.initial_budget[i], population.privacy_aversion[i]
        own = profile.retention[:, i]
        assert judged.earned[i] == pytest.approx(utility(path(own, start, terms), own, aversion, terms), rel=1e-9)
        climbed = improve(own, start, aversion, terms)
        assert climbed <= judged.lower[i] + 1e-5 * abs(judged.lower[i])
        assert climbed <= judged.upper[i]


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
def test_more_work_narrows_the_bracket(selection):
    game, reward, profile = any_profile(3, clients=30, last_round=10, selection=selection, bounds=(0.001, 100.0))
    rough, fine = (judge(profile, reward, game, effort=effort) for effort in (Effort(), Effort().doubled()))
    assert fine.upper.sum() - fine.lower.sum() < 0.5 * (rough.upper.sum() - rough.lower.sum())
    assert rough.found == pytest.approx(fine.found, rel=1e-5)
    assert (fine.lower <= rough.upper * (1.0 + 1e-12 * np.sign(rough.upper))).all()
    assert fine.at_least <= fine.found <= fine.at_most


def test_whoever_joined_the_crowd_can_stay_there_when_the_crowd_moves_on():
    """φ falls after round 0; the best plan joins it at once and stays at φ(0), which no later φ equals."""
    mean, reward = np.array([1.541, 1.379, 1.379, 1.379, 1.572]), np.array([4.3, 0.9, 0.0, 0.0, 40.0])
    terms = announce(reward, mean, 13, 925, "budget-blind")
    facing = reward, mean, terms.cohort_size, 925.0, False
    player = Players(np.array([0.95]), np.array([0.168]), *facing)
    own = np.array([0.168, 0.168, 0.168, 0.168, 1.379])[:, None]
    lower, upper = bracket(player, own, Effort())
    brute = brute_force(0.168, 0.95, terms, num_actions=11)
    assert brute - 1e-12 <= lower[0] <= upper[0]
    assert lower[0] == pytest.approx(brute, rel=1e-3)
    assert player.earn(player.retention(own))[0][0] < 0.995 * brute


def test_where_a_kink_is_in_reach_no_upper_bound_is_claimed():
    """K = 1: P = min(1, ρ/(Nφ)) has a kink at Nφ; it falls below 500 once the client who has 500 joins the rest."""
    population = individuals(np.full(10, 0.01), [500.0, *np.full(9, 0.5)])
    game = make_game(population, last_round=3, cohort_size=1, budget_bounds=(0.001, 500.0))
    retention = np.ones((4, 10))
    retention[:, 0] = retention[-1] = 0.0
    judged = judge(profile_from_retention(population, retention), np.full(4, 2.0), game)
    assert np.isinf(judged.upper[0])
    assert np.isfinite(judged.lower).all()
    assert judged.at_most == np.inf
