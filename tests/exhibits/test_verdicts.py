"""What a few seeds may say of a claim."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcs.exhibits import verdicts
from fedpcs.studies.paired import PairedDifference

ABOVE, BELOW, ACROSS = (PairedDifference(mean, mean - 1.0, mean + 1.0, 3) for mean in (2.0, -2.0, 0.5))
EQUAL = PairedDifference(0.0, 0.0, 0.0, 3)


def test_a_sign_is_told_only_where_the_interval_leaves_zero_out() -> None:
    assert [verdicts.on_sign(one) for one in (ABOVE, BELOW, ACROSS)] == ["agrees", "differs", "cannot say"]


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.82, 0.83, 0.84], "agrees"),
        ([0.76, 0.77, 0.78], "differs"),
        ([0.78, 0.81, 0.84], "cannot say"),
        ([0.9], "cannot say"),
    ],
)
def test_a_level_is_reached_only_for_sure(values: list[float], verdict: str) -> None:
    assert verdicts.on_level(values, 0.8) == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.95, "agrees"), (0.7, "in part"), (0.5, "differs"), (0.9, "cannot say")]
)
def test_a_lower_grade_is_given_only_where_the_full_one_is_ruled_out(mean: float, verdict: str) -> None:
    assert verdicts.on_grade(mean + np.array([-0.01, 0.0, 0.01]), 0.9, 0.5) == verdict


def test_a_lead_needs_every_rival_behind() -> None:
    assert verdicts.on_lead([ABOVE, ABOVE], ABOVE, 0.9) == "agrees"
    assert verdicts.on_lead([ABOVE, ABOVE], ABOVE, 1.5) == "in part"  # ahead for sure, by so much not for sure
    assert verdicts.on_lead([ABOVE, ABOVE], ABOVE, 2.5) == "in part"
    assert verdicts.on_lead([ABOVE, ACROSS], ACROSS, 1.0) == "cannot say"
    assert verdicts.on_lead([ABOVE, ACROSS], ACROSS, 1.6) == "differs"  # one rival rules so large a lead out


@pytest.mark.parametrize(
    ("gained", "paid", "verdict"),
    [
        (ABOVE, BELOW, "agrees"),
        (ABOVE, EQUAL, "agrees"),
        (EQUAL, BELOW, "agrees"),
        (ABOVE, ABOVE, "in part"),
        (BELOW, BELOW, "in part"),
        (BELOW, ABOVE, "differs"),
        (EQUAL, ABOVE, "differs"),
        (BELOW, EQUAL, "differs"),
        (EQUAL, EQUAL, "differs"),
        (PairedDifference(2.0, 0.1, 4.0, 3), PairedDifference(1.0, -0.1, 2.1, 3), "cannot say"),
        (ABOVE, ACROSS, "cannot say"),
        (ACROSS, BELOW, "cannot say"),
        (ACROSS, ABOVE, "cannot say"),
        (BELOW, ACROSS, "cannot say"),
        (ACROSS, ACROSS, "cannot say"),
    ],
)
def test_a_bargain_is_more_for_no_more_or_no_less_for_less_and_what_is_undecided_is_not_equal(
    gained: PairedDifference, paid: PairedDifference, verdict: str
) -> None:
    assert verdicts.on_bargain(gained, paid) == verdict
