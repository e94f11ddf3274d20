"""What a node may send Flower's own SuperLink, in this process, with our limits around it."""

import asyncio

import httpx
import pytest
from flwr.app import ConfigRecord, RecordDict
from flwr.proto import fleet_pb2, message_pb2
from flwr.supercore.object_store import object_store_factory
from flwr.supercore.object_store.sql_object_store import SqlObjectStore
from flwr.supercore.primitives.asymmetric import generate_key_pairs, public_key_to_bytes
from flwr.superlink import extensions
from flwr.superlink.main import create_app
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from fedpcs.engines.flower import superlink
from fedpcs.engines.flower.object_parts import MemoryParts, SqlParts
from fedpcs.engines.flower.superlink import Sent


@pytest.fixture
def app(monkeypatch):
    """The SuperLink that `fedpcs superlink` starts."""
    made = []
    for name in ("get_middleware", "configure_app"):
        monkeypatch.setattr(extensions, name, getattr(extensions, name))  # put back afterwards
    for name in ("SqlObjectStore", "InMemoryObjectStore"):
        monkeypatch.setattr(object_store_factory, name, getattr(object_store_factory, name))
    monkeypatch.setattr(superlink.sql_mixin, "SQLITE_PRAGMAS", superlink.sql_mixin.SQLITE_PRAGMAS)
    monkeypatch.setattr(superlink, "flower_superlink", lambda: made.append(create_app()))
    monkeypatch.setattr("sys.argv", ["pytest"])
    superlink.run_superlink(["--port", "1"])
    return made[0]


class InProcess(httpx.BaseTransport):
    """Hands requests to an app in this process."""

    def __init__(self, app):
        self.inner = httpx.ASGITransport(app, raise_app_exceptions=False)

    def handle_request(self, request):
        async def answered():
            body = request.read()
            given = httpx.Request(request.method, request.url, headers=request.headers, content=body)
            response = await self.inner.handle_async_request(given)
            return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

        return asyncio.run(answered())


class Node:
    """A node with a key of its own, registered and active; the client is Flower's, its transport the app itself."""

    def __init__(self, app):
        private, public = generate_key_pairs()
        self.client = FleetHttpClient("http://x", interceptors=[NodeAuthHttpInterceptor(private, public)])
        self.client._client = httpx.Client(transport=InProcess(app))
        key = public_key_to_bytes(public)
        self.id = self.client.RegisterNode(fleet_pb2.RegisterNodeFleetRequest(public_key=key)).node_id
        self.named = {"run_id": 7, "src_node_id": self.id, "reply_to_message_id": "1" * 64}
        self.client.ActivateNode(fleet_pb2.ActivateNodeRequest(public_key=key, heartbeat_interval=30))

    def announce(self, num_parts, **metadata):
        """Announce a reply of so many parts; return the status of the answer."""
        tree = message_pb2.ObjectTree(object_id="0" * 64)
        tree.children.extend(message_pb2.ObjectTree(object_id=f"{part:064x}") for part in range(1, num_parts))
        reply = message_pb2.Message(metadata=message_pb2.Metadata(**{**self.named, **metadata}))
        asked = fleet_pb2.PushMessagesRequest(node={"node_id": self.id}, messages_list=[reply])
        asked.message_object_trees.append(tree)
        return status(lambda: self.client.PushMessages(asked))

    def push(self, num_bytes):
        """Push a part of so many bytes; return the status of the answer."""
        part = message_pb2.PushObjectRequest(node={"node_id": self.id}, run_id=7, object_content=bytes(num_bytes))
        return status(lambda: self.client.PushObject(part))


def status(call):
    try:
        call()
    except httpx.HTTPStatusError as error:
        return error.response.status_code
    return 200


def test_a_locked_database_is_waited_for(app):
    store = SqlObjectStore(":memory:")
    store.initialize()
    assert store.query("PRAGMA busy_timeout") == [{"timeout": 60_000}]


def test_a_reply_of_twenty_thousand_parts_never_reaches_the_database(app, capsys):
    node = Node(app)
    assert node.announce(20_000) == 413
    assert "has more than 32 parts" in capsys.readouterr().err
    assert node.announce(32) != 413  # Flower's own answer: there is no such run


