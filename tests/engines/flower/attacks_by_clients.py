"""Clients that attack with what they send: six attacks in every round, and a node that lies about all else.

Put in the place of the real client app. Nodes 0 and 1 are honest. Nodes 2 to 7 train honestly and then send something
else, another attack in every round; they leave their updates where the others find them. Node 8 lies about who it is
until it is let in, and then, in every round, about the budgets it will spend.
"""

import io
import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedpcs.deploy.client_app import Members
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app
from fedpcs.learning.noise_plan import honest_range
from fedpcs.privacy.budget import Rho

RUN_FILE = Path(__file__).with_name("run.toml")
HONEST, ATTACKERS, LIAR = (0, 1), (2, 3, 4, 5, 6, 7), 8
NAN = float("nan")
COUNTS = "counts"  # what an attack comes to that no check can see, or that changes nothing


@dataclass
class Sent:
    """What an attacker would send if it were honest, and what it knows besides."""

    header: dict[str, Any]
    values: np.ndarray
    loot: Path
    me: int
    honest: Any

    def earlier(self, who, now):
        return np.load(self.loot / f"{who}-{now}.npy")


def packed(header, array):
    """Return a report with this header, or with this text for one."""
    text = header if isinstance(header, str | bytes | list) else json.dumps(header)
    array = array if isinstance(array, Array) else Array(np.ascontiguousarray(array))
    return RecordDict({"numbers": ArrayRecord({"values": array}), "text": ConfigRecord({"json": text})})


def says(**changes):
    """A report whose header says something else; a function is given what it would have said."""

    def attack(sent):
        new = {key: it(sent.header.get(key)) if callable(it) else it for key, it in changes.items()}
        return packed({**sent.header, **new}, sent.values)

    return attack


def text(change: Callable[[str], Any]):
    return lambda sent: packed(change(json.dumps(sent.header)), sent.values)


def values(change: Callable[[Sent], Any]):
    return lambda sent: packed(sent.header, change(sent))


def cast(kind):
    return values(lambda sent: sent.values.astype(kind))


def npy(description, version=b"\x01\x00", tail=b"", body=None):
    """An array whose .npy header says this; {n} is the number of bytes that follow."""

    def attack(sent):
        told = (description + " " * (-len(description) % 64) + "\n").encode("latin-1")
        width = 2 if version == b"\x01\x00" else 4
        data = b"\x93NUMPY" + version + len(told).to_bytes(width, "little") + told
        data += (sent.values.tobytes() if body is None else body) + tail
        return packed(sent.header, Array("float32", (650,), "numpy.ndarray", data))

    return attack


def shaped(shape, order=False, kind="<f4"):
    return npy(f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}")


def scaled_to(norm_of):
    """A vector that points the way of the own update, of a length that depends on the honest range."""

    def change(sent):
        return (sent.values * (norm_of(sent.honest) / np.linalg.norm(sent.values.astype(np.float64)))).astype("f4")

    return values(change)


def noise_alone(sent):
    made = np.random.default_rng().normal(size=sent.values.size)
    return (made * np.linalg.norm(sent.values) / np.linalg.norm(made)).astype("f4")


def one_bit(sent):
    changed = sent.earlier(5, 0).copy()
    changed.view(np.uint32)[7] ^= 1
    return changed


def with_noise(sent, share):
    copy = sent.earlier(5, 0)
    return copy + (share * np.linalg.norm(copy) / 25.5 * np.random.default_rng().normal(size=copy.size)).astype("f4")


def placed(number):
    def change(sent):
        changed = sent.values.copy()
        changed[-1] = number
        return changed

    return values(change)


def pickled(sent):
    stream = io.BytesIO()
    np.save(stream, np.array([Boom(str(sent.loot / "executed"))], dtype=object), allow_pickle=True)
    return packed(sent.header, Array("float32", (650,), "numpy.ndarray", stream.getvalue()))


class Boom:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (Path(self.path),)


def renamed(stype="numpy.ndarray", shape=(650,), kind="float32"):
    """An array right in itself, of which Flower's record says something else."""
    return values(lambda sent: Array(kind, shape, stype, Array(sent.values).data))


def records(change):
    return lambda sent: RecordDict(change(packed(sent.header, sent.values)))


def two_arrays(content):
    array = content["numbers"]["values"]
    return {"numbers": ArrayRecord({"values": array, "more": array}), "text": content["text"]}


def path_for_name(content):
    return {"numbers": ArrayRecord({"../../values": content["numbers"]["values"]}), "text": content["text"]}


