"""What a few seeds may say of a claim."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcs.exhibits import claims
from fedpcs.studies.paired import PairedDifference

ABOVE, BELOW, ACROSS = (PairedDifference(mean, mean - 1.0, mean + 1.0, 3) for mean in (2.0, -2.0, 0.5))
EQUAL = PairedDifference(0.0, 0.0, 0.0, 3)


def test_a_claim_is_judged_at_every_place_that_has_the_numbers_for_it() -> None:
    def judge(place: int) -> claims.Judged | None:
        return None if place == 2 else ("agrees", f"found {place}")

    claim = claims.Claim(lambda place: f"claimed of {place}", judge, lambda results: results)
    assert [(one.claim, one.found) for one in claim.findings([1, 2, 3])] == [
        ("claimed of 1", "found 1"),
        ("claimed of 3", "found 3"),
    ]


def test_a_sign_is_told_only_where_the_interval_leaves_zero_out() -> None:
    assert [claims.on_sign(one) for one in (ABOVE, BELOW, ACROSS)] == ["agrees", "differs", "cannot say"]


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([ABOVE, ABOVE], "agrees"),
        ([ABOVE, ACROSS], "in part"),
        ([ABOVE, BELOW], "in part"),
        ([BELOW, ACROSS], "differs"),
        ([BELOW, BELOW], "differs"),
        ([ACROSS, ACROSS], "cannot say"),
    ],
)
def test_several_signs_agree_only_together(differences: list[PairedDifference], verdict: str) -> None:
    assert claims.on_all_signs(differences) == verdict


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
    assert claims.on_level(values, 0.8) == verdict


@pytest.mark.parametrize(
    ("mean", "verdict"), [(0.95, "agrees"), (0.7, "in part"), (0.5, "differs"), (0.9, "cannot say")]
)
def test_a_lower_grade_is_given_only_where_the_full_one_is_ruled_out(mean: float, verdict: str) -> None:
    assert claims.on_grade(mean + np.array([-0.01, 0.0, 0.01]), 0.9, 0.5) == verdict


def test_a_lead_needs_every_rival_behind() -> None:
    assert claims.on_lead([ABOVE, ABOVE], ABOVE, 0.9) == "agrees"
    assert claims.on_lead([ABOVE, ABOVE], ABOVE, 1.5) == "in part"  # ahead for sure, by so much not for sure
    assert claims.on_lead([ABOVE, ACROSS], ACROSS, 1.0) == "cannot say"
    assert claims.on_lead([ABOVE, ACROSS], ACROSS, 1.6) == "differs"  # one rival rules so large a lead out


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
        (EQUAL, EQUAL, "differs"),
        (ABOVE, ACROSS, "cannot say"),
        (ACROSS, BELOW, "cannot say"),
        (BELOW, ACROSS, "cannot say"),
    ],
)
def test_a_bargain_is_more_for_no_more_or_no_less_for_less_and_what_is_undecided_is_not_equal(
    gained: PairedDifference, paid: PairedDifference, verdict: str
) -> None:
    assert claims.on_bargain(gained, paid) == verdict


def test_points_are_hundredths_and_one_pair_has_no_interval() -> None:
    text = claims.points(PairedDifference(0.1, 0.05, 0.15, 3)).replace("\N{NO-BREAK SPACE}", " ")
    assert text == "+10.0 points (95 % interval +5.0 to +15.0, 3 pairs)"
    assert claims.points(PairedDifference(-0.1, -np.inf, np.inf, 1)) == "−10.0 points (one pair, no interval)"
