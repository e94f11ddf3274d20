"""π_i = min(1, c·s_i) with Σ π_i = K: golden vectors, edges, and the properties that define it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs._inclusion import inclusion_probability
from fedpcs.errors import InvalidInput

GOLDEN = [
    ([1, 2, 3, 4], 2, [0.2, 0.4, 0.6, 0.8]),
    ([1, 1, 1, 10], 2, [1 / 3, 1 / 3, 1 / 3, 1]),
    ([1, 2, 4, 8, 16, 32], 3, [1 / 15, 2 / 15, 4 / 15, 8 / 15, 1, 1]),
    ([5, 5, 5, 5], 2, [0.5] * 4),
    ([3, 0, 1], 2, [1, 0, 1]),
    ([7], 1, [1]),
]
LEAST_VARIANCE = [([1, 2, 3, 4], 2, 20), ([1, 1, 1, 10], 2, 6), ([1, 2, 4, 8, 16, 32], 3, 140), ([5, 5, 5, 5], 2, 100)]
awkward_sizes = st.lists(
    st.one_of(st.floats(1e-12, 1e12), st.sampled_from([0.0, 1.0, 1.0, 2.0, 1e-12, 1e12])), min_size=1, max_size=25
).filter(any)
quick = settings(max_examples=40, deadline=None)


def optimal_by_search(norms, cohort):
    """OCS in exact arithmetic: the largest l with 0 < m + l − n ≤ Σ_{j≤l} a_(j) / a_(l), tried one by one."""
    order = sorted(range(len(norms)), key=lambda i: norms[i])
    a = [Fraction(norms[i]) for i in order]
    n = len(a)
    uncertain = max(
        num for num in range(1, n + 1) if cohort + num > n and (cohort + num - n) * a[num - 1] <= sum(a[:num])
    )
    found = [1.0] * n
    for rank in range(uncertain):
        found[order[rank]] = float((cohort + uncertain - n) * a[rank] / sum(a[:uncertain]))
    return np.array(found)


def filled_by_bisection(size, cohort):
    """c by halving an interval around the root of Σ min(1, c·s) = K, with no sorting at all."""
    low, high = np.log(cohort / size.sum()), np.log(1.0 / size[size > 0].min())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1.0, np.exp(middle) * size).sum() < cohort else (low, middle)
    return np.minimum(1.0, np.exp(high) * size)


def variance(norms, inclusion):
    """V(p) = Σ (1 − p)/p·a² of independent draws."""
    drawn = inclusion > 0
    return float(np.sum((1 - inclusion[drawn]) / inclusion[drawn] * np.asarray(norms, float)[drawn] ** 2))


@pytest.mark.parametrize(("size", "cohort", "expected"), GOLDEN)
def test_golden_vectors(size, cohort, expected):
    assert inclusion_probability(np.array(size, float), cohort) == pytest.approx(expected)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40),
    st.floats(0.01, 1.0),
)
def test_it_adds_up_is_capped_and_proportional_below_the_cap(sizes, ratio):
    size = np.array(sizes)
    cohort = max(1, round(ratio * size.size))
    found = inclusion_probability(size, cohort)
    assert found.sum() == pytest.approx(cohort, rel=1e-9)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    below = found < 1.0 - 1e-9
    if below.sum() > 1:
        ratio_to_size = found[below] / size[below]
        assert ratio_to_size == pytest.approx(np.full(below.sum(), ratio_to_size[0]), rel=1e-6)
    # No uncertain client may be larger than a certain one.
    if below.any() and (~below).any():
        assert size[below].max() <= size[~below].min() * (1 + 1e-9)


def test_weights_stand_for_copies():
    once = inclusion_probability(np.array([1.0, 1.0, 4.0, 9.0, 9.0]), 3)
    merged = inclusion_probability(np.array([1.0, 4.0, 9.0]), 3, np.array([2.0, 1.0, 2.0]))
    assert merged == pytest.approx(once[[0, 2, 3]])


def test_everyone_when_the_cohort_is_everyone():
    assert inclusion_probability(np.array([0.3, 5.0, 1e-9]), 3) == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize("cohort", [0, -1, 4, float("nan")])
def test_impossible_cohorts_are_refused(cohort):
    with pytest.raises(InvalidInput, match="cohort_size"):
        inclusion_probability(np.array([1.0, 2.0, 3.0]), cohort)


@pytest.mark.parametrize("size", [[1.0, np.nan], [-1.0, 2.0], [[1.0]]])
def test_impossible_sizes_are_refused(size):
    with pytest.raises(InvalidInput, match="size"):
        inclusion_probability(np.array(size), 1)


@quick
@given(awkward_sizes, st.floats(0.0, 1.0))
def test_it_is_the_optimal_sampling_of_chen_et_al(sizes, ratio):
    cohort = max(1, round(ratio * np.count_nonzero(sizes)))
    found = inclusion_probability(np.array(sizes), cohort)
    assert found == pytest.approx(optimal_by_search(sizes, cohort), rel=1e-9, abs=1e-300)
    assert found.sum() == pytest.approx(cohort, abs=1e-9 * len(sizes))


@pytest.mark.parametrize(("size", "cohort", "expected"), LEAST_VARIANCE)
def test_golden_variances(size, cohort, expected):
    assert variance(size, inclusion_probability(np.array(size, float), cohort)) == pytest.approx(expected)


@quick
@given(st.lists(st.floats(0.1, 10.0), min_size=3, max_size=12), st.integers(0, 2**32), st.floats(0.0, 1.0))
def test_no_other_probabilities_of_the_same_sum_have_less_variance(sizes, seed, share):
    size = np.array(sizes)
    cohort = size.size // 2
    found = inclusion_probability(size, cohort)
    other = inclusion_probability(np.random.default_rng(seed).uniform(0.1, 10.0, size.size), cohort)
    mixed = share * other + (1 - share) * found
    assert variance(size, mixed) >= variance(size, found) * (1 - 1e-9)


@quick
@given(awkward_sizes, st.floats(0.0, 1.0), st.randoms(use_true_random=False))
def test_clients_in_another_order_have_the_same_probabilities(sizes, ratio, random):
    size = np.array(sizes)
    cohort = max(1, round(ratio * np.count_nonzero(size)))
    order = random.sample(range(size.size), size.size)
    assert inclusion_probability(size[order], cohort) == pytest.approx(
        inclusion_probability(size, cohort)[order], rel=1e-9, abs=1e-300
    )


@quick
@given(awkward_sizes.filter(lambda sizes: len(sizes) > 1), st.floats(0.0, 1.0), st.floats(1.0, 100.0))
def test_a_larger_size_never_means_a_smaller_probability(sizes, ratio, factor):
    size = np.array(sizes)
    cohort = max(1, round(ratio * np.count_nonzero(size)))
    found = inclusion_probability(size, cohort)
    order = np.argsort(size, kind="stable")
    assert (np.diff(found[order]) >= 0.0).all()
    grown = size.copy()
    grown[0] *= factor
    after = inclusion_probability(grown, cohort)
    assert after[0] >= found[0] * (1 - 1e-12)
    assert (after[1:] <= found[1:] * (1 + 1e-12)).all()


LARGE = {
    "uniform": lambda rng, n: rng.uniform(0.01, 12.0, n),
    "24 decades": lambda rng, n: 10.0 ** rng.uniform(-12, 12, n),
    "heavy ties": lambda rng, n: rng.choice([1e-12, 1.0, 1.0, 3.0, 1e12], n),
    "all but a few alike": lambda rng, n: np.where(np.arange(n) % 997 == 0, 50.0, 1.0),
    "zeros": lambda rng, n: rng.choice([0.0, 0.5, 2.0], n),
    "two values at the threshold": lambda rng, n: np.where(np.arange(n) < n // 100, 1.0, 1.0 / (n - n // 100)),
}


@pytest.mark.parametrize("cohort", [1, 2, 50, 1_000, 4_999])
@pytest.mark.parametrize("kind", LARGE)
def test_sorting_only_the_largest_is_as_good_as_not_sorting(kind, cohort):
    size = LARGE[kind](np.random.default_rng(5), 5_000)
    cohort = min(cohort, np.count_nonzero(size))
    found = inclusion_probability(size, cohort)
    assert found == pytest.approx(filled_by_bisection(size, cohort), rel=1e-9, abs=1e-300)
    assert found.sum() == pytest.approx(cohort, abs=1e-9 * size.size)


@pytest.mark.parametrize("scale", [1e308, 1e-310])
def test_sizes_near_the_ends_of_floats_are_sizes_like_others(scale):
    found = inclusion_probability(np.array([0.25, 0.25, 0.5, 1.0]) * scale, 2)
    assert found == pytest.approx([0.25, 0.25, 0.5, 1.0])
