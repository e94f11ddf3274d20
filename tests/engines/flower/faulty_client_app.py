"""A client app whose clients misbehave on purpose; test_deployment.py puts it in the place of the real one.

Which plan is on stands in the file `faults` beside nodes' settings. Clients that are not struck run the real code, and
so does everything around those that are.
"""

import pickle
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from fedpcs.deploy.client_app import Members
from fedpcs.deploy.settings_file import read_settings
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app
from fedpcs.learning.models import make_model
from fedpcs.privacy.budget import Rho
from fedpcs.trial.config import load_run_config

try:
    from fedpcs_app.fault_injection import Fault, FaultyClients, Payload
except ImportError:  # where pytest looks for doctests
    from fault_injection import Fault, FaultyClients, Payload

RUN_FILE = Path(__file__).with_name("run.toml")
SLOW_SECONDS, LATE_SECONDS = 60.0, 88.0  # the deadline is 90, from when a task is sent

# What a client's side does wrong, by the plan's name.
PLANS = {
    "replies": (
        Fault("raise", (0,), (1,)),
        Fault("exit", (0,), (2,)),
        Fault("numbers", (1,), (1,), value=float("nan")),
        Fault("shape", (1,), (2,), value=(1,), tensor=1),  # a bias of one number broadcasts
        Fault("dtype", (2,), (1,), value="float64"),
        Fault("missing-key", (2,), (2,)),
        Fault("extra-key", (3,), (1,)),
        Fault("size", (3,), (2,), value=10**6),
        Fault("budget", (4,), (1,), value=Rho(1)),
        Fault("nonce", (5,), (2,), value="of another task"),
        Fault("enormous", (6,), (2,)),
        Fault("memory", (7,), (1,)),
        Fault("hang", (7,), (2,)),
        Fault("kill", (9,), (1,)),
    ),
    "nobody": (Fault("raise", (1,), (1, 2)),),
    "riders": (Fault("enormous", (0,), (1,), value=0.0), Fault("enormous", (1,), (1,), value=0.5)),
}
# What is wrong with the message that a client sends, by (round, client).
MESSAGES = {
    "replies": {(4, 2): "empty", (5, 1): "garbage", (6, 1): "pickle", (8, 1): "late", (8, 2): "slow"},
    "riders": {(2, 2): "again", **{(now, 0): "boast" for now in range(4)}},
}
BOAST = 2 * 10**9  # records, says client-0 under the plan "riders"


def plan_of(context):
    """Return the name of the plan that is on; empty if none is."""
    path = Path(str(context.node_config["settings"])).with_name("faults")
    return path.read_text().strip() if path.exists() else ""


class FaultyMembers:
    """The real members, played by faulty clients."""

    def __init__(self):
        self._members = Members(str(RUN_FILE))

    def __call__(self, context, run):
        member, faults = self._members(context, run), PLANS.get(plan_of(context), ())
        if not (run and faults):
            return member
        config, side = load_run_config(str(RUN_FILE)), member.side
        model = make_model(config.training.model, side.data.input_shape, side.data.num_classes, seed=0)
        return replace(member, side=FaultyClients(side.plan, model, side.data, faults))


def spoilt(kind, content, folder):
    """Return what is sent in the place of a report."""
    if kind == "empty":
        return RecordDict()
    if kind == "garbage":
        noise = ArrayRecord({"values": Array("float32", (3,), "numpy.ndarray", b"no array at all")})
        return RecordDict({"numbers": noise, "text": ConfigRecord({"json": '{"run": [[['})})
    pickled = pickle.dumps(np.array([Payload(str(folder / "executed"))], dtype=object))
    bomb = ArrayRecord({"values": Array("float32", (1,), "numpy.ndarray", pickled)})
    return RecordDict({"numbers": bomb, "text": content["text"]})


honest = make_client_app(FaultyMembers())
app = ClientApp()


@app.query("hello")
def hello(message, context):
    reply = honest(message, context)
    if plan_of(context) == "riders" and (name := messages.read_hello(reply.content).name) == "client-0":
        return Message(messages.hello_content(messages.Hello(name, BOAST)), reply_to=message)
    return reply


@app.query("terms")
def terms(message, context):
    return honest(message, context)


@app.train()
def train(message, context):
    task, _ = messages.read_task(message.content)
    kind = MESSAGES.get(plan_of(context), {}).get((task.round_index, task.client))
    folder = Path(read_settings(Path(str(context.node_config["settings"]))).state_dir)
    if kind == "slow":
        (folder / "slow").touch()
        time.sleep(SLOW_SECONDS)
    reply = honest(message, context)
    if kind == "late":
        time.sleep(LATE_SECONDS)
    if kind in ("empty", "garbage", "pickle"):
        return Message(spoilt(kind, reply.content, folder), reply_to=message)
    if kind in ("again", "boast"):
        report = messages.read_report(reply.content)
        changed = {"values": np.load(folder / "sent.npy")} if kind == "again" else {"num_samples": task.max_samples}
        return Message(messages.report_content(replace(report, **changed)), reply_to=message)
    if plan_of(context) == "riders" and task.round_index == 0:
        np.save(folder / "sent.npy", messages.read_report(reply.content).values)
    return reply
