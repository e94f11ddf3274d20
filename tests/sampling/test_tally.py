"""What a round reports of its draw: closed forms, bounds, and whether draws that break their design are seen."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import arrived, count, draw, make_sampler, make_view, report_round, start_tally
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
@given(weights)
def test_evenness_lies_between_one_client_always_and_all_alike(values):
    times = np.array(values)
    found = evenness(times)
    assert 1 / times.size - 1e-12 <= found <= 1.0 + 1e-12
    assert found == pytest.approx(times.sum() ** 2 / (times.size * (times**2).sum()))


def test_a_round_is_counted_by_hand():
    tally = count(count(start_tally(4), KNOWN, np.array([2])), KNOWN, np.array([0, 2]))
    assert tally.designed.tolist() == [1.0, 0.5, 2.0, 0.5]
    assert tally.variance.tolist() == [0.5, 0.375, 0.0, 0.375]
    assert tally.realised.tolist() == tally.drawn.tolist() == [2.0, 0.0, 2.0, 0.0]
    assert tally.heard.tolist() == [1.0, 0.0, 2.0, 0.0]


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


def test_what_arrived_is_no_draw_to_count():
    heard = arrived(KNOWN, [True, False], 0.5)
    with pytest.raises(InvalidInput, match="as the sampler returned it"):
        count(start_tally(4), heard, heard.clients)
    with pytest.raises(InvalidInput, match="as the sampler returned it"):
        report_round(count(start_tally(4), KNOWN, [0]), heard, np.ones(1))
