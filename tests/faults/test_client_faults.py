"""F1–F12: whatever one client does, the round goes on, and the model is what it would be without that client."""

import math
import os
import time

import pytest
from fault_injection import Fault
from faulty_federation import ENGINES, engine_with, first_cohort, play, same_but_for_how, tiny
from processes import is_alive, wait_until
from tiny_runs import prepared

from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.protocol import ClientFailure, Task
from fedpcs.privacy.budget import Rho

NAN, INF = math.nan, math.inf
# Struck in round 1, so that there is a round before and one after.
ROUND = 1
VICTIM = first_cohort(round_index=ROUND)[1]
AT = {"rounds": (ROUND,), "clients": (VICTIM,)}

# kind, more of the fault, what the log counts in-process, and with workers: there, JSON's types are checked first.
REFUSED = {
    "NaN in the first tensor": (Fault("one-number", value=NAN, **AT), "numbers"),
    "NaN in the last tensor": (Fault("one-number", value=NAN, tensor=1, **AT), "numbers"),
    "a tensor of infinities": (Fault("numbers", value=INF, **AT), "numbers"),
    "minus infinity": (Fault("one-number", value=-INF, tensor=1, **AT), "numbers"),
    "denormal storm": (Fault("denormal", **AT), "numbers"),
    "enormous": (Fault("enormous", **AT), "norm"),
    "just too long": (Fault("enormous", value=1e3, **AT), "norm"),
    "shape that broadcasts": (Fault("shape", value=(1, 64), **AT), "layout"),
    "scalar that broadcasts": (Fault("shape", value=(1,), tensor=1, **AT), "layout"),
    "transposed": (Fault("shape", value=(64, 10), **AT), "layout"),
    "empty tensor": (Fault("shape", value=(0,), tensor=1, **AT), "layout"),
    "no dimensions": (Fault("shape", value=(), tensor=1, **AT), "layout"),
    "float64": (Fault("dtype", value="float64", **AT), "layout"),
    "float16": (Fault("dtype", value="float16", **AT), "layout"),
    "int32": (Fault("dtype", value="int32", **AT), "layout"),
    "missing key": (Fault("missing-key", tensor=1, **AT), "layout"),
    "extra key": (Fault("extra-key", **AT), "layout"),
    "keys in another order": (Fault("swapped-keys", **AT), "layout"),
    "no samples": (Fault("size", value=0, **AT), "size"),
    "negative samples": (Fault("size", value=-5, **AT), "size"),
    "1e18 samples": (Fault("size", value=10**18, **AT), "size"),
    "NaN samples": (Fault("size", value=NAN, **AT), ("size", "message")),
    "infinite samples": (Fault("size", value=INF, **AT), ("size", "message")),
    "half a sample": (Fault("size", value=0.5, **AT), ("size", "message")),
    "samples in words": (Fault("size", value="many", **AT), ("size", "message")),
    "true samples": (Fault("size", value=True, **AT), ("size", "message")),
    "another budget": (Fault("budget", value=Rho.of(0.2), **AT), "contract"),
    "no budget": (Fault("budget", value=Rho(0), **AT), "contract"),
    "budget out of range": (Fault("budget", value=Rho.of(1e9), **AT), "contract"),
    "budget left out": (Fault("budget", value=None, **AT), "contract"),
    "measures nobody asked for": (Fault("measures", value={"loss": 1.0}, **AT), "size"),
    "a guessed nonce": (Fault("nonce", value="0" * 16, **AT), "stale"),
    "far too many numbers": (Fault("bloated", **AT), ("layout", "message")),
    "message cut short": (Fault("truncated", **AT), "message"),
    "message with a bit flipped": (Fault("flipped", **AT), "message"),
    "random message": (Fault("random", **AT), "message"),
    "message too large": (Fault("too-large", **AT), "message"),
}

# What is wrong with a message workers alone can meet; what is wrong in a report is refused in the same place on both.
REFUSED_ON = [
    pytest.param(engine, name, marks=[pytest.mark.slow] if engine == "workers" and "message" not in kinds else [])
    for name, (_, kinds) in REFUSED.items()
    for engine in ENGINES
]

