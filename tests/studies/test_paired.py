"""Means over seeds and paired differences, against closed forms and SciPy's own test."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedpcs.errors import InvalidInput
from fedpcs.studies.paired import mean_and_std, paired_difference


def test_one_value_has_no_spread() -> None:
    assert mean_and_std([7.0]) == (7.0, None)


def test_two_pairs_give_the_closed_form() -> None:
    """With one degree of freedom t is Cauchy: its 97.5 % point is tan(0.475π), and s/√2 is half the gap."""
    found = paired_difference([1.0, 4.0], [0.0, 1.0])
    reach = math.tan(0.475 * math.pi) * 1.0
    assert found.mean == pytest.approx(2.0)
    assert found.low == pytest.approx(2.0 - reach)
    assert found.high == pytest.approx(2.0 + reach)
    assert found.num_pairs == 2


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("num_pairs", [2, 3, 10])
def test_the_interval_is_scipy_s(num_pairs: int, confidence: float) -> None:
    rng = np.random.default_rng(num_pairs)
    a, b = rng.normal(1.0, 2.0, num_pairs), rng.normal(0.0, 1.0, num_pairs)
    found = paired_difference(a, b, confidence)
    twin = stats.ttest_rel(a, b).confidence_interval(confidence)
    assert (found.low, found.high) == pytest.approx((twin.low, twin.high))


def test_swapping_trials_turns_the_interval_round() -> None:
    one, other = paired_difference([2.0, 3.0, 9.0], [1.0, 1.0, 1.0]), paired_difference([1.0] * 3, [2.0, 3.0, 9.0])
    assert (other.mean, other.low, other.high) == pytest.approx((-one.mean, -one.high, -one.low))


def test_equal_differences_leave_no_doubt_and_one_pair_leaves_nothing_else() -> None:
    sure = paired_difference([2.0, 3.0], [1.0, 2.0])
    assert (sure.low, sure.high) == (1.0, 1.0)
    assert sure.is_above
    lone = paired_difference([5.0], [1.0])
    assert (lone.mean, lone.low, lone.high) == (4.0, -math.inf, math.inf)
    assert not lone.is_above
    assert not lone.is_below


@pytest.mark.parametrize(("resolution", "std"), [(0.5, 1.0), (1.0, 1.0), (2.0, 2.0)])
def test_a_deviation_below_the_resolution_is_not_believed(resolution: float, std: float) -> None:
    found = paired_difference([4.0, 5.0, 6.0], [0.0, 0.0, 0.0], resolution=resolution)
    reach = stats.t.ppf(0.975, 2) * std / math.sqrt(3.0)
    assert (found.low, found.high) == pytest.approx((5.0 - reach, 5.0 + reach))


@pytest.mark.parametrize(
    ("a", "b", "confidence", "words"),
    [
        ([], [], 0.95, "a must be"),
        ([1.0, 2.0], [1.0], 0.95, "2 entries"),
        ([1.0, math.nan], [1.0, 2.0], 0.95, r"a\[1\]"),
        ([1.0, 2.0], [1.0, math.inf], 0.95, r"b\[1\]"),
        ([1.0, 2.0], [1.0, 2.0], 1.0, "confidence"),
        ([1.0, 2.0], [1.0, 2.0], 0.0, "confidence"),
        ([1.0, 2.0], [1.0, 2.0], math.nan, "confidence"),
        (["x"], [1.0], 0.95, "a must be"),
    ],
)
def test_bad_input_is_refused_by_name(a: list, b: list, confidence: float, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        paired_difference(a, b, confidence)


def test_no_values_have_no_mean() -> None:
    with pytest.raises(InvalidInput, match="values"):
        mean_and_std([])
