"""F12, F21–F26: rounds with too few clients, budgets that run out, people that come and go, games without answer."""

import dataclasses
import time
from contextlib import contextmanager

import numpy as np
import pytest
from fault_injection import Fault, FaultyClients
from faulty_federation import ENGINE, ENGINES, NUM_CLIENTS, charges, engine_with, first_cohort, play, rewards, tiny
from tiny_runs import Watcher, prepared

from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.errors import (
    BudgetExhausted,
    DeviceLost,
    Interrupted,
    InvalidInput,
    NotConverged,
    QuorumNotReached,
    WrongDevice,
)
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.protocol import ClientFailure
from fedpcs.privacy.budget import Rho
from fedpcs.report import study as run_report
from fedpcs.trial import run_store, session, setup
from fedpcs.trial.checkpoint import latest
from fedpcs.trial.progress import Display
from fedpcs.trial.rounds import one_round
from fedpcs.trial.run import raise_if_exhausted, resume_run, start_run
from fedpcs.trial.store import TrialStore


class Flaky:
    """An engine whose calls of `run` are answered by nobody, as often as it says; it keeps what it was asked."""

    def __init__(self, inner, num_silent=0):
        self.inner, self.num_silent, self.tasks, self.replies = inner, num_silent, [], []
        self.name = inner.name

    def run(self, parameters, tasks):
        self.tasks.append(tasks)
        for reply in self.inner.run(parameters, tasks):
            self.replies.append(dataclasses.replace(reply, values=reply.values.copy()))
            if len(self.tasks) > self.num_silent:
                yield reply

    def ask(self, *arguments):
        return self.inner.ask(*arguments)

    def score(self, parameters):
        return self.inner.score(parameters)


def drawn_at(round_index, attempts):
    return sorted({client for attempt in range(attempts) for client in first_cohort(None, round_index, attempt)})


# --- F12 ---


@pytest.mark.parametrize("engine", ENGINES)
def test_without_quorum_the_run_stops_with_the_model_as_it_was_and_privacy_charged(tmp_path, engine):
    before = play(tmp_path / "before", config=tiny(rounds=2), plan=two_rounds())
    with pytest.raises(QuorumNotReached, match="round 2") as caught:
        play(tmp_path / "run", engine, [Fault("raise", rounds=(2,))])
    assert caught.value.exit_code == 5
    store = TrialStore(tmp_path / "run")
    state, _, _ = latest(store.checkpoints)
    assert state.next_round == 2
    assert state.parameters.tobytes() == before.finished.state.parameters.tobytes()
    assert [record["round"] for record in store.rounds()] == [0, 1]
    assert [client for now, client, *_ in charges(store) if now == 2] == drawn_at(2, attempts=4)
    assert not [row for row in rewards(store) if row[0] == 2]


def two_rounds():
    """The plan of the three-round run, cut after two."""
    schedule = prepared(tiny()).plan.schedule
    return {"schedule": dataclasses.replace(schedule, **{name: path[:2] for name, path in schedule.paths.items()})}


@pytest.mark.parametrize("num_silent", [1, 3])
def test_a_round_without_quorum_is_drawn_afresh(tmp_path, num_silent):
    """All that were sent for are charged, those heard in the end are paid, and the log tells of every attempt."""
    with engine_with(ENGINE, tiny()) as inner:
        flaky = Flaky(inner, num_silent)
        played = play(tmp_path, engine=flaky)
    record = played.records[0]
    assert record["attempt"] == num_silent
    assert record["cohort"] == record["heard"] == first_cohort(None, 0, num_silent)
    assert [client for now, client, *_ in played.charges if now == 0] == drawn_at(0, attempts=num_silent + 1)
    assert [client for now, client, _ in played.rewards if now == 0] == record["heard"]
    given_up = record["given_up"]
    assert [one["cohort"] for one in given_up] == [first_cohort(None, 0, attempt) for attempt in range(num_silent)]
    assert all(one["failures"] == {"absent": 4} for one in given_up)


