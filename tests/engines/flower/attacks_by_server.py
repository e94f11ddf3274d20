"""A server that attacks honest clients, and what it ships to them; beyond what `forgeries` announces.

Put in the place of the real server app, and of the client app too: `shipped` is fedpcs's own, but for some messages
under another run file that came with the app. What came of each attack is written to attacks.json in its run-dir.
"""

import json
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from fedpcs.deploy.client_app import Members
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app

try:
    from fedpcs_app import forgeries
    from fedpcs_app.forgeries import GONE, HONEST, RUN, TASK, changed, content
except ImportError:  # beside this file, where a test reads the tables
    import forgeries
    from forgeries import GONE, HONEST, RUN, TASK, changed, content

SECONDS = 3600.0
NAN = float("nan")
FIVE = [6.0] * 5
ANSWERED = ""  # what no client need refuse: it costs what was agreed, or nothing
MODEL = np.zeros(forgeries.NUM_PARAMETERS, np.float32)

# What is changed in an honest announcement, and words of the refusal.
ANNOUNCED = {
    "a mean just above the bound in the last round": ({"mean_budget": [*FIVE[:4], 12.0001]}, "mean_budget[4]"),
    "a reward that is no number in the last round": ({"reward": [*FIVE[:4], NAN]}, "reward[4]"),
    "a reward of 10³⁰⁸ in one round": ({"reward": [*FIVE[:4], 1e308]}, "reward[4]"),
    "a reward of -0.001": ({"reward": [-0.001, *FIVE[:4]]}, "reward[0]"),
    "rewards in lists": ({"reward": [[6.0]] * 5}, "reward[0]"),
    "no rewards": ({"reward": GONE}, "lacks reward"),
    "a mean of 5·10⁻³²⁴": ({"mean_budget": [*FIVE[:4], 5e-324]}, "mean_budget[4]"),
    "a cohort of 2⁶³ in the last round": ({"cohort_size": [2, 2, 2, 2, 2**63]}, "cohort_size[4]"),
    "NaN clients": ({"num_clients": NAN}, "num_clients"),
    "a first round that is true": ({"first_round": True}, "first_round"),
    "a first round of 2⁷⁰": ({"first_round": 2**70}, "first_round"),
    "a later first round and all entries": ({"first_round": 3}, "must have an entry for each of 2 rounds"),
    "a delta of 1": ({"conditions.delta": 1}, "delta must be"),
    "a delta of -0": ({"conditions.delta": -0.0}, "delta must be"),
    "a unit of -0.01": ({"conditions.budget_unit": -0.01}, "budget_unit must be"),
    "the next unit above": ({"conditions.budget_unit": float(np.nextafter(0.01, 1))}, "budget_unit must be"),
    "an upper bound a millionth higher": ({"conditions.budget_bounds": [0.01, 12.000001]}, "budget_bounds must be"),
    "three bounds": ({"conditions.budget_bounds": [0.01, 6.0, 12.0]}, "budget_bounds must"),
    "bounds that are one": ({"conditions.budget_bounds": [5.0, 5.0]}, "budget_bounds must be"),
    "more rounds than entries": ({"conditions.rounds": 100}, "must have an entry for each of 100 rounds"),
    "a clipping bound of 0": ({"conditions.clip_norm": 0}, "clip_norm must be"),
    "trust in capitals": ({"conditions.trust": "LOCAL"}, "trust must be"),
    "a run of half characters": ({"run": "\ud800"}, "run must be a name"),
    "a run that reads from right to left": ({"run": "\u202egnorw"}, "run must be a name"),
}
# What is changed in an honest task. What is refused says "budget", "task" or the like; the rest costs what was agreed.
TASKS = {
    "a billionth more": ({"budget": lambda nanos: nanos + 1}, "was agreed"),
    "a billionth less": ({"budget": lambda nanos: nanos - 1}, "was agreed"),
    "the budget as a float": ({"budget": float}, "a task's "),
    "the budget in words": ({"budget": str}, "a task's "),
    "the budget in a list": ({"budget": lambda nanos: [nanos]}, "a task's "),
    "a run of the same look": ({"run": "f\u043erged/fedpcs/0"}, "no budget was agreed"),
    "a run with a space": ({"run": RUN + " "}, "no budget was agreed"),
    "a round after the last": ({"round_index": 5}, "no budget was agreed"),
    "a thousand measures": ({"measures": ["loss"] * 1000}, "does not tell"),
    "measures in lists": ({"measures": [["loss"]]}, "a task's "),
    "measures by name": ({"measures": {"loss": 1}}, "a task's "),
    "NaN records": ({"max_samples": NAN}, "a task's "),
}
MODELS = {
    "a model of half precision": MODEL.astype(np.float16),
    "a model with the bytes the other way": MODEL.astype(">f4"),
    "a model of 20 MB": np.zeros(5 * 10**6, np.float32),
    "an infinite model": np.full_like(MODEL, -np.inf),
}
# Run files that come with the app: the line that is changed, and words of the refusal.
SHIPPED = {
    "no noise in the run file": ('mode = "record"', 'mode = "none"', "mode must be 'record'"),
    "the paper's noise in the run file": ('mode = "record"', 'mode = "paper"', "mode must be 'record'"),
    "the client's mode in the run file": ('mode = "record"', 'mode = "client"', "mode must be 'record'"),
    "seeded noise in the run file": ('noise = "secure"', 'noise = "fast"', "noise must be 'secure' or 'exact'"),
    "a wide clipping bound in the run file": ("clip_norm = 1.0", "clip_norm = 50.0", "clip_norm must be 1"),
    "a unit of 1 in the run file": ("budget_unit = 0.01", "budget_unit = 1", "budget_unit must be 0.01"),
    "5,000 rounds in the run file": ("rounds = 5", "rounds = 5000", "rounds must be at most 100"),
    "higher budgets in the run file": (
        "budget_unit = 0.01",
        "budget_unit = 0.01\nbudget_bounds = [0.01, 50.0]",
        "budget_bounds must be within",
    ),
    "three epochs in the run file": ("local_epochs = 1", "local_epochs = 3", ANSWERED),
    "batches of one record in the run file": ("batch_size = 0", "batch_size = 1", ANSWERED),
}


