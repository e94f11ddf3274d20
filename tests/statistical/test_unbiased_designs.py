"""Weighted cohorts estimate the mean over all clients: without bias where a rule says so, with bias where it does not.

Clients of tiny budget are drawn once in hundreds of rounds and then count a thousandfold, which makes sample standard
errors worthless. So estimates are checked with a fifth of the draw uniform (π ≥ 0.2·τ), and budgets as they are client
by client, against the exact law of each client's count.
"""

import functools

import numpy as np
import pytest
from scipy import stats

from fedpcs.sampling import draw, make_sampler, make_view, weigh
from fedpcs.sampling.designs import draw_cohort, gumbel

NUM_CLIENTS = 40
EXACT = ("pivotal", "systematic", "poisson", "gumbel", "with-replacement")
RATIOS = (0.2, 0.5, 0.8)
KINDS = ("uniform", "log-uniform")
REPEATS = 200
# 150 coordinates are held against it: a correct design passes 4 on one of them in a hundred seeds.
Z = 4.0
# Table 8.1: Σ of the printed weights on average over draws, N = 100, equal data.
PRINTED = {
    ("uniform", 0.2): 1.04,
    ("uniform", 0.5): 1.12,
    ("uniform", 0.8): 1.35,
    ("log-uniform", 0.2): 1.30,
    ("log-uniform", 0.5): 3.26,
    ("log-uniform", 0.8): 11.4,
}


def budgets(kind, level):
    """Quantiles of the law of budgets."""
    return 0.01 + 11.99 * level if kind == "uniform" else 0.01 * 1200.0**level


@functools.cache
def population(kind):
    """Budgets, data sizes, and updates that go up with the budget, so that whom a design favours shows."""
    rng = np.random.default_rng(2024)
    ρ = budgets(kind, rng.random(NUM_CLIENTS))
    held = rng.integers(20, 500, NUM_CLIENTS)
    updates = rng.normal(0.3, 1.0, (NUM_CLIENTS, 5)) + 0.3 * np.log(ρ)[:, None]
    return ρ, held, updates


@functools.cache
def estimates(kind, ratio, design, rule, repeats=REPEATS, floor=0.2):
    """Σ w_i u_i of many rounds, and what they should be on average."""
    ρ, held, updates = population(kind)
    view = make_view(round(ratio * NUM_CLIENTS), held, budget=ρ)
    sampler = make_sampler("fedpcs", design=design, floor=floor)
    rng = np.random.default_rng([EXACT.index(design), round(10 * ratio)])
    found = np.empty((repeats, updates.shape[1]))
    for row in found:
        cohort = draw(sampler, view, rng)
        row[:] = weigh(rule, cohort, view) @ updates[cohort.clients]
    return found, view.data_weight @ updates


def scores(found, target):
    return (found.mean(axis=0) - target) / (found.std(axis=0, ddof=1) / np.sqrt(len(found)))


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("design", EXACT)
def test_horvitz_thompson_is_right_on_average(design, kind, ratio):
    assert np.abs(scores(*estimates(kind, ratio, design, "horvitz-thompson"))).max() < Z


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("design", ["pivotal", "systematic", "poisson", "with-replacement"])
def test_every_client_stands_for_one_on_average_however_small_its_budget(design, kind, ratio):
    """Σ over rounds of 1{i drawn}·e_i is a count over π_i, or over K·x_i, and counts are binomial."""
    ρ, _, _ = population(kind)
    cohort_size, repeats = round(ratio * NUM_CLIENTS), 150
    rng = np.random.default_rng(cohort_size)
    stood_for = np.zeros(NUM_CLIENTS)
    for _ in range(repeats):
        cohort = draw_cohort(design, ρ, cohort_size, rng)
        stood_for[cohort.clients] += cohort.expansion
    if design == "with-replacement":
        trials, probability = repeats * cohort_size, ρ / ρ.sum()
        times = stood_for * cohort_size * probability
    else:
        trials, probability = repeats, cohort.inclusion
        times = stood_for * probability
    assert times == pytest.approx(np.round(times), abs=1e-6)
    times = np.round(times)
    tail = np.minimum(stats.binom.cdf(times, trials, probability), stats.binom.sf(times - 1, trials, probability))
    assert 2 * NUM_CLIENTS * tail.min() > 1e-3


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_rank_conditioning_stands_for_one_on_average_with_the_variance_it_should_have(kind, ratio):
    """Given the K-th arrival T among the others, 1{i drawn}·e_i is 0 or 1/p with p = 1 − exp(−x_i·T)."""
    ρ, _, _ = population(kind)
    x, cohort_size, repeats = ρ / ρ.sum(), round(ratio * NUM_CLIENTS), 600
    rng = np.random.default_rng(cohort_size)
    arrival = rng.standard_exponential((8_000, NUM_CLIENTS)) / x
    kth, after = np.partition(arrival, (cohort_size - 1, cohort_size), axis=1)[:, cohort_size - 1 : cohort_size + 1].T
    among_others = np.where(arrival <= kth[:, None], after[:, None], kth[:, None])
    p = -np.expm1(-x * among_others)
    variance, expected_count = np.mean(1 / p, axis=0) - 1, repeats * p.mean(axis=0)
    found = np.zeros(NUM_CLIENTS)
    for _ in range(repeats):
        cohort = gumbel(x, cohort_size, rng)
        found[cohort.clients] += cohort.expansion
    common = (expected_count > 20) & (variance > 1e-6)
    assert common.sum() >= NUM_CLIENTS // 2
    score = (found[common] / repeats - 1) / np.sqrt(variance[common] / repeats)
    assert np.abs(score).max() < Z
    assert 0.6 < np.sqrt(np.mean(score**2)) < 1.4
    certain = variance <= 1e-6
    assert found[certain] == pytest.approx(np.full(certain.sum(), repeats), rel=1e-3)