def test_below_quorum_no_update_counts(tmp_path):
    """One of four is heard, two are needed: its update must not move the model, and it is owed nothing for it."""
    alone = first_cohort()[0]
    others = tuple(client for client in range(NUM_CLIENTS) if client != alone)
    with pytest.raises(QuorumNotReached):
        play(tmp_path, faults=[Fault("drop", rounds=(0,), clients=others)])
    assert rewards(TrialStore(tmp_path)) == []


def test_what_was_spent_in_attempts_given_up_counts_after_a_resume(tmp_path):
    """The ledger, the log and the result agree, though the resumed run did not redo those attempts."""
    with pytest.raises(QuorumNotReached):
        play(tmp_path, faults=[Fault("raise", rounds=(1,))])
    played = play(tmp_path)
    totals = np.zeros(NUM_CLIENTS, dtype=np.int64)
    for _, client, _, nanos in played.charges:
        totals[client] += nanos
    assert played.finished.state.spent.tolist() == totals.tolist()
    assert played.records[-1]["spent"]["rho"]["maximum"] == pytest.approx(totals.max() / 1e9)


def test_a_client_charged_in_an_attempt_given_up_is_not_drawn_past_its_limit(tmp_path):
    limit = Rho.of(0.12)
    with pytest.raises(QuorumNotReached):
        play(tmp_path, faults=[Fault("raise", rounds=(1,))], plan={"limit": limit})
    played = play(tmp_path, plan={"limit": limit})
    for client in range(NUM_CLIENTS):
        assert sum(nanos for _, one, _, nanos in played.charges if one == client) <= limit.nanos


# --- F23 ---


def test_clients_that_spent_their_limit_leave_and_the_rest_go_on(tmp_path):
    config = tiny(rounds=8)
    plan = prepared(config).plan
    limit = Rho.at_most(2.5 * float(np.median(plan.schedule.budget)))
    played = play(tmp_path, config=config, plan={"limit": limit})
    left = [client for record in played.records for client in record["left"]]
    assert 0 < len(left) < NUM_CLIENTS
    assert len(set(left)) == len(left)
    gone = set()
    for record in played.records:
        gone |= set(record["left"])
        assert not gone & set(record["cohort"])
        assert len(record["cohort"]) == min(4, NUM_CLIENTS - len(gone))
        # Chances are renormalised: those who are left share the whole cohort.
        assert record["draw"]["expected_cohort_size"] == pytest.approx(len(record["cohort"]))
        assert record["draw"]["weight_sum"] == pytest.approx(1.0)
    for client in range(NUM_CLIENTS):
        assert sum(nanos for _, one, _, nanos in played.charges if one == client) <= limit.nanos


def test_all_exhausted_ends_the_run_with_exit_4_and_keeps_the_model(tmp_path):
    config = tiny(rounds=30, privacy={"mode": "client", "clip_norm": 0.5, "limit_epsilon": 1.0, "delta": 1e-5})
    store = start_run(config, tmp_path / "run", None, Watcher())
    trial = store.trial("random", 0)
    assert trial.result["ended_by"] == "budget"
    assert trial.result["num_left"] == NUM_CLIENTS
    assert 0 < trial.result["rounds"] < 30
    assert (trial.folder / "model.pt").exists()
    with pytest.raises(BudgetExhausted, match="limit") as caught:
        raise_if_exhausted(store)
    assert caught.value.exit_code == 4


def test_fresh_noise_is_charged_again_on_resume_and_never_past_the_limit(tmp_path):
    """Rounds redone with fresh noise cost again; a client that cannot pay leaves, and the run does not die of it."""
    config = tiny(rounds=4, sampling={"samplers": ["random"], "sampling_ratio": 1.0})
    plan = prepared(config).plan
    secure = dataclasses.replace(plan.client, noise="secure")
    limit = Rho.at_most(1.01 * float(plan.schedule.budget.sum(axis=0).max()))
    stop = iter([False] * (3 * NUM_CLIENTS + 2) + [True] * 1000)
    changes = {"limit": limit, "client": secure}
    how = {"config": config, "checkpoint_every": 100}
    with pytest.raises(Interrupted):
        play(tmp_path, **how, plan=changes, wants_stop=lambda: next(stop))
    for path in (tmp_path / "checkpoints").iterdir():  # as if it had been killed, with no checkpoint of these rounds
        path.unlink()
    played = play(tmp_path, **how, plan=changes)
    for client in range(NUM_CLIENTS):
        assert sum(nanos for _, one, _, nanos in played.charges if one == client) <= limit.nanos
    totals = [sum(nanos for _, one, _, nanos in played.charges if one == client) for client in range(NUM_CLIENTS)]
    assert played.finished.state.spent.tolist() == totals


