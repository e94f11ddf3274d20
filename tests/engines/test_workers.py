"""Worker processes as an engine's user meets them: left early, asked for nothing, closed, refused."""

import numpy as np
import pytest
from processes import is_alive, wait_until
from torch import nn

from fedpcs.engines.workers import WorkerEngine
from fedpcs.errors import InvalidInput
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import deal_out
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.protocol import ClientReport, Task

NUM_CLIENTS = 6


@pytest.fixture(scope="module")
def data():
    return deal_out(load_dataset("digits"), np.split(np.arange(60), NUM_CLIENTS))


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


@pytest.fixture(scope="module")
def parameters(model):
    return flat_parameters(model)


@pytest.fixture(scope="module")
def engine(data, model):
    made = WorkerEngine(ClientPlan(batch_size=4), model, data, num_workers=2, num_slots=3)
    yield made
    made.close()


def tasks(round_index=0, clients=range(NUM_CLIENTS)):
    return [Task("toy", round_index, client, f"{round_index} {client}") for client in clients]


def updates(engine, parameters, round_index=0):
    replies = list(engine.run(parameters, tasks(round_index)))
    assert all(isinstance(reply, ClientReport) for reply in replies)
    assert len(replies) == NUM_CLIENTS
    return {reply.client: reply.values.tobytes() for reply in replies}


@pytest.mark.parametrize("num_taken", [0, 1, 4])
def test_a_call_left_early_does_not_disturb_the_next(engine, parameters, num_taken):
    expected = updates(engine, parameters)
    replies = engine.run(parameters, tasks(1))
    for _ in range(num_taken):
        next(replies)
    replies.close()
    found = list(engine.run(parameters, tasks()))
    assert sorted(reply.nonce for reply in found) == sorted(task.nonce for task in tasks())
    assert {reply.client: reply.values.tobytes() for reply in found} == expected


def test_other_parameters_reach_the_workers(engine, parameters):
    assert updates(engine, parameters) != updates(engine, 2.0 * parameters)
    assert engine.score(0.0 * parameters).loss == pytest.approx(np.log(10.0))


def test_a_client_that_does_not_exist_fails_alone(engine, parameters):
    failed, good = sorted(engine.run(parameters, tasks(0, [99, 2])), key=lambda reply: -reply.client)
    assert (failed.client, failed.kind) == (99, "raised")
    assert isinstance(good, ClientReport)
    answers = engine.ask(parameters, "loss", tasks(0, [99, 2]))
    assert np.isnan(answers[0])
    assert np.isfinite(answers[1])


def test_no_process_is_left_after_close(data, model, parameters):
    engine = WorkerEngine(ClientPlan(), model, data, num_workers=3, num_slots=3)
    replies = engine.run(parameters, tasks())
    next(replies)
    pids = {worker.process.pid for worker in engine._workers}
    replies.close()
    pids |= {worker.process.pid for worker in engine._workers}
    engine.close()
    engine.close()  # twice does no harm
    assert len(pids) >= 3
    wait_until(lambda: not any(map(is_alive, pids)), 5.0)


def refused(plan, model, data):
    raise ValueError("no such\nfile")


def test_a_side_that_cannot_be_made_is_told_in_one_line(data, model, parameters):
    engine = WorkerEngine(ClientPlan(), model, data, num_workers=1, side=refused)
    try:
        with pytest.raises(InvalidInput) as told:
            list(engine.run(parameters, tasks()))
    finally:
        engine.close()
    assert "ValueError: no such file" in str(told.value)
    assert len(str(told.value).splitlines()) == 1