@pytest.mark.parametrize("cohort_size", [5, 7])
def test_rank_conditioning_leaves_no_covariance_between_clients(cohort_size):
    """E[z_i·z_j] = 1 for z_i = 1{i drawn}·e_i; from K = 4 on, z_i·z_j has a variance to measure it by."""
    x = np.linspace(1.0, 2.5, 10)
    x /= x.sum()
    rng = np.random.default_rng(cohort_size)
    z = np.zeros((2_000, x.size))
    for row in z:
        cohort = gumbel(x, cohort_size, rng)
        row[cohort.clients] = cohort.expansion
    first, second = np.triu_indices(x.size, 1)
    assert np.abs(scores(z[:, first] * z[:, second], 1.0)).max() < Z
    # What a design of fixed size without such weights has: sums that do not vary, so covariances that are not zero.
    assert z.sum(axis=1).var() == pytest.approx(z.var(axis=0).sum(), rel=0.25)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_printed_rule_is_right_for_draws_with_replacement(kind, ratio):
    assert np.abs(scores(*estimates(kind, ratio, "with-replacement", "paper"))).max() < Z


def printed_weight_sums(kind, ratio, num_populations, repeats):
    """Mean Σw of the printed rule on cohorts without replacement, over rounds, for each of several populations.

    Each has one budget in every hundredth of the law; budgets drawn freely would make the sums scatter by a quarter.
    """
    rng = np.random.default_rng([KINDS.index(kind), round(10 * ratio)])
    sampler = make_sampler("fedpcs", design="gumbel")
    found = np.zeros((num_populations, repeats))
    for row in found:
        level = (np.arange(100) + rng.random(100)) / 100
        view = make_view(round(100 * ratio), np.ones(100), budget=budgets(kind, level))
        row[:] = [weigh("paper", draw(sampler, view, rng), view).sum() for _ in range(repeats)]
    return found


def test_the_printed_rule_fails_without_replacement():
    sums = printed_weight_sums("log-uniform", 0.8, num_populations=3, repeats=60)
    assert sums.mean(axis=1).min() > 5.0
    assert np.abs(scores(sums.T, 1.0)).min() > 10.0
    found, target = estimates("log-uniform", 0.8, "gumbel", "paper", floor=0.0)
    assert np.abs(scores(found, target)).max() > 10.0
    sound, _ = estimates("log-uniform", 0.8, "gumbel", "horvitz-thompson", floor=0.2)
    assert np.linalg.norm(found.mean(axis=0) - target) > 10 * np.linalg.norm(sound.mean(axis=0) - target)


@pytest.mark.parametrize("design", EXACT)
def test_hajek_weights_add_up_to_one_in_every_round(design):
    ρ, held, _ = population("log-uniform")
    view = make_view(12, held, budget=ρ)
    rng = np.random.default_rng(1)
    for _ in range(50):
        cohort = draw(make_sampler("fedpcs", design=design), view, rng)
        assert weigh("hajek", cohort, view).sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("design", ["pivotal", "systematic", "gumbel"])
def test_hajek_errs_less_than_it_scatters_and_scatters_less_than_horvitz_thompson(design):
    found, target = estimates("log-uniform", 0.5, design, "hajek")
    unbiased, _ = estimates("log-uniform", 0.5, design, "horvitz-thompson")
    assert np.linalg.norm(found.mean(axis=0) - target) < 0.5 * np.sqrt(found.var(axis=0).sum())
    assert found.var(axis=0).sum() < unbiased.var(axis=0).sum()


def test_normalised_weights_lean_towards_whoever_is_drawn_often():
    found, target = estimates("log-uniform", 0.2, "pivotal", "normalised")
    bias = scores(found, target)
    assert bias.max() > 10.0
    assert (bias > 0.0).all()  # updates go up with the budget, and so does being drawn
