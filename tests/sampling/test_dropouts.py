"""Survivors make up for those who drop out: no bias with true probabilities, F13's rates, edges of the estimate."""

import functools

import numpy as np
import pytest
from hand_made import BIASED, TWO
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import arrived, draw, make_sampler, make_view, survival_rate, weigh

NUM_CLIENTS, COHORT_SIZE, REPEATS = 24, 10, 2_000
BUDGET = np.linspace(0.5, 12.0, NUM_CLIENTS)
VIEW = make_view(COHORT_SIZE, np.arange(30, 30 + NUM_CLIENTS), budget=BUDGET)
UPDATES = np.random.default_rng(1).normal(1.0, 0.5, NUM_CLIENTS) + 0.2 * BUDGET
TARGET = float(VIEW.data_weight @ UPDATES)
SURVIVAL = {
    "10 % drop out": 0.9,
    "30 % drop out": 0.7,
    "50 % drop out": 0.5,
    "each its own": np.random.default_rng(2).uniform(0.3, 1.0, NUM_CLIENTS),
    "small budgets drop out": np.linspace(0.4, 1.0, NUM_CLIENTS),
    "large budgets drop out": np.linspace(1.0, 0.4, NUM_CLIENTS),
}


@functools.cache
def cohorts(design):
    sampler = make_sampler("random") if design == "uniform" else make_sampler("fedpcs", design=design)
    rng = np.random.default_rng(3)
    return [draw(sampler, VIEW, rng) for _ in range(REPEATS)]


def heard_cohorts(drawn, survival, assumed, seed=4):
    """What is left of each cohort when clients answer with probability `survival`, corrected for `assumed`."""
    rng = np.random.default_rng(seed)
    chance = np.broadcast_to(survival, NUM_CLIENTS)
    return [arrived(one, rng.random(one.clients.size) < chance[one.clients], assumed) for one in drawn]


def score(values, target):
    return (np.mean(values) - target) / (np.std(values, ddof=1) / np.sqrt(len(values)))


@pytest.mark.parametrize("kind", SURVIVAL)
def test_every_client_still_stands_for_one_on_average(kind):
    """1{heard}·e_i is 0 or 1/(π_i·s_i), so its variance is known."""
    drawn = cohorts("pivotal")
    stood_for = np.zeros(NUM_CLIENTS)
    for one in heard_cohorts(drawn, SURVIVAL[kind], SURVIVAL[kind]):
        stood_for[one.clients] += one.expansion
    error = np.sqrt((1 / (drawn[0].inclusion * SURVIVAL[kind]) - 1) / REPEATS)
    assert np.abs((stood_for / REPEATS - 1) / error).max() < 4.0


@pytest.mark.parametrize(
    ("design", "kind"),
    [*[("pivotal", kind) for kind in SURVIVAL], ("gumbel", "50 % drop out"), ("gumbel", "each its own")],
)
def test_the_estimate_stays_right_on_average(design, kind):
    heard = heard_cohorts(cohorts(design), SURVIVAL[kind], SURVIVAL[kind])
    values = [weigh("horvitz-thompson", one, VIEW) @ UPDATES[one.clients] for one in heard]
    assert abs(score(values, TARGET)) < 3.0
    for one in heard[:50]:
        assert weigh("own", one, VIEW) == pytest.approx(weigh("horvitz-thompson", one, VIEW))


@pytest.mark.parametrize("kind", ["30 % drop out", "small budgets drop out", "large budgets drop out"])
def test_without_correction_it_does_not(kind):
    """The negative of the test above: otherwise that one could pass by seeing too little."""
    heard = heard_cohorts(cohorts("pivotal"), SURVIVAL[kind], 1.0)
    values = [weigh("horvitz-thompson", one, VIEW) @ UPDATES[one.clients] for one in heard]
    assert abs(score(values, TARGET)) > 10.0