FAILED = {
    "raises": (Fault("raise", **AT), "raised"),
    "exits": (Fault("exit", **AT), "died"),
    "runs out of memory": (Fault("memory", **AT), "memory"),
    "loses its device": (Fault("device", **AT), "device"),
    "hangs": (Fault("hang", **AT), "deadline"),
    # A process of its own is what these kill or block: they apply to workers only.
    "is killed": (Fault("kill", **AT), "died"),
    "hangs in C": (Fault("hang-in-c", **AT), "deadline"),
}
WORKERS_ONLY = ("is killed", "hangs in C")
FAILED_ON = [(engine, name) for name in FAILED for engine in ENGINES if engine == "workers" or name not in WORKERS_ONLY]


@pytest.fixture(scope="module")
def absent(tmp_path_factory):
    """The run in which the victim simply is away in that round."""
    return play(tmp_path_factory.mktemp("absent"), faults=[Fault("drop", **AT)])


@pytest.fixture(scope="module")
def unharmed(tmp_path_factory):
    return play(tmp_path_factory.mktemp("unharmed"))


def counted(record):
    return {**record.failures, **record.refusals}


def went_on_without(played, absent):
    """The victim's round went on without it, to the last bit, and all was charged and owed as without it."""
    assert played.model == absent.model
    assert same_but_for_how(played.records, absent.records)
    assert played.charges == absent.charges
    assert played.rewards == absent.rewards
    assert VICTIM in [client for when, client, *_ in played.charges if when == ROUND]
    assert VICTIM not in [client for when, client, *_ in played.rewards if when == ROUND]
    assert len(played.records) == 3


@pytest.mark.parametrize(("engine", "name"), REFUSED_ON)
def test_a_malformed_report_is_refused_and_leaves_no_trace_in_the_model(tmp_path, absent, engine, name):
    """F6–F11."""
    fault, kinds = REFUSED[name]
    kind = kinds if isinstance(kinds, str) else kinds[ENGINES.index(engine)]
    played = play(tmp_path, engine, [fault])
    went_on_without(played, absent)
    assert counted(played.records[ROUND]) == {kind: 1}
    assert [counted(record) for record in played.records if record.round != ROUND] == [{}, {}]


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "shape that broadcasts": ["weight", "(1, 64)", "(10, 64)"],
        "empty tensor": ["bias", "(0,)", "(10,)"],
        "float64": ["float64", "float32"],
        "missing key": ["bias", "(10,)"],
        "extra key": ["extra"],
        "1e18 samples": ["1000000000000000000"],
        "NaN in the last tensor": ["bias", "nan"],
        "another budget": ["0.2"],
        "enormous": ["norm", "at most"],
    }.items(),
)
def test_a_refusal_names_the_key_what_was_expected_and_what_came(tmp_path, name, words):
    (refused,) = play(tmp_path, faults=[REFUSED[name][0]]).records[ROUND].refused
    assert refused.client == VICTIM
    assert all(word in refused.reason for word in words), refused["reason"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["payload", "pickle"])
def test_a_pickle_in_a_reply_is_never_executed(tmp_path, absent, engine, kind):
    """F11: as numbers of a report, and as a whole message."""
    marker = tmp_path / "executed"
    played = play(tmp_path / "run", engine, [Fault(kind, value=str(marker), **AT)])
    went_on_without(played, absent)
    assert not marker.exists()


@pytest.mark.parametrize(("engine", "name"), FAILED_ON)
def test_a_client_that_fails_costs_the_round_only_its_own_update(tmp_path, absent, engine, name):
    """F1, F2, F25: a failure is a value with its kind, the worker is replaced, and nobody stays behind."""
    fault, kind = FAILED[name]
    config = tiny()
    with engine_with(engine, config, [fault], deadline=1.0) as faulty:
        before = worker_pids(faulty)
        played = play(tmp_path, engine=faulty)
        after = worker_pids(faulty)
    went_on_without(played, absent)
    assert played.records[ROUND].failures == {kind: 1}
    (failed,) = played.records[ROUND].failed
    assert failed.client == VICTIM
    assert ("took longer than 1 s" in failed.reason) == (kind == "deadline")
    if engine == "workers":
        has_lost_its_worker = name in (*WORKERS_ONLY, "hangs", "exits")
        assert len(after) == 2
        assert len(after - before) == int(has_lost_its_worker)
    wait_until(lambda: not any(map(is_alive, before | after)))


@pytest.mark.parametrize(("engine", "name"), FAILED_ON)
def test_an_engine_returns_a_failure_with_its_reason(engine, name):
    fault, kind = FAILED[name]
    config = tiny()
    with engine_with(engine, config, [fault], deadline=0.5) as faulty:
        task = Task("tiny", ROUND, VICTIM, "nonce", Rho.of(0.1))
        (reply,) = faulty.run(flat_parameters(prepared(config).model), [task])
    assert isinstance(reply, ClientFailure)
    assert (reply.client, reply.round_index, reply.kind) == (VICTIM, ROUND, kind)
    assert len(reply.reason) > 5


