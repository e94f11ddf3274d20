"""A node of which nothing is Flower's: a registered key, and whatever bytes one likes to send to the SuperLink.

Each attack is a line of a table: what it does, and the HTTP status it ends with, as a pattern; 0 stands for a
connection that ended without one.
"""

import contextlib
import gzip
import hashlib
import os
import socket
import sqlite3
import ssl
import time
from base64 import b64encode
from datetime import timedelta

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import RecordDict
from flwr.proto import fab_pb2, fleet_pb2, heartbeat_pb2, message_pb2, node_pb2, run_pb2
from flwr.supercore.date import now
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message

FLEET = "/v1/fleet/"
TREE, NAN = message_pb2.ObjectTree, float("nan")
MANY = 300 * 2**20


def id_of(content):
    return hashlib.sha256(content).hexdigest()


class Wire:
    """A node by hand.

    Args:
        folder: Of the federation.
        number: Of the key that was registered for it.
        port: The SuperLink's.
        honest: Flower's id of an honest client's node.
    """

    def __init__(self, folder, number, port, honest):
        self.folder, self.port, self.honest = folder, port, honest
        self.key = serialization.load_ssh_private_key((folder / "secrets" / f"node{number}").read_bytes(), None)
        self.tls = ssl.create_default_context(cafile=str(folder / "secrets" / "ca.crt"))
        self.client = httpx.Client(verify=self.tls, timeout=90.0)
        self.open, self.me, self.greeting = [], 0, None

    def headers(self, key=None, claimed=None, at=None):
        key, told = key or self.key, at if isinstance(at, str) else (at or now()).isoformat()
        return {
            "content-type": "application/protobuf",
            "flwr-public-key": b64encode(public_key_to_bytes((claimed or key).public_key())).decode(),
            "flwr-timestamp": told,
            "flwr-signature": b64encode(sign_message(key, told.encode())).decode(),
        }

    def post(self, path, request=b"", headers=None, **more):
        body = request if not hasattr(request, "SerializeToString") else request.SerializeToString()
        path = path if path.startswith("/") else FLEET + path
        try:
            told = self.client.post(
                f"https://127.0.0.1:{self.port}{path}", content=body, headers={**(headers or self.headers()), **more}
            )
        except (httpx.TransportError, httpx.InvalidURL):
            return 0
        self.told = told.content
        return told.status_code

    def node(self, number=None):
        return node_pb2.Node(node_id=self.me if number is None else number)

    def activate(self, key=None, claimed=None, interval=30.0):
        key = key or self.key
        named = public_key_to_bytes((claimed or key).public_key())
        asked = fleet_pb2.ActivateNodeRequest(public_key=named, heartbeat_interval=interval)
        return self.post("activate-node", asked, self.headers(key))

    def pull(self, number=None, **how):
        return self.post("pull-messages", fleet_pb2.PullMessagesRequest(node=self.node(number)), self.headers(**how))

    def beat(self, interval=30.0, number=None):
        asked = heartbeat_pb2.SendNodeHeartbeatRequest(node=self.node(number), heartbeat_interval=interval)
        return self.post("send-node-heartbeat", asked)

    def join(self, seconds=240.0):
        """Let the SuperLink take us for a node, and wait for what the server app asks first."""
        assert self.activate() == 200
        self.me = fleet_pb2.ActivateNodeResponse.FromString(self.told).node_id
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.beat()
            assert self.pull() == 200
            if (found := fleet_pb2.PullMessagesResponse.FromString(self.told)).messages_list:
                self.greeting = found.messages_list[0]
                return
            time.sleep(1.0)
        raise AssertionError("the server app has asked nothing")

    def leave(self):
        self.post("deactivate-node", fleet_pb2.DeactivateNodeRequest(node_id=self.me))
        for one in [self.client, *self.open]:
            one.close()

    def message(self, tree=None, **metadata):
        """Push what claims to be a message; without changes, an answer to the greeting."""
        told = message_pb2.Message()
        told.metadata.CopyFrom(self.greeting.metadata)
        answered = {
            "message_id": id_of(os.urandom(8)),
            "src_node_id": self.me,
            "dst_node_id": 1,
            "reply_to_message_id": self.greeting.metadata.message_id,
            "created_at": time.time(),
            "ttl": 5.0,
        }
        for name, value in {**answered, **metadata}.items():
            setattr(told.metadata, name, value)
        told.content.SetInParent()
        trees = [TREE(object_id=told.metadata.message_id) if tree is None else tree]
        asked = fleet_pb2.PushMessagesRequest(node=self.node(), messages_list=[told], message_object_trees=trees)
        return self.post("push-messages", asked)

    def ids(self, sql):
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / 'superlink.db'}?mode=ro", uri=True)) as link:
            return [one for (one,) in link.execute(sql).fetchall()]

    def socket(self, *parts, tls=True, seconds=10.0, keep=False):
        """Send bytes over a socket, and return the status that comes, or 0."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        link = self.tls.wrap_socket(plain, server_hostname="localhost") if tls else plain
        try:
            for part in parts:
                link.sendall(part)
            if keep:
                self.open.append(link)
                return 0
            told = link.recv(4096)
            return int(told.split()[1]) if told.startswith(b"HTTP/") else 0
        except (OSError, IndexError, ValueError):
            return 0
        finally:
            if not keep:
                link.close()

    def request(self, *lines, path=FLEET + "pull-messages"):
        head = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/protobuf", *lines, "", ""]
        return "\r\n".join(head).encode()


def another_key():
    return ec.generate_private_key(ec.SECP384R1())


def deep(depth):
    tree = TREE(object_id=id_of(b"leaf"))
    for number in range(depth):
        tree = TREE(object_id=id_of(b"%d" % number), children=[tree])
    return tree


def wide(number):
    return TREE(object_id=id_of(os.urandom(8)), children=[TREE(object_id=id_of(b"%d" % one)) for one in range(number)])


def poison():
    """A part that the server app is about to send, an empty record, with a part that does not exist below it."""
    empty = RecordDict().object_id
    false = TREE(object_id=empty, children=[TREE(object_id=id_of(os.urandom(8)))])
    return TREE(object_id=id_of(os.urandom(8)), children=[false])


def rooted(wire, tree):
    return wire.message(tree, message_id=tree.object_id)


def push(wire, content, name=None, session=""):
    run = wire.greeting.metadata.run_id
    told = {"node": wire.node(), "run_id": run, "session_id": session, "object_content": content}
    return wire.post("push-object", message_pb2.PushObjectRequest(object_id=name or id_of(content), **told))


def pull_all(wire):
    """Ask for every part the SuperLink holds."""
    run, codes = wire.greeting.metadata.run_id, set()
    for one in wire.ids("SELECT object_id FROM objects")[:50]:
        asked = message_pb2.PullObjectRequest(node=wire.node(), run_id=run + 1, object_id=one)
        codes.add(wire.post("pull-object", asked))
    return max(codes, default=404)


def confirm_children(wire):
    """Say of every part that others still need that it was received."""
    run, codes = wire.greeting.metadata.run_id, set()
    for one in wire.ids("SELECT object_id FROM objects WHERE ref_count > 0")[:50]:
        asked = message_pb2.ConfirmMessageReceivedRequest(node=wire.node(), run_id=run, message_object_id=one)
        codes.add(wire.post("confirm-message-received", asked))
    return max(codes, default=200)


def honest_reply(wire):
    """Answer, in an honest client's name, what it was asked last; its message's id is nobody's to know."""
    (asked,) = wire.ids(f"SELECT message_id FROM message_ins WHERE dst_node_id = {signed(wire.honest)} LIMIT 1") or [""]
    return wire.message(src_node_id=wire.honest, reply_to_message_id=asked or id_of(b"none"))