CODE = "__import__('pathlib').Path('executed').touch() or {'descr': '<f4', 'fortran_order': False, 'shape': (650,), }"
# Name → (what is sent, what becomes of it: kinds of failures and refusals, or that it counts).
TRAIN = {
    # A round is six lines. What lies about earlier rounds is not in the first.
    "a header in which a field comes twice, false the second time": (
        text(lambda told: told[:-1] + ', "nonce": "another"}'),
        "stale",
    ),
    "an own update, turned round": (values(lambda sent: -sent.values), COUNTS),
    "the same numbers in another order": (values(lambda sent: sent.values[::-1].copy()), COUNTS),
    "a header with a field nobody knows": (says(epsilon=9), COUNTS),
    "no numbers": (records(lambda content: {"text": content["text"]}), "message"),
    "numbers as settings": (records(lambda content: {**content, "numbers": ConfigRecord({"values": 1})}), "message"),
    "text as metrics": (records(lambda content: {**content, "text": MetricRecord({"json": 1})}), "message"),
    "text without JSON": (records(lambda content: {**content, "text": ConfigRecord()}), "message"),
    "JSON as bytes": (text(str.encode), "message"),
    "JSON as a list": (text(lambda told: [told]), "message"),
    "JSON 50,000 lists deep": (text(lambda told: told[:-1] + ', "x": ' + "[" * 50_000 + "}"), "message"),
    "two megabytes of JSON": (text(lambda told: told[:-1] + ', "x": "' + "x" * 1_500_000 + '"}'), "message"),
    "two arrays": (records(two_arrays), "message"),
    "an array named as a path": (records(path_for_name), "message"),
    "an array of objects": (pickled, "message"),
    "big-endian numbers": (cast(">f4"), "layout|message"),
    "true and false": (cast("?"), "layout|message"),
    "complex numbers": (cast("c8"), "message"),
    "half precision that overflows": (values(lambda sent: (sent.values * 1e9).astype("f2")), "layout|message"),
    "numbers with names": (
        values(lambda sent: sent.values.view([("a", "<f4")])),
        "message",
    ),
    "no dimension": (values(lambda sent: sent.values[0]), "layout|message"),
    "two negative lengths": (shaped("(-1, -650)"), "message"),
    "Fortran's order": (shaped("(65, 10)", order=True), "layout"),
    "a header with code": (npy(CODE), "message"),
    "a header of version 3": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (650,), }", version=b"\x03\x00"),
        "message",
    ),
    "numbers after the last": (
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (650,), }", tail=b"\0" * 400),
        "message",
    ),
    "items of another size": (shaped("(325,)", kind="<f4"), "message"),
    "a thousand dimensions": (shaped("(" + "1," * 1000 + "650)"), "message"),
    "no bytes at all": (values(lambda sent: Array("float32", (650,), "numpy.ndarray", b"")), "message"),
    "an array said to be a pickle": (renamed(stype="pickle"), "message"),
    "an array said to have another shape": (renamed(shape=(10**9,), kind="object"), COUNTS),
    "one number that is none, with a payload": (
        placed(np.frombuffer(b"\x01\x02\xc3\x7f", "<f4")[0]),
        "numbers",
    ),
    "zeros with a minus": (values(lambda sent: np.full_like(sent.values, -0.0)), "noise"),
    "denormals alone": (values(lambda sent: np.full_like(sent.values, 1e-44)), "numbers"),
    "one number of 3·10³⁸": (placed(3e38), "norm"),
    "the greatest norm an honest update has": (scaled_to(lambda honest: 0.9999 * honest.most), COUNTS),
    "a twentieth above the greatest norm": (scaled_to(lambda honest: 1.05 * honest.most), "norm"),
    "a twentieth below the least norm": (scaled_to(lambda honest: 0.95 * honest.least), "noise"),
    "one number as long as an update": (
        values(lambda sent: np.eye(1, 650, 3, dtype="f4")[0] * np.linalg.norm(sent.values)),
        COUNTS,
    ),
    "noise alone": (values(noise_alone), COUNTS),
    "another's update of an earlier round": (values(lambda sent: sent.earlier(5, 0)), "repeat|noise|norm"),
    "the same, one bit changed": (values(one_bit), f"{COUNTS}|noise|norm"),
    "another's update and a thousandth of noise": (values(lambda sent: with_noise(sent, 1e-3)), f"{COUNTS}|noise|norm"),
    "another's update, a hundredth longer": (values(lambda sent: 1.01 * sent.earlier(5, 0)), f"{COUNTS}|noise|norm"),
    "another run": (says(run="deployment/random/0"), "stale"),
    "the round before": (says(round_index=lambda now: now - 1), "stale"),
    "an honest client's number": (says(client=1), "message"),
    "no nonce": (says(nonce=""), "stale"),
    "a round that is true": (says(round_index=True), "message"),
    "no budget": (says(budget=None), "contract"),
    "a billionth more budget": (says(budget=lambda nanos: nanos + 1), "contract"),
    "a budget of 2⁶³": (says(budget=2**63), "message"),
    "one record more": (says(num_samples=lambda size: size + 1), "size"),
    "measures nobody asked for": (says(measures={"loss": -1e300}), "size"),
    "a measure that is no number": (says(measures={"loss": NAN}), "size"),
    "names that come twice": (says(names=lambda names: [names[0]] * len(names)), "layout"),
    "names in another order": (says(names=lambda names: names[::-1], shapes=lambda shapes: shapes[::-1]), "layout"),
    "names that are paths": (says(names=lambda names: [f"../{name}" for name in names]), "layout"),
    "shapes turned round": (says(shapes=lambda shapes: [one[::-1] for one in shapes]), "layout"),
    "a shape of 2⁷⁰": (says(shapes=lambda shapes: [[2**70]] * len(shapes)), "layout"),
    "another type in the header alone": (says(dtype="object"), COUNTS),
    "a greeting": (lambda sent: messages.hello_content(messages.Hello("client-0", 9)), "message"),
    "budgets": (lambda sent: messages.budgets_content(np.array([1, 2, 3])), "message"),
    "an error of a megabyte": (lambda sent: Error(code=-(2**31), reason="e\n\x1b[2J" * 200_000), "raised|deadline"),
}
HELLOS = [  # in the place of the truth, one after the other; then it keeps the last
    ({"name": ""}, "no name"),
    ({"name": "client-8\nfedpcs: done"}, "a name of two lines"),
    ({"name": "x" * 101}, "a name of 101 letters"),
    ({"name": ["client-8"]}, "a list for a name"),
    ({"num_samples": True}, "true records"),
    ({"num_samples": 1.5}, "half a record"),
    ({"num_samples": -1}, "less than no record"),
    ({"num_samples": "9"}, "records in words"),
    ({"num_samples": 10**400}, "10⁴⁰⁰ records"),
    ({"num_samples": NAN}, "records that are no number"),
    ({"name": "../../client-8"}, "a name that is a path"),
]
BUDGETS = [
    (lambda told: told[:-1], "a round without a budget"),
    (lambda told: [*told, told[-1]], "a budget too many"),
    (lambda told: [0 for _ in told], "budgets of 0"),
    (lambda told: [-one for one in told], "negative budgets"),
    (lambda told: [2**62 for _ in told], "budgets of 2⁶²"),
    (lambda told: [float(one) for one in told], "budgets that are no whole numbers"),
    (lambda told: [True for _ in told], "true budgets"),
    (lambda told: [120_000_003, *told[1:]], "a budget three billionths above the bound"),
    (lambda told: [told[0], *([10**7] * (len(told) - 1))], "budgets that leave the crowd"),
    (lambda told: {"0": told[0]}, "budgets as an object"),
    (lambda told: [told], "budgets in a list"),
    (lambda told: [one + 10**6 for one in told], "budgets a little away from the best response"),
]
COLUMNS = {who: list(TRAIN)[place :: len(ATTACKERS)] for place, who in enumerate(ATTACKERS)}
ROUNDS = -(-len(TRAIN) // len(ATTACKERS))

honest = make_client_app(Members(str(RUN_FILE)))
app = ClientApp()


def who_am_i(context):
    """Return the number of this node's client, and a folder that all attackers see."""
    settings = Path(str(context.node_config["settings"]))
    return tomllib.loads(settings.read_text())["partition_id"], settings.with_name("loot")


def next_lie(folder, name):
    """Return how many lies of a kind were told before this one."""
    with open(folder / name, "a+b") as stream:
        stream.write(b".")
        return stream.tell() - 1


def changed(content, changes):
    told = json.loads(content["text"]["json"])
    return RecordDict({"text": ConfigRecord({"json": json.dumps({**told, **changes})})})


@app.query("hello")
def hello(message, context):
    reply, (me, loot) = honest(message, context), who_am_i(context)
    if me != LIAR:
        return reply
    lie, _ = HELLOS[min(next_lie(loot, "hellos"), len(HELLOS) - 1)]
    return Message(changed(reply.content, lie), reply_to=message)


@app.query("terms")
def terms(message, context):
    reply, (me, loot) = honest(message, context), who_am_i(context)
    if me != LIAR:
        return reply
    lie, _ = BUDGETS[min(next_lie(loot, "terms"), len(BUDGETS) - 1)]
    told = json.loads(reply.content["text"]["json"])["budgets"]
    return Message(changed(reply.content, {"budgets": lie(told)}), reply_to=message)


@app.train()
def train(message, context):
    task, _ = messages.read_task(message.content)
    reply, (me, loot) = honest(message, context), who_am_i(context)
    if me not in ATTACKERS or task.round_index >= len(COLUMNS[me]):
        return reply
    sent = values_of(me, loot, task, reply)
    np.save(loot / f"{me}-{task.round_index}.npy", sent.values)
    made = TRAIN[COLUMNS[me][task.round_index]][0](sent)
    return Message(made, reply_to=message)


def values_of(me, loot, task, reply):
    header, array = json.loads(reply.content["text"]["json"]), messages.read_report(reply.content).values
    plan = Members(str(RUN_FILE))  # the same plan as the server's, of public numbers alone
    side = plan_of(plan)
    span = honest_range(side, Rho(header["budget"]), header["num_samples"], array.size)
    return Sent(header, array, loot, me, span)


def plan_of(members):
    from fedpcs.trial.assemble import client_plan, device_of
    from fedpcs.trial.config import load_run_config

    config = load_run_config(members.config_file)
    return client_plan(config, config.seeds[0], device_of(config)[0])
