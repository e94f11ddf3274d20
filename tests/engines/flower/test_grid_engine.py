"""Over Flower's messages clients send the bits they send in one process, and whatever comes back is a value."""

import json
import math

import numpy as np
import pytest
from fault_injection import Fault, FaultyClients
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from local_grid import LocalGrid
from torch import nn

from fedpcs.engines.base import Score
from fedpcs.engines.flower.client_app import Member, make_client_app
from fedpcs.engines.flower.grid_engine import GridEngine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.errors import WrongDevice
from fedpcs.learning.admission import Expected, Refusal, admit
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import deal_out
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters, layout_of
from fedpcs.learning.protocol import ClientFailure, Task
from fedpcs.learning.wire import header_of
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes import MODES

CLIENTS = range(4)
NODES = (71, 5, 33, 18)  # Flower's ids are in no order


@pytest.fixture(scope="module")
def data():
    return deal_out(load_dataset("digits"), np.split(np.arange(60), [7, 20, 33]))


@pytest.fixture(scope="module")
def model():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def tasks(mode):
    budget = None if mode == "none" else Rho.of(0.4)
    measures = ("loss", "gradient_variance")
    return [Task("toy", 2, client, f"nonce {client}", budget, measures) for client in CLIENTS]


def engine_of(side, may_be_asked=True, *, nodes=None, **settings):
    def member_of(context, run):
        client = int(context.node_config["partition-id"])
        return Member(str(client), side, int(side.data.num_samples[client]), may_be_asked=may_be_asked)

    grid = LocalGrid(make_client_app(member_of), NODES)
    found = dict(enumerate(NODES)) if nodes is None else nodes
    return GridEngine(grid, lambda: found, lambda parameters: Score(0.5, 1.0), poll_seconds=0.0, **settings)


def sent(engine, mode, parameters):
    replies = {reply.client: reply for reply in engine.run(parameters, tasks(mode))}
    return [(header_of(replies[client]), replies[client].values.tobytes()) for client in CLIENTS]


@pytest.mark.parametrize("mode", MODES)
def test_clients_send_the_bits_they_send_in_one_process(data, model, mode):
    plan = ClientPlan(seed=1, mode=mode, batch_size=6, local_epochs=2, clip_norm=0.5)
    parameters = flat_parameters(model)
    side = ClientSide(plan, model, data)
    here, there = InProcessEngine(side), engine_of(side)
    assert sent(there, mode, parameters) == sent(here, mode, parameters)
    for question in ("loss", "update_norm"):
        np.testing.assert_array_equal(
            there.ask(parameters, question, tasks(mode)), here.ask(parameters, question, tasks(mode))
        )
    assert there.score(parameters) == Score(0.5, 1.0)


def test_a_client_that_was_not_asked_to_tells_nothing_of_its_records(data, model):
    engine = engine_of(ClientSide(ClientPlan(), model, data), may_be_asked=False)
    parameters = flat_parameters(model)
    assert np.isnan(engine.ask(parameters, "loss", tasks("none"))).all()
    replies = list(engine.run(parameters, tasks("none")))  # they ask for a measure
    assert {(type(one), one.kind) for one in replies} == {(ClientFailure, "raised")}
    assert "charged to nobody" in replies[0].reason


def test_a_client_without_a_node_is_absent_and_the_others_are_heard(data, model):
    engine = engine_of(ClientSide(ClientPlan(), model, data), nodes={0: 71, 2: 33})
    replies = {one.client: one for one in engine.run(flat_parameters(model), tasks("none"))}
    assert isinstance(replies[1], ClientFailure)
    assert (replies[1].kind, replies[3].kind) == ("died", "died")
    assert "no node" in replies[1].reason
    assert not isinstance(replies[0], ClientFailure)
    assert not isinstance(replies[2], ClientFailure)


@pytest.mark.parametrize("when", ["train", "ask"])
def test_a_tensor_on_the_wrong_device_ends_a_simulation(data, model, when):
    side = FaultyClients(ClientPlan(), model, data, [Fault("wrong-device", clients=(2,), when=when)])
    engine, parameters = engine_of(side, is_simulated=True), flat_parameters(model)

    def exchange():
        if when == "ask":
            return engine.ask(parameters, "loss", tasks("none"))
        return list(engine.run(parameters, tasks("none")))

    with pytest.raises(WrongDevice, match=r"^a tensor is on the wrong device: .* avoids it\.$"):
        exchange()


def test_a_client_on_its_own_machine_cannot_end_a_run_by_saying_so(data, model):
    side = FaultyClients(ClientPlan(), model, data, [Fault("wrong-device", clients=(2,))])
    replies = {one.client: one for one in engine_of(side).run(flat_parameters(model), tasks("none"))}
    assert [client for client, one in replies.items() if isinstance(one, ClientFailure)] == [2]


BAD = [
    Fault("raise"),
    Fault("memory"),
    Fault("numbers", value=math.nan),
    Fault("one-number", value=math.inf),
    Fault("denormal"),
    Fault("shape", value=(3, 3)),
    Fault("shape", value=(1, 64)),
    Fault("dtype", value="float64"),
    Fault("missing-key"),
    Fault("extra-key"),
    Fault("swapped-keys"),
    Fault("size", value=10**12),
    Fault("budget", value=Rho.of(3.0)),
    Fault("nonce", value="forged"),
    Fault("bloated"),
    Fault("payload", value="/nonexistent/touched"),
]


