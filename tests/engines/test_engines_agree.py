"""Where clients run changes nothing: one process or one, two, three workers send the same bits."""

import numpy as np
import pytest
import torch
from torch import nn

from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import deal_out
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.protocol import Task
from fedpcs.learning.wire import header_of
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes import MODES

CLIENTS = range(5)


@pytest.fixture(scope="module")
def data():
    parts = np.split(np.arange(60), [7, 20, 33, 51])
    return deal_out(load_dataset("digits"), parts)


def network(mode):
    """Fused layers and dropout; per-sample gradients take no dropout."""
    drop = [] if mode == "record" else [nn.Dropout(0.3)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        return nn.Sequential(
            nn.Flatten(), nn.Linear(64, 260), nn.Tanh(), *drop, nn.Linear(260, 260), nn.Tanh(), nn.Linear(260, 10)
        )


def tasks(mode, clients=CLIENTS):
    budget = None if mode == "none" else Rho.of(0.4)
    return [Task("toy", 2, client, f"nonce {client}", budget, ("loss", "gradient_variance")) for client in clients]


def everything(engine, mode, parameters):
    """All an engine can be asked for, as bytes and numbers."""
    work = tasks(mode)
    replies = {reply.client: reply for reply in engine.run(parameters, work)}
    assert sorted(replies) == list(CLIENTS)
    sent = [(header_of(replies[client]), replies[client].values.tobytes()) for client in CLIENTS]
    answers = [engine.ask(parameters, question, work).tobytes() for question in ("loss", "update_norm")]
    return sent, answers, engine.score(parameters)


@pytest.mark.parametrize("mode", list(MODES)[::-1])  # `record` first: what workers are forked from then is ready for it
def test_workers_send_the_bits_one_process_sends(data, mode):
    plan = ClientPlan(seed=1, mode=mode, batch_size=6, local_epochs=2, clip_norm=0.5)
    model = network(mode)
    parameters = flat_parameters(model)
    parameters.flags.writeable = False
    expected = everything(InProcessEngine(ClientSide(plan, model, data)), mode, parameters)
    for num_workers, num_slots in ((1, 8), (3, 3)):  # with 3 slots, two updates come as messages
        engine = WorkerEngine(plan, model, data, num_workers=num_workers, num_slots=num_slots)
        try:
            assert everything(engine, mode, parameters) == expected
            assert everything(engine, mode, parameters) == expected  # nothing is left over from before
        finally:
            engine.close()


def test_torchs_number_of_threads_changes_nothing_and_is_put_back(data):
    plan, model = ClientPlan(seed=1, batch_size=None), network("none")
    parameters = flat_parameters(model)
    engine = InProcessEngine(ClientSide(plan, model, data))
    before = torch.get_num_threads()
    found = []
    try:
        for num_threads in (1, 2):
            torch.set_num_threads(num_threads)
            found.append(everything(engine, "none", parameters))
            assert torch.get_num_threads() == num_threads
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_the_order_of_tasks_changes_nobodys_update(data):
    plan, model = ClientPlan(seed=1, mode="client", batch_size=6), network("client")
    engine = InProcessEngine(ClientSide(plan, model, data))
    parameters = flat_parameters(model)
    forth = {reply.client: reply.values.tobytes() for reply in engine.run(parameters, tasks("client"))}
    back = {reply.client: reply.values.tobytes() for reply in engine.run(parameters, tasks("client", CLIENTS[::-1]))}
    alone = {reply.client: reply.values.tobytes() for reply in engine.run(parameters, tasks("client", [3]))}
    assert forth == back
    assert alone[3] == forth[3]


def test_reports_of_one_call_lie_apart(data):
    plan, model = ClientPlan(), network("none")
    replies = list(InProcessEngine(ClientSide(plan, model, data)).run(flat_parameters(model), tasks("none")))
    assert not any(np.shares_memory(a.values, b.values) for a in replies for b in replies if a is not b)


def test_nothing_to_do_is_done(data):
    model = network("none")
    engine = InProcessEngine(ClientSide(ClientPlan(), model, data))
    assert list(engine.run(flat_parameters(model), [])) == []
    assert engine.ask(flat_parameters(model), "loss", []).shape == (0,)
