"""The exact best response is the best: against brute force, hill climbing, closed forms and the certificate."""

import numpy as np
import pytest
from twins import brute_force, improve, moves_towards_mean, path, utility

from fedpcs.errors import InvalidInput
from fedpcs.game import _kernels, announce, best_response, exact, uniform
from fedpcs.game.payoffs import client_utility
from fedpcs.game.verify import best_achievable


def terms_with(reward, mean, cohort=20, clients=100, selection="budget-aware"):
    return announce(reward, mean, cohort, clients, selection)


def random_terms(seed, rounds=12, selection="budget-aware"):
    rng = np.random.default_rng(seed)
    scale = rng.choice([0.5, 6.0, 25.0])
    return terms_with(
        rng.uniform(0.0, 3.0 * scale, rounds),
        scale * rng.uniform(0.6, 1.4, rounds),
        rng.integers(1, 90),
        100,
        selection,
    )


@pytest.mark.parametrize("selection", ["budget-aware", "budget-blind"])
@pytest.mark.parametrize("aversion", [0.02, 0.4, 0.9, 0.998])
@pytest.mark.parametrize("start", [1.0, pytest.param(5.9, marks=pytest.mark.slow), 11.0])
def test_no_sequence_on_a_grid_beats_it(selection, aversion, start):
    terms = terms_with([2.0, 9.0, 4.0, 7.0], [6.0, 5.0, 7.0, 6.5], selection=selection)
    answer = best_response(terms, aversion, start)
    earned = utility(answer.budget, answer.retention, aversion, terms)
    assert earned >= brute_force(start, aversion, terms) - 1e-6 * abs(earned)


@pytest.mark.parametrize("seed", range(8))
def test_no_small_change_improves_it(seed):
    terms = random_terms(seed)
    rng = np.random.default_rng(seed)
    aversion, start = rng.uniform(0.05, 0.95), terms.mean_budget[0] * rng.uniform(0.2, 1.8)
    answer = best_response(terms, aversion, start)
    earned = utility(answer.budget, answer.retention, aversion, terms)
    assert improve(answer.retention, start, aversion, terms) <= earned + 1e-4 * abs(earned)


@pytest.mark.parametrize("seed", range(6))
def test_no_random_strategy_beats_it(seed):
    terms = random_terms(seed, selection=["budget-aware", "budget-blind"][seed % 2])
    rng = np.random.default_rng(100 + seed)
    aversion, start = rng.uniform(0.01, 0.99), terms.mean_budget[0] * rng.uniform(0.1, 1.9)
    earned = best_response(terms, aversion, start).utility
    for _ in range(300):
        retention = np.append(rng.beta(*rng.uniform(0.2, 3.0, 2), terms.last_round), 0.0)
        assert utility(path(retention, start, terms), retention, aversion, terms) <= earned + 1e-3 * abs(earned)


def test_the_utility_it_reports_is_what_the_path_earns():
    terms = random_terms(3, rounds=31)
    for aversion in (0.1, 0.5, 0.9):
        answer = best_response(terms, aversion, 1.3 * terms.mean_budget[0])
        assert answer.utility == pytest.approx(utility(answer.budget, answer.retention, aversion, terms))


def test_the_table_s_values_are_what_following_it_earns():
    """V_0 at a client's own starting node, against the utility of the path the table leads it along."""
    terms = random_terms(3, rounds=31)
    for aversion in (0.1, 0.5, 0.9):
        table = exact.tabulate(terms, np.array([aversion]), np.array([0.3, 2.0 * terms.mean_budget.max()]))
        for i in range(5, table.nodes.shape[1], 25):
            earned = best_response(terms, aversion, float(table.nodes[0, i])).utility
            assert table.value[0, 0, i] == pytest.approx(earned, rel=2e-3, abs=1e-2)


def test_the_path_follows_the_dynamics_and_moves_towards_the_mean():
    terms = random_terms(5, rounds=31)
    answer = best_response(terms, 0.4, 2.0)
    assert answer.budget == pytest.approx(path(answer.retention, 2.0, terms))
    assert moves_towards_mean(answer.budget, terms.mean_budget)
    assert answer.retention[-1] == 0.0
    assert ((answer.retention >= 0.0) & (answer.retention <= 1.0)).all()


def test_one_round_has_a_closed_form():
    """Budget-blind, T = 1: maximise −(1−ψ)α² + yR₁ − ψy², y = φ + αδ, so α = δ(R₁ − 2ψφ)/(2(1−ψ + ψδ²)), clipped."""
    for reward in (0.0, 3.0, 8.0, 30.0):
        for aversion in (0.1, 0.6, 0.95):
            for start in (2.0, 5.0, 9.0):
                terms = terms_with([1.0, reward], [6.0, 6.0], selection="budget-blind")
                gap = start - 6.0
                expected = gap * (reward - 12.0 * aversion) / (2 * (1 - aversion + aversion * gap**2))
                answer = best_response(terms, aversion, start)
                assert answer.retention[0] == pytest.approx(np.clip(expected, 0.0, 1.0), abs=2e-4)