def test_a_part_larger_than_any_is_refused_before_it_is_taken_apart(app):
    node = Node(app)
    node.announce(2)
    assert node.push(9 * 2**20) == 413
    assert node.push(2**20) != 413


def test_a_node_gives_no_orders_and_answers_in_nobody_elses_name(app, capsys):
    node, other = Node(app), Node(app)
    assert node.announce(2, src_node_id=1, dst_node_id=other.id, reply_to_message_id="", message_type="train") == 403
    assert node.announce(2, src_node_id=other.id) == 403
    assert node.announce(2, reply_to_message_id="") == 403
    assert capsys.readouterr().err.count(f"node {node.id} is refused: it is no reply of its own") == 3
    assert node.announce(2) != 403


def test_what_no_node_sends_has_a_limit_too(app):
    with httpx.Client(transport=InProcess(app)) as stranger:
        told = stranger.post("http://x/v1/control/list-runs", content=bytes(65 * 2**20))
    assert told.status_code == 413


RECORD, NAME = RecordDict({"a": ConfigRecord({"b": 1})}), "0" * 64
PARTS = {one.object_id: one.deflate() for one in (RECORD, RECORD["a"])}


def tree(name, *children):
    return message_pb2.ObjectTree(object_id=name, children=children)


@pytest.fixture(params=["memory", "sql"])
def store(request):
    if request.param == "memory":
        return MemoryParts()
    made = SqlParts(":memory:")
    made.initialize()
    return made


def test_a_false_announcement_of_a_part_keeps_nobody_from_sending_it(store):
    true = tree(RECORD.object_id, tree(RECORD["a"].object_id))
    store.preregister(7, tree(NAME, tree(RECORD.object_id, tree("9" * 64), tree("8" * 64))))
    assert set(store.preregister(7, true)) == set(PARTS)
    assert store.get_object_tree(RECORD.object_id) == true
    for name, content in PARTS.items():
        store.put(name, content)
    # What has arrived is what its own bytes say, whatever is announced of it.
    if isinstance(store, SqlParts):
        with pytest.raises(ValueError, match="different children"):
            store.preregister(7, tree("1" * 64, tree(RECORD.object_id, tree("9" * 64))))
    else:
        store.preregister(7, tree("1" * 64, tree(RECORD.object_id, tree("9" * 64))))
    assert store.get_object_tree(RECORD.object_id) == true


def test_a_part_that_came_under_a_false_announcement_is_put_right(store):
    true = tree(RECORD.object_id, tree(RECORD["a"].object_id))
    store.preregister(7, tree(NAME, tree(RECORD.object_id, tree("9" * 64))))
    store.put(RECORD.object_id, PARTS[RECORD.object_id])
    assert store.preregister(7, true) == [RECORD["a"].object_id]
    assert store.get_object_tree(RECORD.object_id) == true


def test_parts_together_are_no_larger_than_a_reply_can_be(app, capsys):
    node, other = Node(app), Node(app)
    node.announce(3)
    other.announce(3)
    assert [node.push(2**20) == 413 for _ in range(3)] == [False, False, True]
    assert f"node {node.id} is refused" in capsys.readouterr().err
    assert other.push(2**20) != 413


def test_a_node_that_is_not_who_it_says_uses_up_nobody_s_room(app):
    node, other = Node(app), Node(app)
    node.announce(3)
    honest, other.id = other.id, node.id
    assert [other.push(2**20) for _ in range(5)] == [401] * 5
    other.id = honest
    assert [node.push(2**20) == 413 for _ in range(3)] == [False, False, True]


def test_what_a_reply_may_hold_goes_by_the_largest_message_of_its_run():
    sent = Sent().and_part("first", 100).and_part("first", 50)
    for _ in range(10):
        sent = sent.and_part("again", 20)
    assert (sent.most_bytes, sent.most_parts) == (200, 10)
    assert (sent.and_part("third", 1).num_bytes, sent.and_part("third", 1).most_bytes) == (1, 200)