# --- F24 ---


def test_clients_that_come_or_go_change_nobody_elses_updates(tmp_path):
    """Given the same model, an update is a matter of (seed, round, client) alone."""
    away = 7
    everyone, fewer = reports(tmp_path / "all"), reports(tmp_path / "fewer", away)
    common = [key for key in everyone if key in fewer]
    assert len(common) >= 4
    assert all(everyone[key] == fewer[key] for key in common)
    assert not [key for key in fewer if key[1] == away]


def reports(folder, away=None):
    """(round, client) → the update's bytes, all computed from the first model."""
    present = np.ones(NUM_CLIENTS, dtype=np.bool_)
    if away is not None:
        present[away] = False

    class SameModel(Flaky):
        def run(self, parameters, tasks):
            return super().run(flat_parameters(prepared(tiny()).model), tasks)

    with engine_with(ENGINE, tiny()) as inner:
        engine = SameModel(inner)
        play(folder, engine=engine, presence=lambda _: present)
    return {(reply.round_index, reply.client): reply.values.tobytes() for reply in engine.replies}


def test_presence_is_kept_and_nobody_is_sent_for_while_away(tmp_path):
    config = tiny(rounds=4, presence=[{"client": 3, "leaves": 1}, {"client": 5, "joins": 2}])
    store = start_run(config, tmp_path / "run", None, Watcher())
    for record in store.trial("random", 0).rounds():
        assert not (3 in record["cohort"] and record["round"] >= 1)
        assert not (5 in record["cohort"] and record["round"] < 2)


def test_a_round_in_which_nobody_is_there_is_no_exhaustion(tmp_path):
    config = tiny(presence=[{"client": client, "leaves": 1} for client in range(NUM_CLIENTS)])
    with pytest.raises(QuorumNotReached):
        start_run(config, tmp_path / "run", None, Watcher())


# --- F22 ---


CHANGING = {"rounds": 4, "presence": [{"client": 3, "leaves": 2}]}


def unsolved(*_):
    raise NotConverged("residual 1.0 after 10 sweeps")


def test_a_game_that_cannot_be_solved_again_stops_the_run(tmp_path, monkeypatch):
    config = tiny(**CHANGING, game={"replan": "on-change"})
    with monkeypatch.context() as patch:
        patch.setattr("fedpcs.trial.replanning.replanned", unsolved)
        with pytest.raises(NotConverged) as caught:
            start_run(config, tmp_path / "run", None, Watcher())
    assert caught.value.exit_code == 3
    state, _, _ = latest(run_store.RunStore(tmp_path / "run").trial("random", 0).checkpoints)
    assert state.next_round == 2
    assert resume_run(tmp_path / "run", Watcher()).result is not None


def test_or_the_last_certified_schedule_stands_and_the_log_says_so(tmp_path, monkeypatch):
    kept = tiny(**CHANGING, game={"replan": "on-change", "if_unsolved": "keep"})
    never = tiny(**CHANGING, game={"replan": "never"})
    monkeypatch.setattr("fedpcs.trial.replanning.replanned", unsolved)
    one = start_run(kept, tmp_path / "kept", None, Watcher()).trial("random", 0)
    other = start_run(never, tmp_path / "never", None, Watcher()).trial("random", 0)
    told = [record for record in one.rounds() if record.replanned]
    assert [record.round for record in told] == [2]
    assert "kept" in told[0].replanned
    assert "residual" in told[0].because
    unknown = {"replanned": None, "because": None}
    assert [record.model_copy(update=unknown) for record in one.rounds()] == [
        record.model_copy(update=unknown) for record in other.rounds()
    ]


def test_a_game_solved_again_is_certified_and_logged(tmp_path):
    store = start_run(tiny(**CHANGING, game={"replan": "on-change"}), tmp_path / "run", None, Watcher())
    (told,) = [record for record in store.trial("random", 0).rounds() if record.replanned]
    assert told.round == 2
    assert told.exploitability <= 1e-3


