"""No reply ends a run: what cannot be read, is too large or never comes is one client's failure."""

import json
import tracemalloc

import lying_client_app
import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.strategy import FedAvg
from google.protobuf.message import DecodeError
from http_grid import SuperLink, http_grid
from local_grid import LocalGrid

from fedpcs.engines.flower import guarded_grid, messages
from fedpcs.engines.flower.grid_engine import GridEngine
from fedpcs.engines.flower.guarded_grid import GuardedGrid
from fedpcs.engines.flower.strategy import SampledStrategy
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import ClientFailure, ClientReport, Task

MODEL = np.linspace(-1.0, 1.0, 65_000, dtype=np.float32)
LAYOUT = Layout(("weight",), ((65_000,),))
NODES = {0: 71, 1: 5, 2: 33}
MOST_READ = 2 * MODEL.nbytes + 2**22


def update_of(client):
    return MODEL / (3 + client)


def honest_content(task):
    report = ClientReport(task.run, task.round_index, task.client, task.nonce, None, 20, LAYOUT, update_of(task.client))
    return messages.report_content(report)


def tasks():
    return [Task("toy", 0, client, f"nonce {client}") for client in NODES]


class Answering:
    """A grid whose nodes answer at once: the second with a lie, over the bytes of Flower's wire."""

    def __init__(self, lie=None, say=lambda words: None):
        self.superlink, self.lie = SuperLink(), lie
        self.grid = GuardedGrid(http_grid(self.superlink), say)
        push = self.grid._grid.push_messages

        def answered(outgoing):
            ids = push(outgoing)
            for message in outgoing:
                self.superlink.put(self.reply_to(message))
            return ids

        self.grid._grid.push_messages = answered

    def reply_to(self, message):
        task, _ = messages.read_task(message.content)
        content = honest_content(task)
        return Message(self.lie(content) if self.lie and task.client == 1 else content, reply_to=message)

    def run(self, **settings):
        engine = GridEngine(self.grid, lambda: NODES, None, poll_seconds=0.0, **settings)
        return {reply.client: reply for reply in engine.run(MODEL, tasks())}


def are_honest(replies, clients):
    return all(np.array_equal(replies[client].values, update_of(client)) for client in clients)


def test_honest_replies_come_as_they_were_sent_and_are_forgotten():
    federation = Answering()
    assert are_honest(federation.run(), NODES)
    assert len(federation.superlink.confirmed) == 3
    assert federation.grid._sent == {}
    assert federation.grid._arriving == {}


def deep_text(content):
    return RecordDict({**content, "text": ConfigRecord({"json": "[" * 10**6})})


def not_a_message(content):
    return RecordDict({"numbers": ArrayRecord({"values": Array(np.zeros(0))})})


def one_long_text(content):
    return RecordDict({**content, "text": ConfigRecord({"json": "x" * (3 * 2**20)})})


LIES = {
    **{name: lie for name, lie in lying_client_app.LIES.items() if name != "error"},
    "deep": deep_text,
    "other": not_a_message,
    "long text": one_long_text,
}


@pytest.mark.parametrize("name", LIES)
def test_a_reply_that_lies_on_the_wire_is_one_failure_and_little_of_it_is_read(name, monkeypatch):
    monkeypatch.setattr(lying_client_app, "BULK_BYTES", 40 * 10**6)
    monkeypatch.setattr(lying_client_app, "MANY_RECORDS", 1500)
    federation = Answering(LIES[name])
    replies = federation.run()
    assert are_honest(replies, (0, 2))
    assert isinstance(replies[1], ClientFailure)
    assert replies[1].kind == "message"
    assert federation.superlink.bytes_read < 3 * MOST_READ
    assert len(federation.superlink.confirmed) == 3  # the SuperLink need not keep what was refused


def test_one_part_of_twenty_megabytes_is_not_read():
    """A modified node need not cut arrays into chunks of 5 MB."""
    bulk = lying_client_app.forged_body(ConfigRecord, bytes(20 * 10**6))()
    federation = Answering(lambda content: RecordDict({**content, "text": bulk}))
    assert federation.run()[1].kind == "message"
    assert federation.superlink.bytes_read < 3 * MOST_READ


def test_parts_that_are_never_sent_hold_nobody_up():
    def incomplete(content):
        federation.superlink.missing |= set(content["numbers"]["values"].children)
        return content

    federation = Answering(incomplete)
    replies = federation.run(deadline_seconds=0.5)
    assert are_honest(replies, (0, 2))
    assert replies[1].kind == "deadline"


def test_a_reply_that_says_it_answers_another_message_is_refused():
    """What the SuperLink keeps of a reply is told beside its body, which may say otherwise."""
    superlink = SuperLink()
    grid = GuardedGrid(http_grid(superlink))
    ours, theirs = (Message(RecordDict(), node, messages.HELLO) for node in (5, 33))
    grid.push_messages([ours, theirs])
    superlink.put(Message(messages.hello_content(messages.Hello("eve", 3)), reply_to=theirs), ours.metadata.message_id)
    (reply,) = grid.pull_messages([ours.metadata.message_id])
    assert reply.has_error()
    assert reply.metadata.reply_to_message_id == ours.metadata.message_id


def test_a_superlink_that_fails_for_a_while_is_asked_again(monkeypatch):
    monkeypatch.setattr(guarded_grid.time, "sleep", lambda seconds: None)
    said = []
    federation = Answering(say=said.append)
    federation.superlink.failing = 3
    assert are_honest(federation.run(), NODES)
    assert len(said) == 3
    assert "It is asked again" in said[0]