def test_a_client_at_the_mean_stays_and_pays_nothing():
    answer = best_response(terms_with([5.0] * 6, [4.0] * 6), 0.5, 4.0)
    assert (answer.budget == 4.0).all()
    assert (answer.retention == 0.0).all()


def test_richer_rewards_never_lower_a_high_clients_budget():
    budgets = [best_response(terms_with([r] * 10, [6.0] * 10), 0.5, 9.0).budget.sum() for r in (0, 2, 4, 6, 8, 12, 20)]
    assert (np.diff(budgets) >= -1e-6).all()


@pytest.mark.parametrize("seed", range(4))
def test_divide_and_conquer_chooses_as_a_full_search_does(seed):
    """The table is built assuming the best move rises with the budget; every node is searched again in full."""
    terms = random_terms(seed, rounds=10)
    crowd = uniform(20, seed, (0.1 * terms.mean_budget[0], 2.0 * terms.mean_budget[0]))
    rows = exact.table_rows(crowd)
    table = exact.tabulate(terms, rows, crowd.initial_budget)
    last = table.nodes.shape[1] - 2
    for t in range(terms.last_round):
        mean_cell = _kernels.cell_of(table.nodes[t + 1], table.nodes.shape[1], terms.mean_budget[t])
        for m, aversion in enumerate(rows):
            for i in range(0, table.nodes.shape[1], 5):
                rho = table.nodes[t, i]
                share = min(1.0, rho / (100 * terms.mean_budget[t]))
                chance = 1.0 - (1.0 - share) ** terms.cohort_size[t]
                onward = _kernels.best_move(
                    table.nodes[t + 1],
                    table.value[t + 1, m],
                    table.slope[t + 1, m],
                    rho,
                    _kernels.cell_of(table.nodes[t + 1], table.nodes.shape[1], rho),
                    terms.mean_budget[t],
                    mean_cell,
                    (1.0 - aversion) * chance,
                    0,
                    last,
                )[1]
                full = chance * (rho * terms.reward[t] - aversion * rho**2) + onward
                assert table.value[t, m, i] == pytest.approx(full, rel=1e-12, abs=1e-12)


def test_stored_slopes_are_the_values_derivatives():
    """Away from kinks the envelope slope agrees with a difference quotient of the value itself."""
    terms = random_terms(1, rounds=8)
    table = exact.tabulate(terms, np.array([0.4]), np.array([0.5, 2.0 * terms.mean_budget.max()]))
    for t in range(8):
        nodes, value, slope = table.nodes[t], table.value[t, 0], table.slope[t, 0]
        wide = np.diff(nodes) > 1e-3
        quotient = np.diff(value)[wide] / np.diff(nodes)[wide]
        middle = 0.5 * (slope[:-1] + slope[1:])[wide]
        assert np.median(np.abs(quotient - middle)) < 1e-2 * max(1.0, np.abs(slope).max())


def test_shared_rows_lose_little_against_a_row_each():
    terms = random_terms(2, rounds=31)
    crowd = uniform(400, 0, (0.2, 2.0 * terms.mean_budget[0]))
    own = exact.tabulate(terms, np.unique(crowd.privacy_aversion), crowd.initial_budget)
    shared = exact.tabulate(terms, exact.table_rows(crowd), crowd.initial_budget)
    assert shared.aversion.size < own.aversion.size
    best, blended = (
        client_utility(played.budget, played.retention, crowd.privacy_aversion, terms)
        for played in (exact.play(table, terms, crowd, in_order=False) for table in (own, shared))
    )
    assert np.abs(best - blended).mean() < 1e-3 * np.abs(best).mean()


@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_finds_nothing_better(seed):
    """A bound on all paths, from other nodes read in another way, is above the solver's answer by at most 1e-4."""
    terms = random_terms(10 + seed, rounds=21)
    crowd = uniform(30, seed, (0.1 * terms.mean_budget[0], 2.0 * terms.mean_budget[0]))
    table = exact.tabulate(terms, exact.table_rows(crowd), crowd.initial_budget)
    played = exact.play(table, terms, crowd, in_order=False)
    earned = np.array(
        [utility(played.budget[:, i], played.retention[:, i], crowd.privacy_aversion[i], terms) for i in range(30)]
    )
    best = best_achievable(played.budget, terms, crowd, earned=earned).at_most
    assert (best - earned).clip(0).mean() <= 1e-4 * np.abs(best).mean()


@pytest.mark.parametrize("bad", [float("nan"), -0.1, 0.0, 1.0, 2.0, None, "0.5", True])
def test_bad_aversions_are_refused(bad):
    with pytest.raises(InvalidInput, match="privacy_aversion"):
        best_response(terms_with([1.0, 1.0], [2.0, 2.0]), bad, 1.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 0.0, None, "1", True])
def test_bad_budgets_are_refused(bad):
    with pytest.raises(InvalidInput, match="initial_budget"):
        best_response(terms_with([1.0, 1.0], [2.0, 2.0]), 0.5, bad)