def test_a_reward_for_every_round_can_be_replanned(tmp_path):
    config = tiny(**CHANGING, game={"replan": "on-change", "reward": [20.0, 21.0, 22.0, 23.0]})
    assert start_run(config, tmp_path / "run", None, Watcher()).result is not None


@pytest.mark.parametrize("policy", ["stop", "keep"])
def test_a_run_stopped_while_it_replans_tells_of_it_when_it_is_resumed(tmp_path, monkeypatch, policy):
    """With checkpoints two rounds apart, the round of the change is redone, and its line is the same."""
    config = tiny(
        rounds=5,
        checkpoint_every=3,
        presence=[{"client": 3, "leaves": 2}],
        game={"replan": "on-change", "if_unsolved": policy},
    )
    if policy == "keep":
        monkeypatch.setattr("fedpcs.trial.replanning.replanned", unsolved)
    whole = start_run(config, tmp_path / "whole", None, Watcher()).trial("random", 0)
    with stopped_in_round(2):
        start_run(config, tmp_path / "run", None, Watcher())
    resumed = resume_run(tmp_path / "run", Watcher()).trial("random", 0)
    assert resumed.log.read_bytes() == whole.log.read_bytes()


@contextmanager
def stopped_in_round(round_index):
    """Ask runs to stop when they are in this round."""
    hear = one_round._hear

    def stopping(plan, state, opened, engine, settings):
        if opened.round_index == round_index:
            settings = dataclasses.replace(settings, wants_stop=lambda: True)
        return hear(plan, state, opened, engine, settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_round, "_hear", stopping)
        with pytest.raises(Interrupted, match=f"stopped in round {round_index}"):
            yield


# --- What samplers ask ---


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("sampler", ["power-of-choice", "aocs"])
@pytest.mark.parametrize(
    "fault",
    [Fault("raise", when="ask", clients=(2,)), Fault("numbers", when="ask", clients=(2,), value=float("nan"))],
    ids=["raises", "NaN"],
)
def test_a_client_that_fails_when_it_is_asked_does_not_end_the_run(tmp_path, engine, sampler, fault):
    settings = {"sampling": {"samplers": [sampler], "sampling_ratio": 0.5}, "privacy": {"mode": "none"}}
    played = play(tmp_path, engine, [fault], config=tiny(**settings))
    assert len(played.records) == 3
    assert not [record for record in played.records if 2 in record["cohort"]]


def test_all_clients_fail_when_asked(tmp_path):
    settings = {"sampling": {"samplers": ["aocs"], "sampling_ratio": 0.5}, "privacy": {"mode": "none"}}
    with pytest.raises(QuorumNotReached):
        play(tmp_path, faults=[Fault("raise", when="ask")], config=tiny(**settings))


# --- F21 ---


@pytest.mark.parametrize("engine", ENGINES)
def test_a_clock_that_jumps_cuts_nobody_off(tmp_path, monkeypatch, engine):
    there = time.time
    jumps = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: there() + 86_400.0 * (-1.0) ** next(jumps) * 365.0)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    played = play(tmp_path, engine, deadline=30.0)
    assert all(record["failures"] == {} for record in played.records)


# --- F25 ---


def test_without_the_device_a_run_stops_or_goes_on_as_its_policy_says(tmp_path):
    wanted = {"kind": "in-process", "device": "cuda"}
    with pytest.raises(InvalidInput, match="if_device_lost"):
        start_run(tiny(engine=wanted), tmp_path / "stop", None, Watcher())
    assert not (tmp_path / "stop" / "manifest.json").exists()
    store = start_run(tiny(engine={**wanted, "if_device_lost": "cpu"}), tmp_path / "cpu", None, Watcher())
    assert "CPU" in str(store.manifest["notes"])


def test_a_device_lost_between_start_and_resume_is_noted(tmp_path, monkeypatch):
    config = tiny(engine={"kind": "in-process", "device": "cuda", "if_device_lost": "cpu"})
    there = session.device_of
    monkeypatch.setattr(session, "device_of", lambda _: ("cpu", []))  # stands for a device that is there
    with stopped_in_round(1):
        start_run(config, tmp_path / "run", None, Watcher())
    assert run_store.RunStore(tmp_path / "run").manifest["notes"] == []
    monkeypatch.setattr(session, "device_of", there)
    assert "CPU" in str(resume_run(tmp_path / "run", Watcher()).manifest["notes"])


