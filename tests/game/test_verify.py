"""The certificate sees every profitable deviation, and invents none."""

from itertools import pairwise

import numpy as np
import pytest
from twins import brute_force, utility

from fedpcs.errors import InvalidInput, NotConverged
from fedpcs.game import _audit_kernels, certify, individuals, make_game, mean_field, solve, uniform, verify
from fedpcs.game.payoffs import Profile, client_utility, profile_from_retention
from fedpcs.game.rules import SELECTIONS
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


def test_what_is_shown_and_what_is_possible_close_in_on_each_other(solved):
    """The two sides never cross, and what is asked for is reached: the truth lies between them."""
    game, reward, profile = solved
    terms = game.terms(reward, profile.mean_budget)
    scale = np.abs(best_achievable(profile.budget, terms, game.population).shown).mean()
    sides = [best_achievable(profile.budget, terms, game.population, accuracy=share) for share in (1e-2, 1e-4, 1e-6)]
    for share, side in zip((1e-2, 1e-4, 1e-6), sides, strict=True):
        assert (side.at_most >= side.shown).all()
        assert (side.at_most - side.shown).mean() <= share * scale
    for coarse, fine in pairwise(sides):
        assert (fine.shown <= coarse.at_most + 1e-9).all()
        assert (coarse.shown <= fine.at_most + 1e-9).all()


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
@pytest.mark.parametrize("cohort", [1, 2])
def test_brute_force_never_leaves_the_two_sides(selection, cohort):
    """Every sequence of retentions on a grid earns less than the bound, the best hardly more than what is shown.

    The last client starts above N times the mean, where the chance of a draw of one has a kink.
    """
    game = make_game(
        individuals([0.2, 0.6, 0.3], [0.1, 0.2, 11.0]), last_round=3, cohort_size=cohort, selection=selection
    )
    reward = np.array([3.0, 5.0, 2.0, 8.0])
    mean = np.array([3.5, 1.2, 0.5, 0.4])
    terms = game.terms(reward, mean)
    paths = np.broadcast_to(game.population.initial_budget, (4, 3))
    best = best_achievable(paths, terms, game.population, accuracy=1e-6)
    assert (best.at_most - best.shown <= 5e-3 * np.abs(best.shown)).all()
    for i, aversion in enumerate(game.population.privacy_aversion):
        brute = brute_force(float(paths[0, i]), aversion, terms)
        assert best.at_most[i] >= brute - 1e-12
        assert best.shown[i] >= brute - 5e-3 * abs(brute)


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


def test_grids_that_a_crowd_shares_bound_what_grids_of_their_own_show(monkeypatch):
    """Both are bounds on the same numbers: neither may fall below what the other has shown."""
    game = make_game(uniform(400, 0), last_round=8)
    reward = np.full(9, 5.0)
    profile = mean_field.settle(game, reward).profile
    terms = game.terms(reward, profile.mean_budget)
    own = best_achievable(profile.budget, terms, game.population, accuracy=1e-6)
    monkeypatch.setattr(verify, "_FEWEST_SHARING", 0)
    monkeypatch.setattr(verify, "_MOST_OWN_GRIDS", 0)
    shared = best_achievable(profile.budget, terms, game.population, accuracy=1e-3)
    scale = np.abs(own.shown).mean()
    assert (shared.at_most >= own.shown - 1e-9).all()
    assert (shared.shown <= own.at_most + 1e-9).all()
    assert (shared.at_most - own.shown).mean() <= 1e-3 * scale


@pytest.mark.parametrize("digits", [-2, -1, 1, 2, 5])
@pytest.mark.parametrize("selection", SELECTIONS)
def test_budgets_that_differ_from_the_mean_by_their_last_digits_move_to_it_for_nothing(digits, selection):
    """What a plan earns is never above the bound: here a budget rounded by one digit would cost a whole retention."""
    game = make_game(uniform(50, 0), last_round=6, selection=selection)
    start = 6.0 + digits * np.spacing(6.0)
    terms = game.terms(np.linspace(4.0, 1.0, 7), np.full(7, 6.0))
    aversion = np.array([0.05, 0.4, 0.9])
    crowd = individuals(aversion, np.full(3, start))
    paths = np.full((7, 3), 6.0)
    paths[0] = start
    earned = client_utility(paths, np.zeros((7, 3)), aversion, terms)
    reach = best_achievable(paths, terms, crowd, earned=np.full(3, -np.inf))
    assert (reach.at_most >= earned - 1e-12 * np.abs(earned)).all()


def test_whoever_goes_to_the_mean_earns_no_more_than_the_bound_where_means_differ_by_their_last_digits():
    """Nodes must reach to the last digit of every budget that can be had."""
    rng = np.random.default_rng(1)
    game = make_game(uniform(50, 0), last_round=20)
    aversion = np.full(4, 0.03)
    for _ in range(60):
        centre = float(rng.uniform(0.5, 9.0))
        mean = centre + np.spacing(centre) * rng.integers(-4, 5, 21)
        terms = game.terms(np.linspace(30.0, 10.0, 21), mean)
        start = centre * rng.uniform(0.2, 0.9, 4)
        paths = np.vstack((start, np.repeat(mean[:-1, None], 4, axis=1)))
        earned = client_utility(paths, np.zeros((21, 4)), aversion, terms)
        reach = best_achievable(paths, terms, individuals(aversion, start), earned=np.full(4, -np.inf))
        assert (reach.at_most >= earned - 1e-12 * np.abs(earned)).all()


def test_a_cell_bends_as_much_as_any_cell_between_it_and_the_mean():
    """Against brute force: cells on both sides of the mean, and one that the mean lies in."""
    rng = np.random.default_rng(4)
    for _ in range(200):
        size, following_size = (int(one) for one in rng.integers(2, 9, 2))
        nodes = np.zeros((2, 10))
        nodes[0, :size] = np.sort(rng.uniform(0.3, 0.8, size))
        nodes[1, :following_size] = np.sort(rng.uniform(0.0, 1.0, following_size))
        nodes[1, 0], nodes[1, following_size - 1] = 0.0, 1.0
        count, phi = np.array([size, following_size]), float(rng.uniform(0.2, 0.9))
        following = nodes[1, :following_size]
        bend = np.zeros((2, 10))
        bend[1, : following_size - 1] = rng.uniform(0.0, 1.0, following_size - 1)
        home = _audit_kernels.cell_of(nodes[1], following_size, phi)
        _audit_kernels._add_later_bends(nodes, count, 0, phi, home, bend)
        for k in range(size - 1):
            low, high = min(phi, nodes[0, k]), max(phi, nodes[0, k + 1])
            met = [bend[1, j] for j in range(following_size - 1) if following[j] < high and following[j + 1] > low]
            assert bend[0, k] >= max(met)


def test_a_tolerance_finer_than_the_resolution_is_refused(solved, monkeypatch):
    """With one coarse pass nothing above the tolerance is seen, and yet no equilibrium is claimed."""
    game, reward, _ = solved
    monkeypatch.setattr(verify, "_MOST_PASSES", 1)
    found = solve(game, reward, tolerance=1e-4, throw=False)
    assert found.certificate.relative <= 1e-4 < found.certificate.resolution
    assert found.status == "not-resolved"
    with pytest.raises(NotConverged, match="resolution"):
        solve(game, reward, tolerance=1e-4)


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
