"""π_i = min(1, c·s_i) with Σ π_i = K: golden vectors, edges, and the properties that define it."""

import numpy as np
import pytest
from hypothesis import given
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
