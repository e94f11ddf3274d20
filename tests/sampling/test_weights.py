"""Every rule gives the weights of its formula, caps hold, and what a rule lacks it asks for by name."""

import numpy as np
import pytest
from hand_made import BIASED
from hand_made import TWO as DRAWN
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import RULES, draw, limit_share, make_sampler, make_view, settle_rule, weigh
from fedpcs.sampling.drawn import Draw

VIEW = make_view(2, [10, 20, 30, 40])
BY_HAND = {
    "own": [0.7, 0.4],
    "horvitz-thompson": [0.1 * 5, 0.3 * 1.25],
    "hajek": [0.5 / 0.875, 0.375 / 0.875],
    "normalised": [0.25, 0.75],
    "paper": [0.1 / (2 * 0.3), 0.3 / (2 * 0.4)],
    "precision": [38 / 55, 17 / 55],  # δ² = 2, v = (1, 6): λ = 103/55, w = (0.2 + λ)/3 and (0.6 + λ)/8
}


def weights_of(rule, drawn=DRAWN, view=VIEW, **options):
    extra = {"drift": 2.0, "noise_power": np.array([1.0, 6.0])} if rule == "precision" else {}
    return weigh(rule, drawn, view, **{**extra, **options})


@pytest.mark.parametrize("rule", BY_HAND)
def test_a_rule_gives_the_weights_of_its_formula(rule):
    assert weights_of(rule) == pytest.approx(BY_HAND[rule], rel=1e-12)


@pytest.mark.parametrize("rule", BY_HAND)
@pytest.mark.parametrize("cap", [1.0, 1.3, 2.0, 3])
def test_a_cap_truncates_at_so_many_times_the_weight_of_uniform_draws(rule, cap):
    ceiling = cap * np.array([0.1, 0.3]) * 4 / 2
    assert weights_of(rule, cap=cap) == pytest.approx(np.minimum(BY_HAND[rule], ceiling), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.01, 12.0), min_size=3, max_size=12),
    st.sampled_from(["horvitz-thompson", "hajek", "paper", "normalised"]),
    st.floats(1.0, 5.0),
    st.integers(0, 2**32),
)
def test_no_weight_passes_its_cap_and_no_other_weight_is_touched(budget, rule, cap, seed):
    view = make_view(max(1, len(budget) // 2), np.arange(1, len(budget) + 1), budget=budget)
    drawn = draw(make_sampler("fedpcs"), view, np.random.default_rng(seed))
    free, capped = weigh(rule, drawn, view), weigh(rule, drawn, view, cap=cap)
    ceiling = cap * view.data_weight[drawn.clients] * view.num_clients / view.cohort_size
    assert (capped <= ceiling * (1 + 1e-12)).all()
    assert np.array_equal(capped[free <= ceiling], free[free <= ceiling])


def test_shares_are_of_the_clients_that_are_available():
    """Without client 3 the shares are 10/60 and 30/60, and there are three clients, not four."""
    view = make_view(2, [10, 20, 30, 40], is_available=[True, True, True, False])
    assert weights_of("horvitz-thompson", view=view) == pytest.approx([5 / 6, 1.25 / 2])
    assert weights_of("normalised", view=view) == pytest.approx([0.25, 0.75])
    assert weights_of("paper", view=view) == pytest.approx([1 / 6 / 0.6, 0.5 / 0.8])
    assert weights_of("horvitz-thompson", view=view, cap=1.0) == pytest.approx([1 / 6 * 1.5, 1.25 / 2])


def test_uniform_draws_of_equal_clients_weigh_all_alike_whatever_the_rule():
    view = make_view(3, np.full(9, 20), is_available=np.arange(9) < 6, noise_power=np.zeros(9))
    drawn = draw(make_sampler("random"), view, np.random.default_rng(0))
    for rule in BY_HAND:
        found = weigh(rule, drawn, view, drift=1.0 if rule == "precision" else None)
        assert found == pytest.approx(np.full(3, 1 / 3))


def test_noise_is_what_is_given_else_the_views_own_and_must_be_one_of_them():
    noisy = make_view(2, [10, 20, 30, 40], noise_power=[1.0, 77.0, 6.0, 88.0])
    assert weigh("precision", DRAWN, noisy, drift=2.0) == pytest.approx(BY_HAND["precision"])
    assert weigh("precision", DRAWN, noisy, drift=2.0, noise_power=np.zeros(2)) == pytest.approx([0.4, 0.6])
    with pytest.raises(InvalidInput, match="precision needs noise_power, got none"):
        weigh("precision", DRAWN, VIEW, drift=2.0)


@pytest.mark.parametrize("rule", ["horvitz-thompson", "hajek"])
def test_rules_that_undo_the_design_refuse_draws_without_one(rule):
    with pytest.raises(InvalidInput, match=f"{rule} needs inclusion probabilities"):
        weigh(rule, BIASED, VIEW)


@pytest.mark.parametrize("cap", [0.999, 0.0, -1.0, float("nan"), float("inf"), True, "2"])
@pytest.mark.parametrize("rule", BY_HAND)
def test_impossible_caps_are_refused(rule, cap):
    with pytest.raises(InvalidInput, match="cap must be"):
        weights_of(rule, cap=cap)


@pytest.mark.parametrize("rule", [*RULES, "own"])
def test_a_rule_given_by_name_is_kept_and_the_default_goes_by_the_noise(rule):
    assert settle_rule(rule, np.zeros(3)) == settle_rule(rule, np.ones(3)) == rule
    assert settle_rule("default", np.array([0.0, 1e-9, 0.0])) == "precision"
    assert settle_rule("default", np.zeros(3)) == settle_rule("default", np.zeros(0)) == "normalised"


def test_precision_by_design_lets_the_rarely_drawn_speak_for_more_up_to_three_times_their_share():
    view = make_view(2, np.ones(8), noise_power=np.zeros(8))
    often, seldom, hardly_ever = 1.25, 8.0, 100.0  # uniform draws would make it 4
    for others in (seldom, hardly_ever):
        drawn = Draw(np.array([0, 1]), np.ones(2), None, np.array([often, others]), None, 2.0)
        shares = np.array([often, min(others, 12.0)])
        expected = 1 / 8 + (1 - 2 / 8) * shares / shares.sum()
        assert weigh("precision", drawn, view, drift=1.0, by_design=True) == pytest.approx(expected)
        assert weigh("precision", drawn, view, drift=1.0) == pytest.approx([0.5, 0.5])
    with pytest.raises(InvalidInput, match="by_design needs inclusion probabilities"):
        weigh("precision", BIASED, view, drift=1.0, by_design=True)


@settings(max_examples=200, deadline=None)
@given(
    weights=st.lists(st.floats(0.0, 1e9), min_size=1, max_size=30).map(np.array),
    largest=st.floats(0.5, 1.0),
)
def test_no_weight_is_more_than_its_share_of_the_sum_and_the_sum_stays(weights, largest):
    limited = limit_share(weights, largest)
    assert limited.sum() == pytest.approx(weights.sum())
    others = np.sort(weights)[:-1].sum()
    if others > 0.0:
        assert limited.max() <= largest * weights.sum() * (1 + 1e-12)
    else:
        assert limited.tolist() == weights.tolist()