class Raising(LocalGrid):
    """A grid that raises while it reads some replies, as Flower's do."""

    def pull_messages(self, message_ids):
        for message_id in message_ids:
            if message_id == "1":
                raise RecursionError("a reply\n\x1b[2J")
            yield self.replies[message_id]


def test_any_grid_that_raises_on_one_reply_gives_the_others():
    app = ClientApp()

    @app.train()
    def train(message, context):
        task, _ = messages.read_task(message.content)
        return Message(honest_content(task), reply_to=message)

    grid = GuardedGrid(Raising(app, NODES.values()))
    engine = GridEngine(grid, lambda: NODES, None, poll_seconds=0.0)
    replies = {reply.client: reply for reply in engine.run(MODEL, tasks())}
    assert are_honest(replies, (0, 2))
    assert (replies[1].kind, replies[1].reason) == ("message", r"RecursionError: a reply\n\x1b[2J")


def test_a_question_without_arrays_has_an_answer_without_arrays():
    """What a hello may hold: a name, and no 500 MB beside it."""
    superlink = SuperLink()
    grid = GuardedGrid(http_grid(superlink))
    message = Message(RecordDict(), 5, messages.HELLO)
    (message_id,) = grid.push_messages([message])
    text = ConfigRecord({"json": json.dumps({"name": "ada", "num_samples": 3})})
    bulk = ArrayRecord({"more": Array(np.random.default_rng(1).random(10**6))})
    superlink.put(Message(RecordDict({"text": text, "bulk": bulk}), reply_to=message))
    (reply,) = grid.pull_messages([message_id])
    assert reply.has_error()
    assert superlink.bytes_read < 2**22


def test_a_chunk_that_is_listed_again_and_again_is_not_put_together():
    """A chunk within all limits, listed so often that the array would take 40 MB."""

    def lie(content):
        data = content["numbers"]["values"].data
        told = {"dtype": "float32", "shape": [65_000], "stype": "numpy.ndarray", "arraychunk_ids": [0] * 154}
        forged = ArrayRecord()
        body = json.dumps(told).encode()
        forged["values"] = lying_client_app.forged_body(Array, body)("float32", (65_000,), "numpy.ndarray", data)
        return RecordDict({**content, "numbers": forged})

    replies = Answering(lie).run()
    assert are_honest(replies, (0, 2))
    assert "list chunks again and again" in replies[1].reason


def test_a_model_of_equal_numbers_is_one_chunk_listed_often_and_comes_through():
    superlink = SuperLink()
    grid = GuardedGrid(http_grid(superlink))
    zeros = np.zeros(4 * 5 * 2**20 // 4, dtype=np.float32)  # four chunks, three of them the same
    message = Message(RecordDict({"numbers": messages.model_record(zeros)}), 5, messages.TRAIN)
    (message_id,) = grid.push_messages([message])
    superlink.put(Message(RecordDict({"numbers": messages.model_record(zeros)}), reply_to=message))
    (reply,) = grid.pull_messages([message_id])
    assert reply.content["numbers"]["values"].data == message.content["numbers"]["values"].data


def played(strategy, lie):
    """Two rounds of a strategy over the bytes of Flower's wire: each client adds one, the second lies in the first."""
    superlink = SuperLink()
    grid = http_grid(superlink)
    grid.get_node_ids = lambda: list(NODES.values())
    push = grid.push_messages

    def answered(outgoing):
        outgoing = list(outgoing)
        ids = push(outgoing)
        for message in outgoing:
            told = message.content
            model = ArrayRecord({"weight": Array(told["arrays"]["weight"].numpy() + 1)})
            content = RecordDict(
                {"arrays": model, "text": MetricRecord({"num-examples": 10 + message.metadata.dst_node_id})}
            )
            is_struck = message.metadata.dst_node_id == NODES[1] and told["config"]["server-round"] == 1
            superlink.put(Message(lie(content) if is_struck else content, reply_to=message))
        return ids

    grid.push_messages = answered
    first = ArrayRecord({"weight": Array(np.zeros(3, np.float32))})
    return strategy.start(grid, first, num_rounds=2, timeout=5.0).arrays["weight"].numpy()


def without_protobuf(content):
    return RecordDict({**content, "text": lying_client_app.forged_body(MetricRecord, b"\xff\xfe no protobuf")()})


def test_our_strategy_goes_on_where_stock_fedavg_ends():
    """F31, and the column of docs/faults.md that says what FedAvg does."""
    with pytest.raises(DecodeError):
        played(FedAvg(fraction_evaluate=0.0), without_protobuf)
    strategy = SampledStrategy("random", cohort_size=3, fraction_evaluate=0.0)
    np.testing.assert_array_equal(played(strategy, without_protobuf), 2.0)
    (refused,) = strategy.refused
    assert (refused.server_round, refused.phase) == (1, "train")
    assert "DecodeError" in refused.reason


def test_stock_fedavg_puts_together_what_a_list_of_chunks_says():
    """60 bytes for each copy of a chunk; here of 132 bytes, on the wire of 5 MB."""

    def lie(content):
        told = {"dtype": "float32", "shape": [3], "stype": "numpy.ndarray", "arraychunk_ids": [0] * 10**5}
        forged = ArrayRecord()
        data = content["arrays"]["weight"].data
        forged["weight"] = lying_client_app.forged_body(Array, json.dumps(told).encode())(
            "f", (3,), "numpy.ndarray", data
        )
        return RecordDict({**content, "arrays": forged})

    def peak(strategy):
        tracemalloc.start()
        played(strategy, lie)
        _, found = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return found

    assert peak(FedAvg(fraction_evaluate=0.0)) > 13 * 10**6
    assert peak(SampledStrategy("random", cohort_size=3, fraction_evaluate=0.0)) < 8 * 10**6