def raw(records):
    return RecordDict(records)


def forged_body(kind, body):
    """Return a record of Flower's whose bytes on the wire have this body."""
    from flwr.supercore.inflatable.inflatable_object import add_header_to_object_body

    def deflate(self):
        return add_header_to_object_body(body, self)

    return type(kind.__name__, (kind,), {"deflate": deflate, "__qualname__": kind.__qualname__})


def attacks(budget):
    """Give (name, kind of message, content, words of the refusal) of every single message.

    Args:
        budget: What the client has agreed to spend in the round of the tasks.
    """
    for name, (changes, words) in ANNOUNCED.items():
        yield name, messages.TERMS, content(changed(HONEST, changes)), words
    honest = {**TASK, "budget": budget}
    for name, (changes, words) in TASKS.items():
        told = {key: it(budget) if callable(it) else it for key, it in changes.items()}
        yield name, messages.TRAIN, content({**honest, **told}, MODEL), words
    for name, model in MODELS.items():
        yield name, messages.TRAIN, content(honest, model), ""
    twice = json.dumps(HONEST)[:-1] + ', "conditions": {"budget_unit": 100}}'
    yield "conditions that come twice", messages.TERMS, content(twice), "lacks"
    yield "terms as bytes", messages.TERMS, raw({"text": ConfigRecord({"json": b"{}"})}), "characters of JSON"
    yield "terms as metrics", messages.TERMS, raw({"text": MetricRecord({"json": 1})}), "characters of JSON"
    yield "two megabytes of terms", messages.TERMS, content(" " * 2**21), "characters of JSON"
    yield "terms without records", messages.TERMS, RecordDict(), "characters of JSON"
    odd = raw({"text": forged_body(ConfigRecord, b"\xff\xfe no protobuf")()})
    yield "terms that are not protobuf", messages.TERMS, odd, ""
    lie = ArrayRecord(
        {"values": Array("float32", (1,), "numpy.ndarray", b"\x80\x04cos\nsystem\n(S'touch executed'\ntR.")}
    )
    yield "a pickle for a model", messages.TRAIN, raw({**content(honest), "numbers": lie}), "cannot be read"
    two = ArrayRecord({"values": Array(MODEL), "more": Array(MODEL)})
    yield "two models", messages.TRAIN, raw({**content(honest), "numbers": two}), "one array"
    for kind in ("train.twice", "evaluate", "query", "query.secrets", "system"):
        yield f"a message of type {kind}", kind, content(honest, MODEL), ""
    yield "a task as terms", messages.TERMS, content(honest, MODEL), "version"
    yield "terms as a task", messages.TRAIN, content(HONEST, MODEL), "task"
    for number in range(6):  # a flood
        asked = {"question": "update_norm", "task": honest}
        yield f"question {number + 1} of a flood", messages.QUESTION, content(asked, MODEL), "does not tell"