def test_workers_that_all_die_at_once_are_all_replaced(tmp_path):
    """Every client of a round kills its worker; the round is drawn again, and fails; no process is left."""
    from fedpcs.errors import QuorumNotReached

    with engine_with("workers", tiny(), [Fault("kill", rounds=(0,))]) as faulty:
        with pytest.raises(QuorumNotReached):
            play(tmp_path, engine=faulty)
        pids = worker_pids(faulty)
        assert len(pids) == 2
    wait_until(lambda: not any(map(is_alive, pids)))


def test_a_worker_that_died_between_rounds_is_replaced(tmp_path, unharmed):
    """The system may kill a worker that waits for work. At worst that costs one client its round."""
    with engine_with("workers", tiny()) as faulty:
        plan = prepared(tiny()).plan
        parameters = flat_parameters(prepared(tiny()).model)
        tasks = [Task("tiny", 0, client, "nonce", Rho.of(0.1)) for client in range(4)]
        list(faulty.run(parameters, tasks))
        for pid in worker_pids(faulty):
            os.kill(pid, 9)
        time.sleep(0.1)
        replies = list(faulty.run(parameters, tasks))
        assert len(replies) == 4
        assert sum(isinstance(reply, ClientFailure) for reply in replies) <= 2
        assert not any(isinstance(reply, ClientFailure) for reply in faulty.run(parameters, tasks))
        assert plan.num_clients == 8


@pytest.mark.parametrize("engine", ENGINES)
def test_a_late_reply_is_dropped(tmp_path, absent, engine):
    """F3: it arrives with the next round's, and answers another task."""
    played = play(tmp_path, engine, [Fault("late", **AT)])
    went_on_without(played, absent)
    assert played.records[ROUND].failures == {"absent": 1}
    drawn_again = VICTIM in played.records[ROUND + 1].cohort
    assert counted(played.records[ROUND + 1]) == {"stale" if drawn_again else "stranger": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_late_replies_of_everyone_never_count_in_the_next_round(tmp_path, engine):
    """Round 0's updates all come in round 1: the model moves by round 1's own alone, and round 0 is drawn again."""
    played = play(tmp_path, engine, [Fault("late", rounds=(1,), chance=0.5)])
    late = [client for client in played.records[1].cohort if client not in played.records[1].heard]
    assert late
    assert sum(played.records[2].refusals.values()) == len(late)
    dropped = play(tmp_path / "dropped", faults=[Fault("drop", rounds=(1,), clients=tuple(late))])
    assert played.model == dropped.model


@pytest.mark.parametrize("engine", ENGINES)
def test_of_two_replies_the_first_counts_and_the_second_is_counted_out(tmp_path, unharmed, engine):
    """F4."""
    played = play(tmp_path, engine, [Fault("twice", **AT)])
    assert played.model == unharmed.model
    assert same_but_for_how(played.records, unharmed.records)
    assert played.rewards == unharmed.rewards
    assert played.records[ROUND].refusals == {"duplicate": 1}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("stranger", [10_000, -1, "other"])
def test_a_reply_from_a_stranger_is_refused(tmp_path, unharmed, engine, stranger):
    """F5: from a client not drawn, and from none there is."""
    if stranger == "other":
        stranger = next(c for c in range(8) if c not in first_cohort(round_index=ROUND))
    played = play(tmp_path, engine, [Fault("stranger", value=stranger, **AT)])
    assert played.model == unharmed.model
    assert same_but_for_how(played.records, unharmed.records)
    assert played.records[ROUND].refusals == {"stranger": 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_without_clipping_an_update_far_longer_than_the_others_is_refused(tmp_path, engine):
    """F7 in mode none: by the median of the round."""
    config = tiny(privacy={"mode": "none"}, game={"reward": 20.0})
    played = play(tmp_path / "enormous", engine, [Fault("enormous", value=1e6, **AT)], config=config)
    away = play(tmp_path / "absent", faults=[Fault("drop", **AT)], config=config)
    assert played.model == away.model
    assert played.records[ROUND].refusals == {"norm": 1}


def worker_pids(faulty):
    return {worker.process.pid for worker in getattr(faulty._inner, "_workers", [])}
