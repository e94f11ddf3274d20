"""Every design draws whom it says as often as it says: sizes, edges, exact laws by enumeration, frequencies.

Frequencies are held against the binomial law of a client's count, which is exact however rarely it is drawn.
"""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedpcs.errors import InvalidInput
from fedpcs.sampling.designs import (
    DESIGNS,
    FIXED_INCLUSION,
    draw_cohort,
    draw_included,
    earliest,
    gumbel,
    successive_inclusion,
)

FIXED_SIZE = ("pivotal", "systematic", "gumbel")
ALPHA = 1e-4
sizes = st.lists(
    st.one_of(st.floats(1e-12, 1e12), st.sampled_from([0.0, 1.0, 1.0, 5.0])), min_size=1, max_size=20
).filter(any)
seeds = st.integers(0, 2**32)
quick = settings(max_examples=25, deadline=None)


def shares(size):
    return np.asarray(size, float) / np.sum(size)


def spread_out(num_clients, kind):
    """Budgets at equal steps of their law: the population that random ones scatter around."""
    level = (np.arange(num_clients) + 0.5) / num_clients
    return 0.01 + 11.99 * level if kind == "uniform" else 0.01 * 1200.0**level


def counts(draw, num_clients, repeats):
    """How often each client is in the cohort that `draw` returns."""
    found = np.zeros(num_clients)
    for _ in range(repeats):
        found[draw()] += 1
    return found


def least_likely(count, repeats, probability):
    """Two-sided binomial tail of the most surprising count, corrected for how many there are."""
    tail = np.minimum(stats.binom.cdf(count, repeats, probability), stats.binom.sf(count - 1, repeats, probability))
    return float(2 * tail.min() * count.size)


def root_mean_square_score(count, repeats, probability):
    uncertain = (probability > 0) & (probability < 1 - 1e-9)
    p = probability[uncertain]
    return float(np.sqrt(np.mean((count[uncertain] - repeats * p) ** 2 / (repeats * p * (1 - p)))))


def cohort_law(draw_probability, cohort_size):
    """Probability of every cohort drawn one after another, summed over the orders it can come in."""
    law = {}
    for order in itertools.permutations(range(draw_probability.size), cohort_size):
        left, probability = 1.0, 1.0
        for client in order:
            probability *= draw_probability[client] / left
            left -= draw_probability[client]
        cohort = tuple(sorted(order))
        law[cohort] = law.get(cohort, 0.0) + probability
    return law


def exact_inclusion(draw_probability, cohort_size, num_nodes=40):
    """π_i = ∫ x_i·exp(−x_i·t)·P(fewer than K others before t) dt, others counted by their Poisson-binomial law."""
    x = draw_probability
    least = np.argmin(x)
    middle = -np.log1p(-successive_inclusion(x, cohort_size)[least]) / x[least]
    node, weight = np.polynomial.legendre.leggauss(num_nodes)
    v = (node + 1) / 2
    t, step = middle * v / (1 - v), weight / 2 * middle / (1 - v) ** 2
    came = -np.expm1(-np.outer(x, t))
    others = np.zeros((x.size, cohort_size, num_nodes))
    others[:, 0] = 1.0
    for client in range(x.size):
        following = others * (1 - came[client])
        following[:, 1:] += others[:, :-1] * came[client]
        following[client] = others[client]
        others = following
    return (x[:, None] * (1 - came) * others.sum(axis=1)) @ step


@pytest.mark.parametrize("design", FIXED_SIZE)
@quick
@given(sizes, st.integers(1, 35), seeds)
def test_a_cohort_is_as_large_as_asked_distinct_and_ascending(design, sizes, cohort_size, seed):
    size = np.array(sizes)
    cohort = draw_cohort(design, size, cohort_size, np.random.default_rng(seed))
    assert cohort.clients.size == min(cohort_size, np.count_nonzero(size))
    assert (np.diff(cohort.clients) > 0).all()
    assert (size[cohort.clients] > 0).all()
    assert cohort.inclusion.shape == size.shape
    assert cohort.expansion.shape == cohort.clients.shape
    assert (cohort.expansion >= 1.0 - 1e-12).all()


@pytest.mark.parametrize("design", ["poisson", "with-replacement"])
@quick
@given(sizes, st.integers(1, 35), seeds)
def test_a_cohort_of_random_size_is_distinct_ascending_and_leaves_out_size_zero(design, sizes, cohort_size, seed):
    size = np.array(sizes)
    cohort = draw_cohort(design, size, cohort_size, np.random.default_rng(seed))
    assert (np.diff(cohort.clients) > 0).all()
    assert (size[cohort.clients] > 0).all()
    assert (np.isfinite(cohort.expansion) & (cohort.expansion > 0)).all()
    assert ((cohort.inclusion >= 0) & (cohort.inclusion <= 1)).all()
    assert (cohort.inclusion[size == 0] == 0).all()


