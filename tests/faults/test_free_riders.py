"""F33: whoever did not do the work is not paid for it, where the numbers it sends can show it; it stays charged."""

import dataclasses

import numpy as np
import pytest
from fault_injection import Fault
from faulty_federation import NUM_CLIENTS, engine_with, play, rewards, same_but_for_how, tiny
from test_round_faults import Flaky
from tiny_runs import prepared

from fedpcs.errors import Interrupted, QuorumNotReached
from fedpcs.trial.config import RunConfig
from fedpcs.trial.store import TrialStore

ROUND = 2
EVERYONE = {"samplers": ["random"], "sampling_ratio": 1.0}
MODES = {
    "client": {"mode": "client", "clip_norm": 0.5},
    "record": {"mode": "record", "clip_norm": 0.5},
    "paper": {"mode": "paper", "clip_norm": 0.5},
    "none": {"mode": "none"},
}
RIDER = 3


def federation(mode, **changes) -> RunConfig:
    return tiny(rounds=4, privacy=MODES[mode], sampling=EVERYONE, **changes)


class Riding:
    """An engine in which one client, in one round, sends what `ride` makes of (round, client) → what was sent."""

    def __init__(self, inner, ride):
        self.inner, self.ride, self.sent, self.name = inner, ride, {}, inner.name

    def run(self, parameters, tasks):
        replies = [dataclasses.replace(one, values=one.values.copy()) for one in self.inner.run(parameters, tasks)]
        for one in replies:
            self.sent[one.round_index, one.client] = one.values.copy()
        for one in replies:
            if (one.round_index, one.client) == (ROUND, RIDER):
                yield dataclasses.replace(one, values=self.ride(self.sent))
            else:
                yield one

    def ask(self, *arguments):
        return self.inner.ask(*arguments)

    def score(self, parameters):
        return self.inner.score(parameters)


RIDES = {
    "zeros": lambda sent: np.zeros_like(sent[ROUND, RIDER]),
    "nearly zeros": lambda sent: 1e-6 * sent[ROUND, RIDER],
    "half of it": lambda sent: np.float32(0.5) * sent[ROUND, RIDER],
    "twice of it": lambda sent: np.float32(2.0) * sent[ROUND, RIDER],
    "its last one": lambda sent: sent[ROUND - 1, RIDER],
    "its first one": lambda sent: sent[0, RIDER],
    "another's last one": lambda sent: sent[ROUND - 1, RIDER + 1],
}
SEEN = {
    "client": {name: "repeat" if "one" in name else "norm" if "twice" in name else "noise" for name in RIDES},
    "paper": {"zeros": "noise", "nearly zeros": "noise"},
}
SEEN["record"] = SEEN["client"]
SEEN["paper"] |= {name: "repeat" for name in RIDES if "one" in name}


@pytest.fixture(scope="module")
def absent(tmp_path_factory):
    """(mode) → the run in which the free rider was away in that round."""
    found = {}

    def of(mode):
        if mode not in found:
            fault = Fault("drop", rounds=(ROUND,), clients=(RIDER,))
            config = federation(mode)
            found[mode] = play(tmp_path_factory.mktemp(mode), faults=[fault], config=config, plan=alike(config))
        return found[mode]

    return of


def alike(config):
    """The plan with one budget and one pay for all, so that an update fits any round and any client."""
    schedule = prepared(config).plan.schedule
    budget, pay = np.full_like(schedule.budget, 0.05), np.ones_like(schedule.budget)
    return {"schedule": dataclasses.replace(schedule, budget=budget, pay=pay)}


def ridden(folder, mode, ride):
    config = federation(mode)
    with engine_with("in-process", config) as inner:
        return play(folder, engine=Riding(inner, ride), config=config, plan=alike(config))