@given(st.floats(0.01, 1.0), st.lists(st.booleans(), min_size=COHORT_SIZE, max_size=COHORT_SIZE).filter(any))
@settings(max_examples=40, deadline=None)
def test_hajek_needs_probabilities_only_up_to_a_factor(factor, came):
    one = draw(make_sampler("fedpcs"), VIEW, np.random.default_rng(5))
    survival = SURVIVAL["each its own"]
    found, scaled = (weigh("hajek", arrived(one, came, share * survival), VIEW) for share in (1.0, factor))
    assert found == pytest.approx(scaled, rel=1e-9)
    assert found.sum() == pytest.approx(1.0)


def test_survivors_are_divided_by_their_own_probability():
    found = arrived(TWO, [False, True], [0.9, 0.8, 0.5, 0.4])
    assert found.clients.tolist() == [2]
    assert found.weights == pytest.approx([0.8])
    assert found.expansion == pytest.approx([2.5])
    assert found.survival == pytest.approx([0.5])
    assert found.draw_probability is TWO.draw_probability
    assert found.inclusion is TWO.inclusion
    assert found.num_draws == 2


@pytest.mark.parametrize("came", [[True], [True, True, True], [1, 0], [0.5, 1.0], True, [[True, False]], ["a", "b"]])
def test_answers_that_do_not_fit_the_cohort_are_refused(came):
    with pytest.raises(InvalidInput, match="came must be 2 booleans"):
        arrived(TWO, came, 0.5)


@pytest.mark.parametrize(
    "survival",
    [0.0, -0.1, 1.1, np.nan, np.inf, True, [0.5, 0.0, 0.5, 0.5], [0.5, 0.5, np.nan, 0.5], [[0.5] * 4], []],
)
def test_what_is_no_probability_of_answering_is_refused(survival):
    with pytest.raises(InvalidInput, match="survival_probability"):
        arrived(TWO, [True, True], survival)


@pytest.mark.parametrize(("drawn", "lengths"), [(TWO, (1, 2, 3, 5)), (BIASED, (1, 2))], ids=["of four", "of unknown"])
def test_probabilities_of_another_number_of_clients_are_refused(drawn, lengths):
    """One per client drawn is the likely mistake. A draw without probabilities knows only who is last in it."""
    for length in lengths:
        with pytest.raises(InvalidInput, match="survival_probability"):
            arrived(drawn, [True, True], np.full(length, 0.5))


def test_rates_by_hand():
    """Overall (15 + 1)/(20 + 1) = 16/21, counted as four rounds."""
    expected = [(10 + 64 / 21) / 14, (5 + 64 / 21) / 14, 16 / 21]
    assert survival_rate([10, 10, 0], [10, 5, 0]) == pytest.approx(expected)
    assert survival_rate([10, 10, 0], [10, 5, 0]).round(3).tolist() == [0.932, 0.575, 0.762]


@pytest.mark.parametrize("rule", ["horvitz-thompson", "hajek", "normalised", "precision", "paper"])
def test_no_rule_is_led_astray_by_who_answers_more_often(rule):
    """Half the clients say +1 and answer nine times in ten, the others −1 and three in ten; the mean is zero."""
    rng = np.random.default_rng(0)
    says = np.where(np.arange(40) < 20, 1.0, -1.0)
    survival = np.where(np.arange(40) < 20, 0.9, 0.3)
    view = make_view(10, np.ones(40), noise_power=np.zeros(40))
    found = {True: [], False: []}
    for _ in range(600):
        drawn = draw(make_sampler("random"), view, rng)
        came = rng.random(10) < survival[drawn.clients]
        for is_corrected, chance in ((True, survival), (False, 0.6)):
            heard = arrived(drawn, came, chance)
            found[is_corrected].append(weigh(rule, heard, view, drift=1.0) @ says[heard.clients])
    assert abs(np.mean(found[True])) < 0.25  # ratios of so few answers lean a little
    assert np.mean(found[False]) > 0.4


def test_a_client_that_is_not_there_may_never_answer():
    view = make_view(2, [1, 1, 1], is_available=[True, True, False])
    drawn = draw(make_sampler("random"), view, np.random.default_rng(0))
    assert arrived(drawn, [True, False], [0.9, 0.9, 0.0]).clients.tolist() == [0]
    with pytest.raises(InvalidInput, match=r"survival_probability must lie in \(0, 1\], got 0"):
        arrived(drawn, [True, False], [0.9, 0.0, 0.9])
