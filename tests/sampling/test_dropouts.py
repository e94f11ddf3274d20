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


@pytest.mark.parametrize("kind", ["10 % drop out", "30 % drop out", "50 % drop out"])
def test_hajek_is_right_on_average_for_equal_clients_whoever_drops_out(kind):
    """F13. Equal data, uniform draws: then the ratio estimate has no bias of its own."""
    view = make_view(COHORT_SIZE, np.full(NUM_CLIENTS, 50))
    heard = heard_cohorts(cohorts("uniform"), SURVIVAL[kind], 1.0)
    values = [weigh("hajek", one, view) @ UPDATES[one.clients] for one in heard if one.clients.size]
    assert len(values) > 0.99 * REPEATS
    assert abs(score(values, UPDATES.mean())) < 3.0


@pytest.mark.parametrize("kind", ["small budgets drop out", "large budgets drop out"])
def test_hajek_needs_the_probabilities_when_drop_outs_go_with_the_budget(kind):
    drawn = cohorts("pivotal")
    corrected, plain = (
        [
            weigh("hajek", one, VIEW) @ UPDATES[one.clients]
            for one in heard_cohorts(drawn, SURVIVAL[kind], assumed)
            if one.clients.size
        ]
        for assumed in (SURVIVAL[kind], 1.0)
    )
    assert abs(np.mean(corrected) - TARGET) < 0.3 * np.std(corrected)
    assert abs(np.mean(plain) - TARGET) > 2 * abs(np.mean(corrected) - TARGET)


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


def test_one_number_holds_for_all():
    found = arrived(TWO, [True, True], 0.5)
    assert found.weights == pytest.approx([1.4, 0.8])
    assert found.expansion == pytest.approx([10.0, 2.5])
    assert found.survival == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("survival", [0.5, [0.5, 0.9, 0.8, 0.4]])
def test_the_printed_rule_is_corrected_as_well(survival):
    view = make_view(2, [10, 20, 30, 40])
    found = weigh("paper", arrived(TWO, [True, False], survival), view)
    assert found == pytest.approx([0.1 / (2 * 0.3) / 0.5])


def test_a_draw_without_probabilities_keeps_none():
    found = arrived(BIASED, [True, False], [0.5, 0.9, 0.8, 0.4])
    assert (found.inclusion, found.expansion, found.draw_probability) == (None, None, None)
    assert found.weights == pytest.approx([1.4])


@pytest.mark.parametrize("survival", [1.0, 1, np.ones(4)])
def test_nothing_changes_when_nobody_drops_out(survival):
    found = arrived(TWO, [True, True], survival)
    for name in ("clients", "weights", "expansion", "draw_probability", "inclusion"):
        assert getattr(found, name).tolist() == getattr(TWO, name).tolist()


def test_nobody_is_left_when_all_drop_out():
    found = arrived(TWO, np.array([False, False]), 0.5)
    assert found.clients.size == found.weights.size == found.expansion.size == 0
    view = make_view(2, [10, 20, 30, 40])
    for rule in ("horvitz-thompson", "hajek", "normalised", "paper", "own"):
        assert weigh(rule, found, view).shape == (0,)


def test_the_draw_itself_is_left_as_it_was():
    arrived(TWO, [True, False], 0.5)
    assert TWO.clients.tolist() == [0, 2]
    assert TWO.expansion.tolist() == [5.0, 1.25]


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


records = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=12)


@given(records, st.floats(0.1, 20.0))
@settings(max_examples=60, deadline=None)
def test_a_rate_is_a_probability_between_a_clients_own_record_and_everyones(pairs, prior_rounds):
    drawn = np.array([max(pair) for pair in pairs])
    heard = np.array([min(pair) for pair in pairs])
    found = survival_rate(drawn, heard, prior_rounds)
    assert ((found > 0.0) & (found <= 1.0)).all()
    overall = (heard.sum() + 1) / (drawn.sum() + 1)
    own = np.divide(heard, drawn, where=drawn > 0, out=np.full(drawn.size, overall))
    assert (found >= np.minimum(own, overall) * (1 - 1e-12)).all()
    assert (found <= np.maximum(own, overall) * (1 + 1e-12)).all()
    assert found[drawn == 0] == pytest.approx(np.full((drawn == 0).sum(), overall))


def test_rates_by_hand():
    """Overall (15 + 1)/(20 + 1) = 16/21, counted as four rounds."""
    expected = [(10 + 64 / 21) / 14, (5 + 64 / 21) / 14, 16 / 21]
    assert survival_rate([10, 10, 0], [10, 5, 0]) == pytest.approx(expected)
    assert survival_rate([10, 10, 0], [10, 5, 0]).round(3).tolist() == [0.932, 0.575, 0.762]