def signed(number):
    return number - 2**64 if number >= 2**63 else number


def order(kind, honest=True):
    """Send a message as if it were the server app's."""

    def attack(wire):
        to = wire.honest if honest else wire.me
        return wire.message(src_node_id=1, dst_node_id=to, reply_to_message_id="", message_type=kind, ttl=600.0)

    return attack


def many(number, one):
    return lambda wire: max([one(wire) for _ in range(number)], default=0)


def endless(wire):
    def bodies():
        for _ in range(60):
            yield b"\0" * 2**20

    return wire.post("pull-messages", bodies())


def loris(wire):
    for _ in range(100):
        wire.socket(b"POST /v1/fleet/pull-messages HTTP/1.1\r\nHost: x\r\nX: ", keep=True)
    return wire.beat()


def dribble(wire):
    for _ in range(30):
        wire.socket(wire.request("Content-Length: 8000000"), *[b"\0"] * 200, keep=True)
    return wire.beat()


def beats(**how):
    return lambda wire: wire.beat(**how)


def bare(*lines, body=b"", tls=True, path=FLEET + "pull-messages"):
    return lambda wire: wire.socket(wire.request(*lines, path=path), body, tls=tls)


def get_run(wire):
    return wire.post("get-run", run_pb2.GetRunRequest(node=wire.node(), run_id=wire.greeting.metadata.run_id + 1))


