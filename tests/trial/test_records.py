"""A line of the log says what happened: spreads, sums and ε by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_runs import play, prepared, tiny

from fedpcs._inclusion import inclusion_probability
from fedpcs.learning.server import first_state
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.trial.records import RoundRecord, Spent, Spread
from fedpcs.trial.rounds.results import spent_so_far, spread


@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=20))
def test_a_spread_is_least_median_greatest(values):
    """The usual median, as NumPy has it: of an even number of clients the mean of the two in the middle."""
    found = spread(values)
    assert (found.minimum, found.maximum) == (min(values), max(values))
    assert found.median == pytest.approx(np.median(values), rel=1e-15)


def test_a_spread_of_nothing_is_zero():
    assert spread([]) == Spread(minimum=0.0, median=0.0, maximum=0.0)


@pytest.mark.parametrize(("is_gaussian", "law"), [(True, "exact"), (False, "tight")])
def test_spent_is_over_clients_that_were_ever_charged(is_gaussian, law):
    plan, _, _ = prepared(tiny())
    state = first_state(plan, np.zeros(plan.layout.num_parameters, np.float32))
    nanos = np.array([0, 5, 0, 3, 8, 1, 0, 0]) * 10**8
    found = spent_so_far(type(state)(**{**vars(state), "spent": nanos}), 1e-5, is_gaussian)
    assert found.num_clients == 4
    assert found.rho == Spread(minimum=0.1, median=0.4, maximum=0.8)
    each = [to_epsilon(Rho(one * 10**8), 1e-5, law) for one in (1, 3, 5, 8)]
    assert (found.epsilon.minimum, found.epsilon.maximum) == (each[0], each[-1])
    assert found.epsilon.median == pytest.approx(np.median(each), rel=1e-15)  # the median of ε, not the ε of a median
    odd = spent_so_far(type(state)(**{**vars(state), "spent": nanos * (nanos != 10**8)}), 1e-5, is_gaussian)
    assert (odd.rho.median, odd.epsilon.median) == (0.5, to_epsilon(Rho(5 * 10**8), 1e-5, law))
    nobody = spent_so_far(state, 1e-5, is_gaussian)
    assert nobody == Spent(rho=spread([]), epsilon=spread([]), num_clients=0)


def rounds_of(folder, **sampling):
    """The plan and the log of a tiny run by FedPCS, whose clients keep unequal budgets."""
    config = tiny(game={"behaviour": "static"}, sampling={"samplers": ["fedpcs"], **sampling})
    _, store = play(folder, config)
    return prepared(config)[0], store.rounds()


def test_a_weight_above_its_cap_is_cut_to_it_and_the_log_says_how_many(tmp_path):
    plan, capped = rounds_of(tmp_path / "capped", rule="horvitz-thompson", weight_cap=1.0)
    _, free = rounds_of(tmp_path / "free", rule="horvitz-thompson")
    θ = plan.num_samples / plan.num_samples.sum()
    for t, (line, without) in enumerate(zip(capped, free, strict=True)):
        cohort = line["cohort"]
        π = inclusion_probability(plan.schedule.budget[t], 4)[cohort]
        most = θ[cohort] * 8 / 4  # what uniform draws would give
        assert line["num_capped"] == np.count_nonzero(θ[cohort] / π > most)
        assert line["draw"]["largest_weight"] == pytest.approx(np.minimum(θ[cohort] / π, most).max())
        assert line["draw"]["weight_sum"] == pytest.approx(np.minimum(θ[cohort] / π, most).sum())
        assert (without["cohort"], without["num_capped"]) == (cohort, None)
        assert without["draw"]["largest_weight"] == pytest.approx((θ[cohort] / π).max())
    assert sum(line["num_capped"] for line in capped) > 0


def test_by_design_clients_speak_for_others_in_proportion_to_how_rarely_they_are_drawn(tmp_path):
    plan, lines = rounds_of(tmp_path, by_design=True)  # precision, by default
    θ = plan.num_samples / plan.num_samples.sum()
    for t, line in enumerate(lines):
        cohort, δ2 = line["cohort"], line["drift"]
        v = plan.layout.num_parameters * 2.0 * 0.5**2 / plan.schedule.budget[t, cohort]  # d·σ², σ² = 2W²/ρ
        speaks = np.minimum(1.0 / inclusion_probability(plan.schedule.budget[t], 4)[cohort], 3.0 * 8 / 4)
        own = θ[cohort] * δ2 / (δ2 + v)
        others = speaks / (δ2 + v)
        weights = own + (1.0 - own.sum()) * others / others.sum()
        assert line["rule"] == "precision"
        assert line["draw"]["largest_weight"] == pytest.approx(weights.max())
        assert line["draw"]["effective_sample_size"] == pytest.approx(1.0 / (weights**2).sum())
    _, alike = rounds_of(tmp_path / "alike")
    assert [one["cohort"] for one in alike] == [one["cohort"] for one in lines]
    assert alike[0]["draw"]["largest_weight"] != pytest.approx(lines[0]["draw"]["largest_weight"])


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
        assert record["cohort_budget"] == pytest.approx(plan.schedule.budget[t, cohort].sum())
        assert record["realised_mean_budget"] == pytest.approx(plan.schedule.budget[t].mean())
        assert record["mean_budget"] == pytest.approx(plan.schedule.mean_budget[t])
        assert record["reward"] == plan.schedule.reward[t]
        assert record["paid"] == pytest.approx(plan.schedule.pay[t, cohort].sum())
        paid += record["paid"]
        assert record["paid_so_far"] == pytest.approx(paid)
        spent[cohort] += [float(Rho.at_most(float(one))) for one in plan.schedule.budget[t, cohort]]
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
        assert RoundRecord.model_validate(json.loads(json.dumps(record.model_dump(), allow_nan=False))) == record