# Sequences: each is given a function that sends one client messages, all at once, and returns their replies.
def raced(send, agreed):
    """Two announcements at once that raise rewards to the skies."""
    return send(*[(messages.TERMS, content(changed(HONEST, {"reward": [rise] * 5}))) for rise in (1e9, 1e12)])


def replayed(send, agreed):
    """A new announcement of later rounds, then the first again, then the second."""
    later = {"first_round": 2, "reward": [50.0] * 3, "mean_budget": [12.0] * 3, "cohort_size": [3] * 3}
    told = [content(changed(HONEST, changes)) for changes in (later, {}, later)]
    return [reply for one in told for reply in send((messages.TERMS, one))]


def undrawn(send, agreed):
    """A task for every round that was announced, whoever was drawn."""
    return [reply for now in range(3) for reply in send(task_of(now, agreed))]


def others_name(send, agreed):
    """The same terms under other names, one of them a path, and a task under each."""
    found = []
    for run in ("../../etc/passwd", "forged/fedpcs/1"):
        found += send((messages.TERMS, content(changed(HONEST, {"run": run}))))
        budgets = messages.read_budgets(found[-1].content, 5)
        found += send((messages.TRAIN, content({**TASK, "run": run, "budget": int(budgets[2])}, MODEL)))
    return found


def repeated(send, agreed):
    """The same task, again and again, until the client's limit."""
    return [reply for _ in range(6) for reply in send(task_of(2, agreed))]


def task_of(now, agreed):
    return messages.TRAIN, content({**TASK, "round_index": now, "budget": agreed[now]}, MODEL)


# By node. The first must not change what the other attacks on its node were told was agreed.
SEQUENCES = [(others_name, raced), (undrawn, replayed), (repeated,)]


class Talk:
    """Sends messages to clients, of which several work at a time."""

    def __init__(self, grid):
        self.grid = grid

    def __call__(self, node, *told, ttl=SECONDS, group=""):
        sent = [Message(one, node, kind, ttl=ttl, group_id=group) for kind, one in told]
        return list(self.grid.send_and_receive(sent, timeout=SECONDS))

    def all(self, told):
        """Send (node, name, kind, content) at once; return replies by name."""
        sent = [Message(one, node, kind, ttl=SECONDS, group_id=name) for node, name, kind, one in told]
        replies = self.grid.send_and_receive(sent, timeout=SECONDS)
        return {reply.metadata.group_id: said(reply) for reply in replies}


def said(reply):
    return f"refused: {reply.error.reason}" if reply.has_error() else "answered"


app = ServerApp()


@app.main()
def main(grid, context):
    talk, nodes = Talk(grid), sorted(grid.get_node_ids())
    folder = Path(str(context.run_config["run-dir"]))
    folder.mkdir(parents=True, exist_ok=True)
    agreed = {}
    for node in nodes:
        (reply,) = talk(node, (messages.TERMS, content(HONEST)))
        agreed[node] = [int(one) for one in messages.read_budgets(reply.content, 5)]
    told, wanted = [], {}
    for place, node in enumerate(nodes):
        for name, kind, one, words in list(attacks(agreed[node][2]))[place :: len(nodes)]:
            told.append((node, name, kind, one))
            wanted[name] = words
    for place, name in enumerate(SHIPPED):
        told.append((nodes[place % len(nodes)], name, *task_of(2, agreed[nodes[place % len(nodes)]])))
    found = talk.all(told)
    # A client's process is killed while it works, by whoever runs the test, and asked the same again.
    (folder / "kill").write_text("now")
    found["a task, the client killed"] = said(talk(nodes[0], task_of(1, agreed[nodes[0]]))[0])
    found["the same task again"] = said(talk(nodes[0], task_of(1, agreed[nodes[0]]))[0])
    for node, several in zip(nodes, SEQUENCES, strict=False):
        for one in several:
            replies = one(lambda *told, node=node: talk(node, *told), agreed[node])
            found[one.__doc__] = [said(reply) for reply in replies]
    names = [messages.read_hello(talk(node, (messages.HELLO, RecordDict()))[0].content).name for node in nodes]
    (folder / "attacks.json").write_text(json.dumps({"names": names, "wanted": wanted, "found": found}))


def run_file(number):
    return Path(__file__).with_name(f"run{number}.toml")


own = make_client_app(Members(str(Path(__file__).with_name("run.toml"))))
others = {name: make_client_app(Members(str(run_file(number)))) for number, name in enumerate(SHIPPED)}
shipped = ClientApp()


def by_name(message, context):
    return others.get(message.metadata.group_id, own)(message, context)


shipped.train()(by_name)
shipped.query("hello")(by_name)
shipped.query("terms")(by_name)
shipped.query("question")(by_name)