@pytest.mark.parametrize("design", FIXED_INCLUSION)
@quick
@given(st.lists(st.floats(1e-3, 1.0), min_size=4, max_size=20), seeds)
def test_certain_clients_are_always_there(design, sizes, seed):
    size = np.array([*sizes, 1e4, 2e4, 1e6])
    cohort = draw_cohort(design, size, 4, np.random.default_rng(seed))
    certain = np.flatnonzero(cohort.inclusion == 1.0)
    assert set(certain) >= {size.size - 3, size.size - 2, size.size - 1}
    assert set(certain) <= set(cohort.clients)
    assert (cohort.expansion[np.isin(cohort.clients, certain)] == 1.0).all()


@pytest.mark.parametrize("design", [*FIXED_SIZE, "poisson"])
@pytest.mark.parametrize("cohort_size", [3, 4, 100])
def test_everyone_who_can_be_drawn_is_drawn_when_there_are_no_more(design, cohort_size):
    size = np.array([0.0, 1e-12, 3.0, 0.0, 1e12])
    for seed in range(20):
        cohort = draw_cohort(design, size, cohort_size, np.random.default_rng(seed))
        assert cohort.clients.tolist() == [1, 2, 4]
        assert cohort.inclusion == pytest.approx([0, 1, 1, 0, 1])
        assert cohort.expansion == pytest.approx([1, 1, 1])