def test_a_device_lost_in_a_round_is_told_from_other_failures(tmp_path):
    with pytest.raises(DeviceLost, match="round 1"):
        play(tmp_path, faults=[Fault("device", rounds=(1,))])


def test_after_a_lost_device_the_run_goes_on_on_the_cpu_by_policy(tmp_path, monkeypatch):
    """The first engine's device fails in round 1; the second engine is on the CPU."""
    config = tiny(engine={"kind": "in-process", "device": "cuda", "if_device_lost": "cpu"})
    monkeypatch.setattr(session, "device_of", lambda _: ("cuda", []))  # as if it were there
    monkeypatch.setattr(setup, "engine_of", lossy_engine)
    watcher = Watcher()
    store = start_run(config, tmp_path / "run", None, watcher)
    assert store.trial("random", 0).result["rounds"] == 3
    assert "CPU" in str(store.manifest["notes"])
    assert any("CPU" in words for words in watcher.said)


@contextmanager
def lossy_engine(config, session, plan, model, data):
    """In-process clients that compute on the CPU, and fail in round 1 if they are told to be elsewhere."""
    faults = [Fault("device", rounds=(1,))] if plan.client.device != "cpu" else []
    client = dataclasses.replace(plan.client, device="cpu")
    yield InProcessEngine(FaultyClients(client, model, data, faults))


@pytest.mark.parametrize("when", ["train", "ask"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_tensor_on_the_wrong_device_ends_the_run_and_is_no_drop_out(tmp_path, engine, when):
    """It would strike every client of every round: drawing others mends nothing. What was done before it is kept."""
    fault = Fault("wrong-device", rounds=(1,), when=when)
    config = tiny(sampling={"samplers": ["power-of-choice"]}, privacy={"mode": "none"})
    with pytest.raises(WrongDevice, match=r"same device.*mistake in a program.*report it"):
        play(tmp_path, engine, [fault], config=config)
    assert [line["failures"] for line in TrialStore(tmp_path).rounds()] == [{}]


def test_not_even_one_client_of_many_drops_out_by_it(tmp_path):
    with pytest.raises(WrongDevice):
        play(tmp_path, faults=[Fault("wrong-device", rounds=(1,), clients=(first_cohort(round_index=1)[0],))])


# --- F26 ---


@pytest.mark.parametrize("error", [RuntimeError("no fonts"), KeyError("[/bold] [/x]"), MemoryError()])
def test_a_report_that_cannot_be_drawn_costs_no_result(tmp_path, monkeypatch, error):
    def broken(*_, **__):
        raise error

    monkeypatch.setattr(run_report, "write_study", broken)
    config = tiny()
    with Display(config) as display:
        store = start_run(config, tmp_path / "run", None, display)
        run_report.write_report_safely(store, display.say)
    assert store.result["trials"][0]["rounds"] == 3
    assert (store.trial("random", 0).folder / "model.pt").exists()


# --- Failures that are not of this round ---


def test_a_failure_of_a_stranger_or_of_another_round_is_no_failure_of_this_one(tmp_path):
    class Gossip(Flaky):
        def run(self, parameters, tasks):
            yield ClientFailure(99, 10_000, "died", "somebody else")
            yield from super().run(parameters, tasks)

    with engine_with(ENGINE, tiny()) as inner:
        played = play(tmp_path, engine=Gossip(inner))
    assert all(record["failures"] == {} for record in played.records)


@pytest.mark.parametrize("reply", [None, "text", 7, {"client": 3}, b"bytes"])
def test_a_reply_that_is_none_ends_nothing(tmp_path, reply):
    class Nonsense(Flaky):
        def run(self, parameters, tasks):
            yield reply
            yield from super().run(parameters, tasks)

    with engine_with(ENGINE, tiny()) as inner:
        played = play(tmp_path, engine=Nonsense(inner))
    assert all(record["refusals"] == {"stranger": 1} for record in played.records)
