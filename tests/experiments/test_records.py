"""A line of the log says what happened: spreads, sums and ε by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import play, prepared, tiny

from fedpcs.experiments.records import Spread, spent_so_far, spread
from fedpcs.learning.server import first_state
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=20))
def test_a_spread_is_least_median_greatest(values):
    """The usual median, as NumPy has it: of an even number of clients the mean of the two in the middle."""
    found = spread(values)
    assert (found.minimum, found.maximum) == (min(values), max(values))
    assert found.median == pytest.approx(np.median(values), rel=1e-15)


def test_a_spread_of_nothing_is_zero():
    assert spread([]) == Spread(0.0, 0.0, 0.0)


@pytest.mark.parametrize(("is_gaussian", "law"), [(True, "exact"), (False, "tight")])
def test_spent_is_over_clients_that_were_ever_charged(is_gaussian, law):
    plan, _, _ = prepared(tiny())
    state = first_state(plan, np.zeros(plan.layout.num_parameters, np.float32))
    nanos = np.array([0, 5, 0, 3, 8, 1, 0, 0]) * 10**8
    found = spent_so_far(type(state)(**{**vars(state), "spent": nanos}), 1e-5, is_gaussian)
    assert found.num_clients == 4
    assert found.rho == Spread(0.1, 0.4, 0.8)
    each = [to_epsilon(Rho(one * 10**8), 1e-5, law) for one in (1, 3, 5, 8)]
    assert (found.epsilon.minimum, found.epsilon.maximum) == (each[0], each[-1])
    assert found.epsilon.median == pytest.approx(np.median(each), rel=1e-15)  # the median of ε, not the ε of a median
    odd = spent_so_far(type(state)(**{**vars(state), "spent": nanos * (nanos != 10**8)}), 1e-5, is_gaussian)
    assert (odd.rho.median, odd.epsilon.median) == (0.5, to_epsilon(Rho(5 * 10**8), 1e-5, law))
    nobody = spent_so_far(state, 1e-5, is_gaussian)
    assert (nobody.num_clients, nobody.rho, nobody.epsilon) == (0, Spread(0, 0, 0), Spread(0, 0, 0))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    config = tiny(rounds=4, sampling={"samplers": ["fedpcs"]})
    return config, *play(tmp_path_factory.mktemp("records"), config, evaluate_every=3)


def test_lines_add_up(played):
    config, finished, store = played
    plan, _, _ = prepared(config)
    records = store.rounds()
    paid = 0.0
    spent = np.zeros(8)
    for t, record in enumerate(records):
        cohort = record["cohort"]
        assert record["round"] == t
        assert record["heard"] == cohort == sorted(cohort)
        assert record["cohort_budget"] == pytest.approx(plan.budget[t, cohort].sum())
        assert record["mean_budget"] == pytest.approx(plan.budget[t].mean())
        assert record["announced_mean_budget"] == pytest.approx(plan.mean_budget[t])
        assert record["reward"] == plan.reward[t]
        assert record["paid"] == pytest.approx(plan.pay[t, cohort].sum())
        paid += record["paid"]
        assert record["paid_so_far"] == pytest.approx(paid)
        spent[cohort] += [float(Rho.at_most(float(one))) for one in plan.budget[t, cohort]]
        charged = np.sort(spent[spent > 0])
        assert record["spent"]["rho"]["maximum"] == pytest.approx(charged[-1], rel=1e-9)
        assert record["spent"]["rho"]["median"] == pytest.approx(np.median(charged), rel=1e-9)
        assert record["spent"]["num_clients"] == charged.size
    assert finished.state.paid == pytest.approx(paid)


def test_evaluations_come_when_due_and_at_the_end(played):
    _, finished, store = played
    records = store.rounds()
    assert [record["accuracy"] is None for record in records] == [True, True, False, False]
    assert records[-1]["accuracy"] == finished.score.accuracy
    assert records[-1]["loss"] == finished.score.loss


def test_lines_are_json_without_surprises(played):
    for record in played[2].rounds():
        assert json.loads(json.dumps(record, allow_nan=False)) == record