@given(records, st.integers(0, 11))
@settings(max_examples=60, deadline=None)
def test_an_answer_more_never_lowers_a_rate(pairs, index):
    drawn = np.array([max(pair) + 1 for pair in pairs])
    heard = np.array([min(pair) for pair in pairs])
    more = heard.copy()
    more[index % len(pairs)] += 1
    assert (survival_rate(drawn, more) >= survival_rate(drawn, heard)).all()


def test_a_rate_is_one_without_any_record():
    assert survival_rate([0, 0, 0], [0, 0, 0]).tolist() == [1.0, 1.0, 1.0]


def test_a_client_that_never_answered_can_be_drawn_on():
    found = survival_rate([100, 100], [0, 0])
    assert (found > 0.0).all()
    arrived(draw(make_sampler("random"), make_view(1, [5, 5]), np.random.default_rng(0)), [True], found)


def test_rates_come_near_the_truth():
    rng = np.random.default_rng(6)
    truth = rng.uniform(0.3, 1.0, 50)
    drawn = np.full(50, 2_000)
    assert survival_rate(drawn, rng.binomial(drawn, truth)) == pytest.approx(truth, abs=0.05)


@pytest.mark.parametrize(
    ("drawn", "heard", "prior_rounds", "message"),
    [
        ([1, 2], [1, 3], 4.0, "times_heard"),
        ([1, 2], [1], 4.0, "times_heard must have 2 entries"),
        ([-1, 2], [0, 0], 4.0, "times_drawn"),
        ([1, 2], [-1, 0], 4.0, "times_heard"),
        ([1, np.nan], [0, 0], 4.0, "times_drawn"),
        ([1, 2], [0, 0], 0.0, "prior_rounds"),
        ([1, 2], [0, 0], np.nan, "prior_rounds"),
        ([], [], 4.0, "times_drawn"),
    ],
)
def test_impossible_records_are_refused(drawn, heard, prior_rounds, message):
    with pytest.raises(InvalidInput, match=message):
        survival_rate(drawn, heard, prior_rounds)


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


@pytest.mark.parametrize("rule", ["hajek", "normalised", "precision"])
def test_a_chance_that_all_share_changes_no_ratio(rule):
    view = make_view(3, [10, 20, 30, 40], noise_power=[0.5, 1.0, 2.0, 4.0])
    drawn = draw(make_sampler("random"), view, np.random.default_rng(1))
    came = np.array([True, False, True])
    one, half = (weigh(rule, arrived(drawn, came, chance), view, drift=1.0) for chance in (1.0, 0.5))
    assert half == pytest.approx(one)


def test_what_is_lost_twice_is_corrected_twice():
    view = make_view(3, [10, 20, 30, 40])
    drawn = draw(make_sampler("random"), view, np.random.default_rng(1))
    twice = arrived(arrived(drawn, [True, True, False], 0.5), [True, False], 0.8)
    assert twice.survival == pytest.approx([0.4])
    assert twice.expansion == pytest.approx(drawn.expansion[:1] / 0.4)


def test_a_cap_leaves_the_correction_alone():
    """At a cap of one uniform draws are just not truncated, whoever drops out."""
    view = make_view(6, np.ones(20))
    drawn = draw(make_sampler("random"), view, np.random.default_rng(0))
    heard = arrived(drawn, np.arange(6) < 3, 0.5)
    for rule in ("horvitz-thompson", "paper", "own"):
        assert weigh(rule, heard, view, cap=1.0) == pytest.approx(weigh(rule, heard, view))
    for rule in ("hajek", "normalised"):
        assert weigh(rule, heard, view, cap=1.0).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("chance", [0.5, 0.1])
def test_a_chance_that_all_share_leaves_precision_by_design_alone(chance):
    view = make_view(4, np.ones(20), budget=np.linspace(0.1, 4.0, 20), noise_power=np.linspace(2.0, 0.1, 20))
    drawn = draw(make_sampler("fedpcs"), view, np.random.default_rng(3))
    came = np.array([True, True, False, True])
    one, other = (weigh("precision", arrived(drawn, came, s), view, drift=1.0, by_design=True) for s in (1.0, chance))
    assert other == pytest.approx(one)


def test_a_client_that_is_not_there_may_never_answer():
    view = make_view(2, [1, 1, 1], is_available=[True, True, False])
    drawn = draw(make_sampler("random"), view, np.random.default_rng(0))
    assert arrived(drawn, [True, False], [0.9, 0.9, 0.0]).clients.tolist() == [0]
    with pytest.raises(InvalidInput, match=r"survival_probability must lie in \(0, 1\], got 0"):
        arrived(drawn, [True, False], [0.9, 0.0, 0.9])