@pytest.mark.parametrize("design", DESIGNS)
def test_a_seed_gives_the_same_cohort_again_and_another_seed_another(design):
    size = np.random.default_rng(1).uniform(0.1, 12.0, 200)
    one, again, other = (draw_cohort(design, size, 40, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(one.clients, again.clients)
    assert np.array_equal(one.expansion, again.expansion)
    assert not np.array_equal(one.clients, other.clients)


@pytest.mark.parametrize(("num_clients", "cohort_size", "repeats"), [(12, 5, 1_500), (2_000, 400, 200)])
@pytest.mark.parametrize("design", FIXED_INCLUSION)
def test_clients_come_as_often_as_their_inclusion_says(design, num_clients, cohort_size, repeats):
    size = np.random.default_rng(2).uniform(0.5, 12.0, num_clients)
    size[::7] *= 8
    rng = np.random.default_rng(num_clients)
    inclusion = draw_cohort(design, size, cohort_size, rng).inclusion
    assert (inclusion == 1.0).any()
    assert inclusion.sum() == pytest.approx(cohort_size)
    count = counts(lambda: draw_included(design, inclusion, rng).clients, num_clients, repeats)
    assert least_likely(count, repeats, inclusion) > ALPHA
    if num_clients == 2_000:
        assert root_mean_square_score(count, repeats, inclusion) == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("design", FIXED_INCLUSION)
def test_a_sum_that_is_not_whole_gives_one_size_or_the_next_and_exact_frequencies(design):
    inclusion = np.array([0.3, 0.45, 0.9, 0.0, 0.2, 0.65, 1.0, 0.07])  # adds up to 3.57
    rng = np.random.default_rng(6)
    drawn = [draw_included(design, inclusion, rng) for _ in range(1_500)]
    count = np.bincount(np.concatenate([cohort.clients for cohort in drawn]), minlength=8)
    assert least_likely(count, 1_500, inclusion) > ALPHA
    size = np.array([cohort.clients.size for cohort in drawn])
    if design == "poisson":
        assert size.min() < 3
        assert size.max() > 4
    else:
        assert set(size) == {3, 4}
        assert least_likely(np.array([(size == 4).sum()]), 1_500, np.array([0.57])) > ALPHA
    for cohort in drawn[:20]:
        assert cohort.expansion == pytest.approx(1 / inclusion[cohort.clients])


@pytest.mark.parametrize("design", FIXED_SIZE)
def test_any_two_clients_can_meet(design):
    """Neighbours in a fixed order never would: half of them duel, or lie less than a step apart."""
    rng = np.random.default_rng(9)
    met = np.zeros((4, 4))
    for _ in range(200):
        clients = draw_cohort(design, np.ones(4), 2, rng).clients
        met[np.ix_(clients, clients)] += 1
    pairs = met[np.triu_indices(4, 1)]
    assert least_likely(pairs, 200, np.full(6, 1 / 6)) > ALPHA


def test_duels_keep_clients_apart_rather_than_together():
    """π_ij ≤ π_i·π_j: what makes a pivotal cohort's sums steadier than independent draws."""
    size = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    rng = np.random.default_rng(10)
    drawn = np.zeros((1_500, 6))
    for row in drawn:
        row[draw_cohort("pivotal", size, 3, rng).clients] = 1
    together = (drawn.T @ drawn)[np.triu_indices(6, 1)]
    apart = np.outer(size, size)[np.triu_indices(6, 1)] / 49
    assert (stats.binom.sf(together - 1, 1_500, apart) > ALPHA / 15).all()
    assert together.sum() == 1_500 * 3


@functools.cache
def successive_cohorts(source, num_clients, cohort_size, repeats):
    x = shares(np.arange(1.0, num_clients + 1) ** 1.5)
    rng = np.random.default_rng(num_clients)
    draws = {
        "gumbel": lambda: gumbel(x, cohort_size, rng).clients,
        "numpy": lambda: np.sort(rng.choice(num_clients, cohort_size, replace=False, p=x)),
    }
    found = {}
    for _ in range(repeats):
        cohort = tuple(map(int, draws[source]()))
        found[cohort] = found.get(cohort, 0) + 1
    law = cohort_law(x, cohort_size)
    return np.array([found.get(cohort, 0) for cohort in law]), np.array(list(law.values()))


@pytest.mark.parametrize(("num_clients", "cohort_size"), [(4, 2), (5, 2), (5, 3), (6, 3)])
def test_clocks_draw_every_cohort_as_often_as_draws_one_after_another(num_clients, cohort_size):
    found, law = successive_cohorts("gumbel", num_clients, cohort_size, 2_000)
    assert law.sum() == pytest.approx(1.0)
    assert least_likely(found, 2_000, law) > ALPHA
    common = law * 2_000 > 5
    rest = [found[~common].sum()], [law[~common].sum()]
    observed, expected = np.append(found[common], rest[0]), 2_000 * np.append(law[common], rest[1])
    kept = expected > 0
    assert stats.chisquare(observed[kept], expected[kept]).pvalue > ALPHA


@pytest.mark.parametrize(("num_clients", "cohort_size"), [(4, 2), (5, 3), (6, 3)])
def test_the_reference_by_quadrature_is_the_one_by_enumeration(num_clients, cohort_size):
    x = shares(np.arange(1.0, num_clients + 1) ** 1.5)
    by_enumeration = np.zeros(num_clients)
    for cohort, probability in cohort_law(x, cohort_size).items():
        by_enumeration[list(cohort)] += probability
    assert exact_inclusion(x, cohort_size) == pytest.approx(by_enumeration, rel=1e-10)


@pytest.mark.parametrize("ratio", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("kind", ["uniform", "log-uniform"])
@pytest.mark.parametrize(("num_clients", "accuracy"), [(20, 0.12), (100, 0.02)])
def test_rosen_is_as_near_as_stated(num_clients, accuracy, kind, ratio):
    x = shares(spread_out(num_clients, kind))
    cohort_size = round(ratio * num_clients)
    exact = exact_inclusion(x, cohort_size)
    assert exact.sum() == pytest.approx(cohort_size)
    found = successive_inclusion(x, cohort_size)
    assert found.sum() == pytest.approx(cohort_size, rel=1e-9)
    assert found == pytest.approx(exact, rel=accuracy)


@quick
@given(st.lists(st.floats(0.01, 12.0), min_size=3, max_size=20), seeds)
def test_a_clock_cohort_is_the_earliest_and_stands_for_what_the_next_arrival_says(sizes, seed):
    x = shares(sizes)
    arrival = np.random.default_rng(seed).standard_exponential(x.size) / x
    order = np.argsort(arrival)
    cohort = gumbel(x, 2, np.random.default_rng(seed))
    clients, next_arrival = earliest(x, 2, np.random.default_rng(seed))
    assert cohort.clients.tolist() == clients.tolist() == sorted(order[:2])
    assert next_arrival == arrival[order[2]]
    assert cohort.expansion == pytest.approx(1 / (1 - np.exp(-x[cohort.clients] * next_arrival)), rel=1e-9)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    ("size", "message"),
    [
        ([1.0, np.nan], r"size\[1\].*nan"),
        ([-0.5, 2.0], r"size\[0\].*-0\.5"),
        ([0.0, 0.0], "only zeros"),
        ([[1.0]], r"shape \(1, 1\)"),
    ],
)
def test_impossible_sizes_are_refused_by_name(design, size, message):
    with pytest.raises(InvalidInput, match=message):
        draw_cohort(design, np.array(size), 1, np.random.default_rng(0))


@quick
@given(st.integers(1, 60), st.integers(2, 400), seeds)
def test_duels_and_steps_hit_the_size_though_sums_round(num_whole, num_clients, seed):
    """Σπ is whole only up to rounding, at 400 clients by some 1e-14; no cohort may lose or gain a client by it."""
    rng = np.random.default_rng(seed)
    cohort_size = min(num_whole, num_clients)
    size = 10.0 ** rng.uniform(-9, 0, num_clients)
    for design in ("pivotal", "systematic"):
        assert draw_cohort(design, size, cohort_size, rng).clients.size == cohort_size