def get_fab(wire):
    run = wire.greeting.metadata.run_id
    return wire.post("get-fab", fab_pb2.GetFabRequest(node=wire.node(), run_id=run, hash_str="../../superlink.db"))


REFUSED = "4.."
WIRE = {
    # These five while the greeting can still be answered.
    "a part's name that is none": (lambda wire: rooted(wire, TREE(object_id="../../x")), "[245].."),
    "a part listed twice": (
        lambda wire: rooted(wire, TREE(object_id=id_of(b"y"), children=[TREE(object_id=id_of(b"z"))] * 2)),
        "[245]..",
    ),
    "a part below itself": (
        lambda wire: rooted(wire, TREE(object_id=id_of(b"x"), children=[TREE(object_id=id_of(b"x"))])),
        "[245]..",
    ),
    "a part of the server's, with a false part below": (lambda wire: rooted(wire, poison()), "[25].."),
    "a second reply": (lambda wire: wire.message(), "200"),
    "no signature": (lambda wire: wire.post("pull-messages", headers={"content-type": "application/protobuf"}), "401"),
    "another key's signature": (lambda wire: wire.pull(key=another_key(), claimed=wire.key), "401"),
    "another key, rightly signed": (lambda wire: wire.pull(key=another_key()), "401"),
    "a clock ten minutes ahead": (lambda wire: wire.pull(at=now() + timedelta(minutes=10)), "401"),
    "a signature an hour old": (lambda wire: wire.pull(at=now() - timedelta(hours=1)), "401"),
    "a time without a zone": (lambda wire: wire.pull(at=now().replace(tzinfo=None)), "401"),
    "a time of 5,000 characters": (lambda wire: wire.pull(at="9" * 5000), "401"),
    "an honest node's messages": (lambda wire: wire.pull(wire.honest), "401"),
    "an honest node's heartbeat": (lambda wire: wire.beat(number=wire.honest), "401"),
    "an honest node sent away": (
        lambda wire: wire.post("deactivate-node", fleet_pb2.DeactivateNodeRequest(node_id=wire.honest)),
        "401",
    ),
    "a key nobody registered": (lambda wire: wire.activate(another_key()), "[45].."),
    "another's public key": (lambda wire: wire.activate(claimed=another_key()), "401"),
    "a key registers itself": (
        lambda wire: wire.post("register-node", fleet_pb2.RegisterNodeFleetRequest(public_key=b"x"), wire.headers()),
        REFUSED,
    ),
    "a node strikes itself off": (
        lambda wire: wire.post("unregister-node", fleet_pb2.UnregisterNodeFleetRequest(node_id=wire.me)),
        REFUSED,
    ),
    "a heartbeat every 0 s": (beats(interval=0.0), "[45].."),
    "a heartbeat every NaN s": (beats(interval=NAN), "[45].."),
    "a heartbeat every 1e308 s": (beats(interval=1e308), "[45].."),
    "a thousand heartbeats": (many(1000, beats()), "200"),
    "a push of nothing": (
        lambda wire: wire.post("push-messages", fleet_pb2.PushMessagesRequest(node=wire.node())),
        "[45]..",
    ),
    "an order to an honest client to train": (order("train"), REFUSED),
    "terms announced to an honest client": (order("query.terms"), REFUSED),
    "an order to itself": (order("train", honest=False), REFUSED),
    "a reply in an honest client's name": (honest_reply, REFUSED),
    "a reply to a message that never was": (lambda wire: wire.message(reply_to_message_id=id_of(b"none")), "200"),
    "a reply that lives for ever": (lambda wire: wire.message(ttl=1e300), "200"),
    "a reply from before the run": (lambda wire: wire.message(created_at=1.0), "200"),
    "a reply of another run": (lambda wire: wire.message(run_id=2**64 - 1), "[245].."),
    "a tree 95 deep": (lambda wire: rooted(wire, deep(95)), "[45].."),
    "a tree of 10,000 parts": (lambda wire: rooted(wire, wide(10_000)), "413"),
    "bytes that are not what they are called": (lambda wire: push(wire, b"a", id_of(b"b")), "[245].."),
    "a part nobody announced": (lambda wire: push(wire, os.urandom(99)), "200"),
    "a part in another's session": (lambda wire: push(wire, os.urandom(99), session="1"), "[245].."),
    "300 small parts": (many(300, lambda wire: push(wire, os.urandom(9))), "[245].."),
    "all parts of others, by another run": (pull_all, "[245].."),
    "parts that others need, received": (confirm_children, "200"),
    "another run's particulars": (get_run, "[45].."),
    "another app": (get_fab, "[45].."),
    "100 GB announced and not sent": (bare("Content-Length: 100000000000"), "413"),
    "a negative length": (bare("Content-Length: -1", body=b"x"), "400|413|0"),
    "two lengths": (bare("Content-Length: 1", "Content-Length: 900", body=b"x" * 900), "400|401|413|0"),
    "a body cut short": (lambda wire: wire.socket(wire.request("Content-Length: 900"), b"x", seconds=1.0), "0"),
    "60 MB without a length": (endless, "413|0"),
    "64 kB that unpack to 64 MB": (
        lambda wire: wire.post("pull-messages", gzip.compress(bytes(2**26)), **{"content-encoding": "gzip"}),
        "[45]..",
    ),
    "random bytes": (lambda wire: wire.post("push-messages", os.urandom(2**20)), "[45].."),
    "headers of a megabyte": (bare("X: " + "x" * 2**20), "4..|0"),
    "10,000 headers": (bare(*[f"X{number}: x" for number in range(10_000)]), "4..|0"),
    "no TLS": (bare("Content-Length: 0", tls=False), "0"),
    "no HTTP": (lambda wire: wire.socket(os.urandom(1000), tls=True), "400|0"),
    "100 requests that never end": (loris, "200"),
    "30 bodies that come byte by byte": (dribble, "200"),
    "another type": (lambda wire: wire.post("pull-messages", b"{}", **{"content-type": "application/json"}), REFUSED),
    "a path with dots": (bare("Content-Length: 0", path="/v1/fleet/../fleet//pull-messages"), "4.."),
    "a path that is no text": (bare("Content-Length: 0", path="/v1/fleet/%ff%00"), "4..|0"),
    "300 MB to where operators call": (lambda wire: wire.post("/v1/control/list-runs", bytes(MANY)), "413|0"),
    "300 MB to where server apps call": (lambda wire: wire.post("/v1/runtime/push-object", bytes(MANY)), "413|0"),
}
