"""What a round reports of its draw: closed forms, bounds, and whether draws that break their design are seen."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import arrived, count, draw, make_sampler, make_view, report_round, start_tally, weigh
from fedpcs.sampling.drawn import Draw
from fedpcs.sampling.tally import effective_sample_size, evenness

weights = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=20)
quick = settings(max_examples=50, deadline=None)
KNOWN = Draw(
    clients=np.array([0, 2]),
    weights=np.array([0.2, 0.6]),
    inclusion=np.array([0.5, 0.25, 1.0, 0.25]),
    expansion=np.array([2.0, 1.0]),
    draw_probability=None,
    num_draws=2,
)
UNKNOWN = Draw(np.array([1, 2]), np.array([0.5, 0.5]), None, None, None, 2)


def tally_of(rounds, num_clients):
    tally = start_tally(num_clients)
    for drawn in rounds:
        tally = count(tally, drawn, drawn.clients)
    return tally


def last_report(rounds, num_clients):
    tally = tally_of(rounds, num_clients)
    return report_round(tally, rounds[-1], rounds[-1].weights)


@pytest.mark.parametrize(
    ("given_weights", "expected"),
    [([0.3] * 7, 7.0), ([0.0, 5.0, 0.0], 1.0), ([3.0, 1.0], 1.6), ([1.0, 2.0, 3.0], 36 / 14), ([], 0.0), ([0.0], 0.0)],
)
def test_effective_sample_size_by_hand(given_weights, expected):
    assert effective_sample_size(np.array(given_weights)) == pytest.approx(expected)


@quick
@given(weights, st.sampled_from([1e-300, 1e-200, 1.0, 1e200, 1e300]))
def test_effective_sample_size_lies_between_one_and_the_number_of_weights(values, unit):
    array = np.array(values)
    found = effective_sample_size(array)
    assert 1.0 - 1e-12 <= found <= array.size * (1 + 1e-12)
    assert effective_sample_size(unit * array) == pytest.approx(found, rel=1e-9)
    assert effective_sample_size(np.append(array, 0.0)) == pytest.approx(found)


@quick
@given(weights)
def test_evenness_lies_between_one_client_always_and_all_alike(values):
    times = np.array(values)
    found = evenness(times)
    assert 1 / times.size - 1e-12 <= found <= 1.0 + 1e-12
    assert found == pytest.approx(times.sum() ** 2 / (times.size * (times**2).sum()))


@pytest.mark.parametrize(
    ("times", "expected"), [([3, 3, 3], 1.0), ([0, 0, 9, 0], 0.25), ([1, 2, 3], 36 / 42), ([0, 0], 1.0)]
)
def test_evenness_by_hand(times, expected):
    assert evenness(np.array(times, float)) == pytest.approx(expected)


def test_a_round_is_counted_by_hand():
    tally = count(count(start_tally(4), KNOWN, np.array([2])), KNOWN, np.array([0, 2]))
    assert tally.designed.tolist() == [1.0, 0.5, 2.0, 0.5]
    assert tally.variance.tolist() == [0.5, 0.375, 0.0, 0.375]
    assert tally.realised.tolist() == tally.drawn.tolist() == [2.0, 0.0, 2.0, 0.0]
    assert tally.heard.tolist() == [1.0, 0.0, 2.0, 0.0]


def test_a_round_without_inclusion_probabilities_leaves_designed_counts_alone():
    before = tally_of([KNOWN], 4)
    after = count(before, UNKNOWN, np.array([1]))
    for name in ("designed", "variance", "realised"):
        assert getattr(after, name).tolist() == getattr(before, name).tolist()
    assert after.drawn.tolist() == [1.0, 1.0, 2.0, 0.0]
    assert after.heard.tolist() == [1.0, 1.0, 1.0, 0.0]


def test_a_tally_never_changes():
    tally = start_tally(4)
    following = count(tally, KNOWN, KNOWN.clients)
    count(following, KNOWN, KNOWN.clients)
    assert not any(np.any(getattr(tally, field.name)) for field in dataclasses.fields(tally))
    assert following.drawn.tolist() == [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        tally.drawn = following.drawn


@pytest.mark.parametrize("bad", [0, -1, 2.0, True])
def test_a_tally_of_nobody_is_refused(bad):
    with pytest.raises(InvalidInput, match="num_clients"):
        start_tally(bad)


def test_a_report_by_hand():
    """After two rounds: drawn (2, 0, 2, 0), designed (1, ½, 2, ½), variances (½, ⅜, 0, ⅜)."""
    tally = tally_of([KNOWN, KNOWN], 4)
    found = report_round(tally, KNOWN, np.array([0.6]))
    assert (found.cohort_size, found.num_heard) == (2, 1)
    assert found.expected_cohort_size == pytest.approx(2.0)
    assert found.effective_sample_size == pytest.approx(1.0)
    assert (found.largest_weight, found.weight_sum) == (0.6, 0.6)
    assert found.inclusion_gap == pytest.approx(0.5)
    assert found.inclusion_score == pytest.approx(np.sqrt((1 / 0.5 + 2 * 0.25 / 0.375) / 3))
    assert found.evenness == pytest.approx(0.5)


def test_a_report_without_inclusion_probabilities_leaves_them_out():
    found = report_round(tally_of([KNOWN, UNKNOWN], 4), UNKNOWN, UNKNOWN.weights)
    assert (found.expected_cohort_size, found.inclusion_gap, found.inclusion_score) == (None, None, None)
    assert found.evenness == pytest.approx(16 / (4 * 6))


def test_a_report_of_a_round_that_nobody_answered():
    found = report_round(count(start_tally(4), KNOWN, np.zeros(0, int)), KNOWN, np.zeros(0))
    assert (found.cohort_size, found.num_heard, found.weight_sum, found.largest_weight) == (2, 0, 0.0, 0.0)
    assert found.effective_sample_size == 0.0


def test_a_cohort_of_everyone_has_no_score_and_no_gap():
    view = make_view(5, np.arange(1, 6), budget=np.arange(1, 6))
    drawn = draw(make_sampler("fedpcs"), view, np.random.default_rng(0))
    found = last_report([drawn] * 3, 5)
    assert found.inclusion_gap == pytest.approx(0.0, abs=1e-12)
    assert found.inclusion_score is None
    assert found.evenness == pytest.approx(1.0)
    assert weigh("own", drawn, view).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("name", "design"),
    [("random", None), *[("fedpcs", design) for design in ("pivotal", "systematic", "poisson", "with-replacement")]],
)
def test_draws_that_follow_their_design_score_near_one(name, design):
    view = make_view(30, np.full(100, 20), budget=np.linspace(0.5, 12.0, 100))
    sampler = make_sampler(name) if design is None else make_sampler(name, design=design)
    rng = np.random.default_rng(1)
    rounds = [draw(sampler, view, rng) for _ in range(250)]
    found = last_report(rounds, 100)
    assert found.inclusion_score == pytest.approx(1.0, abs=0.25)
    assert found.inclusion_gap < 5 * np.sqrt(0.25 / 250)
    assert found.inclusion_gap > 0.0


def test_clocks_score_near_one_though_their_inclusion_is_approximate():
    """Rosén is within 2 % at a hundred clients, which 250 rounds do not see."""
    view = make_view(30, np.full(100, 20), budget=np.linspace(0.5, 12.0, 100))
    rng = np.random.default_rng(2)
    found = last_report([draw(make_sampler("fedpcs", design="gumbel"), view, rng) for _ in range(250)], 100)
    assert found.inclusion_score == pytest.approx(1.0, abs=0.25)


def test_draws_by_budget_that_claim_to_be_uniform_are_seen():
    view = make_view(30, np.full(100, 20), budget=np.linspace(0.5, 12.0, 100))
    uniform = np.full(100, 0.3)
    rng = np.random.default_rng(3)
    by_budget = [draw(make_sampler("fedpcs"), view, rng) for _ in range(250)]
    claimed = [dataclasses.replace(drawn, inclusion=uniform) for drawn in by_budget]
    found, honest = last_report(claimed, 100), last_report(by_budget, 100)
    assert found.inclusion_score > 4.0 > 2 * honest.inclusion_score
    assert found.inclusion_gap > 2 * honest.inclusion_gap
    assert found.inclusion_gap == pytest.approx(0.3, abs=0.1)


def test_draws_of_the_same_clients_every_round_are_seen():
    """A random generator that is started anew every round, say: each cohort looks fair and all are the same one."""
    view = make_view(30, np.full(100, 20))
    stuck = [draw(make_sampler("random"), view, np.random.default_rng(4)) for _ in range(100)]
    found = last_report(stuck, 100)
    assert found.inclusion_score == pytest.approx(10.0)
    assert found.inclusion_gap == pytest.approx(0.7)
    assert found.evenness == pytest.approx(0.3)


def test_drop_outs_that_pick_their_clients_are_seen():
    """Everyone answers half the time on average; alike, or half of the clients always and half never."""
    rng = np.random.default_rng(3)
    view, sampler = make_view(5, np.ones(20)), make_sampler("random")
    alike = unlike = start_tally(20)
    for _ in range(200):
        drawn = draw(sampler, view, rng)
        alike = count(alike, drawn, drawn.clients[rng.random(5) < 0.5])
        unlike = count(unlike, drawn, drawn.clients[drawn.clients < 10])
    assert 0.6 < report_round(alike, drawn, np.ones(2)).answer_score < 1.5
    assert report_round(unlike, drawn, np.ones(2)).answer_score > 5.0
    assert report_round(unlike, drawn, np.ones(2)).inclusion_score < 1.5
    assert report_round(count(start_tally(20), drawn, drawn.clients), drawn, np.ones(5)).answer_score is None


@pytest.mark.parametrize("heard", [[-1], [3], [0.5], [True, False], [2, 0], None])
def test_only_those_drawn_can_be_heard(heard):
    with pytest.raises(InvalidInput, match="heard must be"):
        count(start_tally(4), KNOWN, heard)


@pytest.mark.parametrize("weights", [[0.5, np.nan], [-0.1], "x", [[1.0]]])
def test_weights_that_are_none_are_not_reported(weights):
    with pytest.raises(InvalidInput, match="weights"):
        report_round(count(start_tally(4), KNOWN, [0]), KNOWN, weights)


def test_a_round_is_counted_before_it_is_reported():
    with pytest.raises(InvalidInput, match="Call count first"):
        report_round(start_tally(4), KNOWN, np.ones(2))


def test_what_arrived_is_no_draw_to_count():
    heard = arrived(KNOWN, [True, False], 0.5)
    with pytest.raises(InvalidInput, match="as the sampler returned it"):
        count(start_tally(4), heard, heard.clients)
    with pytest.raises(InvalidInput, match="as the sampler returned it"):
        report_round(count(start_tally(4), KNOWN, [0]), heard, np.ones(1))