@pytest.mark.parametrize(("mode", "ride"), [(mode, ride) for mode in SEEN for ride in SEEN[mode]])
def test_a_free_rider_is_refused_charged_and_not_paid(tmp_path, absent, mode, ride):
    """And the model is, bit for bit, that of a run in which it was away."""
    played = ridden(tmp_path, mode, RIDES[ride])
    away = absent(mode)
    assert [one.refusals for one in played.records] == [{}, {}, {SEEN[mode][ride]: 1}, {}]
    assert played.records[ROUND].refused[0].client == RIDER
    assert played.model == away.model
    assert same_but_for_how(played.records, away.records)
    assert (played.charges, played.rewards) == (away.charges, away.rewards)
    assert (ROUND, RIDER) in {row[:2] for row in played.charges}
    assert (ROUND, RIDER) not in {row[:2] for row in played.rewards}


def test_the_same_update_from_two_clients_in_one_round_counts_for_neither(tmp_path):
    """Nobody can tell who copied, and what the server does must not depend on who was heard first."""
    played = ridden(tmp_path, "client", lambda sent: sent[ROUND, RIDER + 1])
    assert [one.client for one in played.records[ROUND].refused] == [RIDER, RIDER + 1]
    assert played.records[ROUND].refusals == {"repeat": 2}
    assert played.records[ROUND].heard == [c for c in range(NUM_CLIENTS) if c not in (RIDER, RIDER + 1)]


@pytest.mark.parametrize("ride", ["zeros", "its last one", "its first one", "another's last one"])
def test_without_noise_what_may_be_honest_counts_and_is_owed_nothing(tmp_path, ride):
    """A client that has converged sends zeros, or the same again. It stays in the average: no honest run changes."""
    played = ridden(tmp_path, "none", RIDES[ride])
    assert all(one.refusals == {} and len(one.heard) == NUM_CLIENTS for one in played.records)
    owed = {row[:2]: row[2] for row in played.rewards}
    assert owed[ROUND, RIDER] == 0
    assert owed[ROUND - 1, RIDER] > 0
    assert owed[ROUND, RIDER + 1] > 0


@pytest.mark.parametrize(("mode", "learning_rate"), [("none", 1e-9), ("none", 1e-6), ("record", 1e-9)])
def test_training_that_stands_still_is_honest(tmp_path, mode, learning_rate):
    """Steps that float32 rounds away are the same in every round, or zero, with their noise."""
    config = federation(mode, training={"learning_rate": learning_rate, "batch_size": 0})
    with engine_with("in-process", config) as inner:
        played = play(tmp_path, engine=inner, config=config, plan=alike(config))
    assert all(one.refusals == {} for one in played.records)


def test_a_repeat_is_seen_after_a_resume(tmp_path):
    """What was sent in round 0 is known to a server that was started again in round 2, from its checkpoint alone."""
    config = federation("client")
    kept = {}
    with engine_with("in-process", config) as inner:
        riding = Riding(inner, lambda sent: sent[0, RIDER])
        calls = iter([False] * (2 * NUM_CLIENTS + 1) + [True] * 100)
        with pytest.raises(Interrupted):
            play(tmp_path, engine=riding, config=config, plan=alike(config), wants_stop=lambda: next(calls))
        kept.update(riding.sent)
    with engine_with("in-process", config) as inner:
        again = Riding(inner, lambda sent: kept[0, RIDER])
        played = play(tmp_path, engine=again, config=config, plan=alike(config))
    assert played.records[ROUND].refusals == {"repeat": 1}
    assert f"client {RIDER} sent in round 0" in played.records[ROUND].refused[0].reason


@pytest.mark.parametrize("mode", ["client", "record", "none"])
def test_a_round_drawn_again_is_no_repeat(tmp_path, mode):
    """Seeded noise makes the same update of a second attempt; nobody was paid for the first."""
    config = tiny(privacy=MODES[mode])
    with engine_with("in-process", config) as inner:
        played = play(tmp_path, engine=Flaky(inner, num_silent=2), config=config)
    assert [one.refusals for one in played.records] == [{}, {}, {}]
    assert played.records[0].attempt == 2


def test_free_riders_alone_are_no_quorum_and_nobody_is_paid(tmp_path):
    with pytest.raises(QuorumNotReached, match="with the noise its budget calls for it is at least"):
        play(tmp_path, faults=[Fault("enormous", value=0.0)])
    assert rewards(TrialStore(tmp_path)) == []