@pytest.mark.parametrize("fault", BAD, ids=lambda fault: f"{fault.kind}-{fault.value}")
def test_no_bad_reply_is_admitted_and_none_is_an_exception(data, model, fault):
    plan = ClientPlan(mode="client", clip_norm=0.5)
    parameters = flat_parameters(model)
    one = Fault(fault.kind, clients=(1,), value=fault.value)
    engine = engine_of(FaultyClients(plan, model, data, [one]))
    replies = {reply.client: reply for reply in engine.run(parameters, tasks("client"))}
    verdicts = {}
    for task in tasks("client"):
        reply = replies[task.client]
        expected = Expected(task, int(data.num_samples[task.client]), layout_of(model), plan)
        verdicts[task.client] = reply if isinstance(reply, ClientFailure) else admit(reply, expected)
    assert isinstance(verdicts[1], Refusal | ClientFailure)
    assert not any(isinstance(verdicts[client], Refusal | ClientFailure) for client in (0, 2, 3))


def json_record(values):
    return ConfigRecord({"json": json.dumps(values)})


GARBAGE = {
    "nothing": RecordDict(),
    "no text": RecordDict({"numbers": ArrayRecord({"values": Array(np.zeros(3))})}),
    "no numbers": RecordDict({"text": json_record({})}),
    "not JSON": RecordDict(
        {"text": ConfigRecord({"json": "{"}), "numbers": ArrayRecord({"values": Array(np.zeros(3))})}
    ),
    "a list": RecordDict({"text": json_record([1]), "numbers": ArrayRecord({"values": Array(np.zeros(3))})}),
    "bytes": RecordDict({"text": ConfigRecord({"json": b"{}"}), "numbers": ArrayRecord()}),
    "two arrays": RecordDict({"text": json_record({}), "numbers": ArrayRecord([np.zeros(2), np.zeros(2)])}),
    "a pickle": RecordDict(
        {"text": json_record({}), "numbers": ArrayRecord({"values": Array("O", (1,), "pickle", b"x")})}
    ),
    "damaged": RecordDict(
        {"text": json_record({}), "numbers": ArrayRecord({"values": Array("f", (1,), "numpy.ndarray", b"\x93NUMPY")})}
    ),
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_is_a_failure_that_says_so(model, garbage):
    app = ClientApp()

    @app.train()
    def train(message, context):
        return Message(GARBAGE[garbage], reply_to=message)

    @app.query("question")
    def question(message, context):
        return Message(GARBAGE[garbage], reply_to=message)

    engine = GridEngine(LocalGrid(app, NODES), lambda: dict(enumerate(NODES)), None, deadline_seconds=0.2)
    replies = list(engine.run(flat_parameters(model), tasks("none")))
    assert {one.kind for one in replies} == {"message"}
    assert np.isnan(engine.ask(flat_parameters(model), "loss", tasks("none"))).all()


def test_nobody_answers_or_is_refused_in_another_s_name(data, model):
    engine = engine_of(ClientSide(ClientPlan(), model, data))
    honest, app = engine._grid.app, ClientApp()

    @app.train()
    def train(message, context):
        reply = honest(message, context)
        told = {**json.loads(reply.content["text"]["json"]), "client": 0}
        return Message(RecordDict({**reply.content, "text": json_record(told)}), reply_to=message)

    engine._grid.app = app
    replies = list(engine.run(flat_parameters(model), tasks("none")))
    assert sorted((one.client, getattr(one, "kind", "heard")) for one in replies) == [
        (0, "heard"),
        *((client, "message") for client in (1, 2, 3)),
    ]


class Forgetful(LocalGrid):
    """Loses replies of some nodes, and answers for others as a SuperLink does for a node that has died."""

    def __init__(self, app, lost, dead):
        super().__init__(app, NODES)
        self.lost, self.dead = lost, dead

    def pull_messages(self, message_ids):
        for reply in super().pull_messages(message_ids):
            node = reply.metadata.src_node_id
            if node in self.dead:
                reply.metadata.__dict__["_src_node_id"] = 1
                reply.metadata.__dict__["_dst_node_id"] = 99
                yield self.error_for(reply)
            elif node not in self.lost:
                yield reply

    def error_for(self, reply):
        asked = self.asked[reply.metadata.reply_to_message_id]
        return Message(Error(code=5, reason="Node Unavailable"), reply_to=asked)

    def push_messages(self, messages):
        messages = list(messages)
        ids = super().push_messages(messages)
        self.asked = {**getattr(self, "asked", {}), **dict(zip(ids, messages, strict=True))}
        return ids


def test_replies_are_matched_by_message_and_silence_ends(data, model):
    side = ClientSide(ClientPlan(), model, data)

    def member_of(context, run):
        return Member("x", side, 1, may_be_asked=True)

    grid = Forgetful(make_client_app(member_of), lost={NODES[3]}, dead={NODES[1]})
    engine = GridEngine(grid, lambda: dict(enumerate(NODES)), None, deadline_seconds=2.0, poll_seconds=0.01)
    replies = {one.client: one for one in engine.run(flat_parameters(model), tasks("none"))}
    assert (replies[1].kind, replies[1].reason) == ("died", "Node Unavailable")
    assert (replies[3].kind, replies[3].reason) == ("deadline", "no reply within 2 s")
    assert not isinstance(replies[0], ClientFailure)
    assert not isinstance(replies[2], ClientFailure)
