"""A whole federation over messages: what crosses the wire, who is heard, and what a crash may not undo."""

import json
import math
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from local_grid import LocalGrid
from node_files import announcement, write_settings

from fedpcs.deploy.client_app import client_app
from fedpcs.deploy.roster import roster_of
from fedpcs.deploy.server_app import serve
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import make_client_app
from fedpcs.errors import CorruptFile, InvalidInput, QuorumNotReached
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho
from fedpcs.report.study import write_report_safely, write_study
from fedpcs.trial.config import load_run_config
from fedpcs.trial.run import resume_run

SECRETS = ((0.3517, 4.0313), (0.6029, 6.5177), (0.8523, 9.0411))
NODES = (71, 5, 33)
RUN = """
name = "wired"
rounds = 3
[data]
partition = "iid"
[training]
learning_rate = 2.0
batch_size = 0
[privacy]
mode = "record"
noise = "secure"
[game]
budget_unit = 0.01
reward = 6.0
[sampling]
samplers = ["fedpcs"]
sampling_ratio = 0.67
rule = "precision"
[engine]
deadline_seconds = 60.0
[federation]
wait_seconds = 1.0
"""


class Wire(LocalGrid):
    """Keeps every message and every reply; nodes know what they were started with."""

    def __init__(self, app, folder, nodes=NODES, accepts=None):
        super().__init__(app, nodes)
        self.crossed, self.on_push, self.accepts = [], lambda message: None, accepts
        for number, node in enumerate(self.node_ids):
            self.tell(node, number, folder)

    def tell(self, node, number, folder):
        aversion, budget = SECRETS[number]
        path = write_settings(
            folder / f"client{number}.toml",
            partition_id=number,
            privacy_aversion=aversion,
            initial_budget=budget,
            state_dir=f"client{number}",
            accepts=self.accepts,
        )
        self.contexts[node].node_config = {"settings": str(path)}

    def push_messages(self, pushed):
        pushed = list(pushed)
        for message in pushed:
            self.on_push(message)
        ids = super().push_messages(pushed)
        self.crossed += [(message, self.replies[number]) for message, number in zip(pushed, ids, strict=True)]
        return ids


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


@pytest.fixture
def config(run_file):
    return load_run_config(str(run_file), ["data.num_clients=3"])


@pytest.fixture
def wire(run_file, tmp_path):
    return Wire(client_app(run_file), tmp_path)


def serve_quietly(wire, config, folder):
    said = []

    def when_done(store, say):
        (folder.parent / "done").write_text(str(store.folder))
        write_report_safely(store, say)

    return serve(wire, config, folder, say=said.append, when_done=when_done, poll_seconds=0.0), said


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A federation that has run to its end: its folder, its wire, its store, and what its server said."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "run.toml").write_text(RUN)
    wire = Wire(client_app(folder / "run.toml"), folder)
    config = load_run_config(str(folder / "run.toml"), ["data.num_clients=3"])
    return folder, wire, *serve_quietly(wire, config, folder / "run")


def columns(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def text_of(content):
    return content["text"]["json"] if "text" in content else ""


def test_what_crosses_the_wire_is_this_and_nothing_else(finished):
    _, wire, _, _ = finished
    told, heard = {}, {}
    for message, reply in wire.crossed:
        kind = message.metadata.message_type
        for fields, content in ((told, message.content), (heard, reply.content)):
            assert set(content) <= {"text", "numbers"}
            found = set(json.loads(text_of(content) or "{}"))
            assert fields.setdefault(kind, (found, set(content))) == (found, set(content))
    both, text = {"text", "numbers"}, {"text"}
    report = {
        "run",
        "round_index",
        "client",
        "nonce",
        "budget",
        "num_samples",
        "names",
        "shapes",
        "dtype",
        "measures",
    }
    assert heard == {
        messages.HELLO: ({"name", "num_samples"}, text),
        messages.TERMS: ({"budgets"}, text),
        messages.TRAIN: (report, both),
    }
    announced = {
        "version",
        "run",
        "first_round",
        "conditions",
        "reward",
        "mean_budget",
        "cohort_size",
        "num_clients",
        "selection",
    }
    assert told == {
        messages.HELLO: (set(), set()),
        messages.TERMS: (announced, text),
        messages.TRAIN: ({"run", "round_index", "client", "nonce", "budget", "measures", "max_samples"}, both),
    }
    from_clients = " ".join(text_of(reply.content) for _, reply in wire.crossed)
    assert json.loads(text_of(wire.crossed[-1][1].content))["measures"] == {}
    for aversion, _ in SECRETS:
        assert str(aversion) not in from_clients
    assert "wired" in from_clients


def test_both_sides_write_down_the_same_releases_and_rewards_are_for_them(finished):
    folder, _, store, said = finished
    ledger = store.trial("fedpcs", 0).ledger
    charged = columns(ledger, "SELECT client, round_index, rho_nanos FROM charges")
    for number in range(3):
        own = columns(folder / f"client{number}" / "ledger.sqlite", "SELECT round_index, rho_nanos FROM charges")
        assert sorted(own) == sorted((t, nanos) for client, t, nanos in charged if client == str(number))
        agreed = json.loads((folder / f"client{number}" / "agreed.json").read_text())["wired/fedpcs/0"]["budgets"]
        assert all(agreed[t] == nanos for t, nanos in own)
    rewards = columns(ledger, "SELECT client, round_index, amount_nanos FROM rewards")
    budgets = {(client, t): nanos for client, t, nanos in charged}
    for client, t, amount in rewards:
        assert amount == pytest.approx(6.0 * budgets[client, t] / 0.01, rel=1e-6, abs=1.0) or amount == 0
    assert store.result.trials[0].accuracy > 0.3
    assert (folder / "done").read_text() == str(store.folder)
    assert sum("is connected" in words for words in said) == 3


def test_what_both_sides_leave_on_disk_is_their_owners_alone(finished):
    folder, *_ = finished
    kept = [folder / "client0" / "agreed.json", folder / "run" / "config.toml", folder / "run" / "report.html"]
    kept += [folder / "run" / "roster.json", *(folder / "run").rglob("*.ckpt"), *(folder / "run").rglob("model.pt")]
    assert len(kept) > 5
    kept += [*(folder / "run").rglob("rounds.jsonl"), folder / "run", folder / "client0"]
    assert [path for path in kept if path.stat().st_mode & 0o077] == []


def test_the_server_killed_in_a_round_goes_on_where_it_was_and_forgets_nothing(wire, config, tmp_path):
    class Killed(BaseException):
        pass

    def kill(message):
        if message.metadata.message_type == messages.TRAIN and json.loads(text_of(message.content))["round_index"] == 2:
            raise Killed

    wire.on_push = kill
    with pytest.raises(Killed):
        serve_quietly(wire, config, tmp_path / "run")
    ledger = next((tmp_path / "run").glob("trials/*/ledger.sqlite"))
    charged = columns(ledger, "SELECT number, client, round_index, attempt FROM charges ORDER BY number")
    paid = columns(ledger, "SELECT client, round_index, amount_nanos FROM rewards")
    assert {t for _, t, _ in paid} == {0, 1}
    wire.on_push = lambda message: None
    again = Wire(wire.app, tmp_path, (900, 901, 902))  # restarted nodes have new ids
    store, _ = serve_quietly(again, config, tmp_path / "run")
    after = columns(ledger, "SELECT number, client, round_index, attempt FROM charges ORDER BY number")
    assert after[: len(charged)] == charged
    assert {t for _, _, t, _ in after[len(charged) :]} == {2}
    rewards = columns(ledger, "SELECT client, round_index, amount_nanos FROM rewards")
    assert [one for one in rewards if one[1] < 2] == paid
    assert len({(client, t) for client, t, _ in rewards}) == len(rewards)
    lines = store.trial("fedpcs", 0).rounds()
    assert [line.round for line in lines] == [0, 1, 2]
    assert not any(message.metadata.message_type == messages.TRAIN and t < 2 for message, t in trained(again))


def trained(wire):
    for message, _ in wire.crossed:
        if message.metadata.message_type == messages.TRAIN:
            yield message, json.loads(text_of(message.content))["round_index"]


def test_a_run_that_is_done_is_left_alone(finished, config):
    folder, wire, _, _ = finished
    before = len(wire.crossed)
    _, said = serve_quietly(wire, config, folder / "run")
    assert len(wire.crossed) == before
    assert "done already" in said[-1]


def test_another_run_in_the_folder_is_refused(finished, run_file):
    folder, wire, _, _ = finished
    other = load_run_config(str(run_file), ["data.num_clients=3", "rounds=4"])
    with pytest.raises(InvalidInput, match="rounds was 3, is 4"):
        serve_quietly(wire, other, folder / "run")


def test_too_few_clients_in_time_is_an_error_that_says_how_many(run_file, config, tmp_path):
    wire = Wire(client_app(run_file), tmp_path, NODES[:2])
    with pytest.raises(QuorumNotReached, match="2 of 3 clients"):
        serve_quietly(wire, config, tmp_path / "run")


def test_a_node_that_leaves_is_not_drawn_and_comes_back_under_its_name(run_file, tmp_path):
    config = load_run_config(str(run_file), ["data.num_clients=3", "rounds=5"])
    wire = Wire(client_app(run_file), tmp_path)

    def meddle(message):
        now = json.loads(text_of(message.content) or "{}").get("round_index", 0)
        if now >= 1 and 5 in wire.node_ids and now < 3:
            wire.node_ids.remove(5)
        if now >= 3 and 5 not in wire.node_ids and 606 not in wire.node_ids:
            wire.node_ids.append(606)
            wire.contexts[606] = wire.contexts[5]

    wire.on_push = meddle
    store, said = serve_quietly(wire, config, tmp_path / "run")
    cohorts = [line.cohort for line in store.trial("fedpcs", 0).rounds()]
    assert 1 not in cohorts[2] + cohorts[3]
    assert any("client-1 has gone" in words for words in said)
    assert sum("client-1 is connected" in words for words in said) == 2


def test_a_task_with_another_budget_than_agreed_releases_nothing(finished):
    folder, wire, _, _ = finished
    before = columns(folder / "client0" / "ledger.sqlite", "SELECT * FROM charges")
    task = Task("wired/fedpcs/0", 1, 0, "n", Rho.of(0.11))
    content = messages.task_content(task, messages.model_record(np.zeros(650, dtype=np.float32)))
    (number,) = wire.push_messages([Message(content, 71, messages.TRAIN)])
    reply = wire.replies[number]
    assert reply.has_error()
    assert "was agreed" in reply.error.reason
    assert columns(folder / "client0" / "ledger.sqlite", "SELECT * FROM charges") == before


def test_a_sampler_that_needs_what_clients_do_not_tell_is_refused_at_once(run_file, wire, tmp_path):
    config = load_run_config(str(run_file), ["data.num_clients=3", 'sampling.samplers=["fed-cbs"]'])
    with pytest.raises(InvalidInput, match="label_counts"):
        serve_quietly(wire, config, tmp_path / "run")
    assert wire.crossed == []


def reply_to_hello(wire, node=71):
    (number,) = wire.push_messages([Message(RecordDict(), node, messages.HELLO)])
    return wire.replies[number]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"privacy_aversion": None}, "privacy_aversion must be given"),
        ({"accepts": {"budget_unit": None}}, "accepts.budget_unit must be given"),
        ({"partition_id": 3}, r"partition_id must be in [0, 2], got 3"),
        ({"may_be_asked": "false"}, "may_be_asked must be a boolean, got 'false'"),
        ({"limit_epsilo": 0.1}, "Did you mean 'limit_epsilon'"),
        ({"privacy_aversion": 1.37}, "privacy_aversion must be less than or equal to 0.999, got 1.37"),
        ({"privacy_aversion": "zero.4"}, "got 'zero.4'"),
        ({"initial_budget": -3.3}, "initial_budget must be greater than 0, got -3.3"),
        ({"initial_budget": 13.7}, "initial_budget must be a number in [0.01, 12], got 13.7"),
        ({"limit_epsilon": -2.75}, "limit_epsilon must be greater than 0, got -2.75"),
        ({"limit_epsilon": float("nan")}, "limit_epsilon must be"),
        ({"mode": 0o640}, "other users of this machine may use this file (mode 0640). Run: chmod 600"),
        ({"mode": 0o604}, "(mode 0604). Run: chmod 600"),
    ],
)
def test_what_is_wrong_with_a_nodes_settings_is_told_to_its_owner_alone(run_file, tmp_path, capsys, settings, words):
    wire = Wire(client_app(run_file), tmp_path)
    write_settings(tmp_path / "client0.toml", **settings)
    reason = reply_to_hello(wire).error.reason
    assert "its settings cannot be used; why is in the log of this node" in reason
    assert words in capsys.readouterr().err
    assert str(next(iter(settings.values()))) not in reason


@pytest.mark.parametrize(
    "name",
    ["privacy-aversion", "initial-budget", "limit-epsilon", "limit_epsilon", "limit-epsilo", "state-dir", "name"],
)
def test_settings_on_the_command_line_where_ps_shows_them_are_refused_with_the_remedy(run_file, tmp_path, capsys, name):
    wire = Wire(client_app(run_file), tmp_path)
    wire.contexts[71].node_config[name] = 0.4
    assert reply_to_hello(wire).has_error()
    assert f"--node-config names {name}, which everybody on this machine can read" in (said := capsys.readouterr().err)
    assert "start the node with --node-config 'settings=" in said


def test_settings_are_named_by_an_environment_variable_too(run_file, tmp_path, capsys, monkeypatch):
    wire = Wire(client_app(run_file), tmp_path)
    del wire.contexts[71].node_config["settings"]
    assert reply_to_hello(wire).has_error()
    assert "this node has no settings" in capsys.readouterr().err
    monkeypatch.setenv("FEDPCS_NODE_SETTINGS", str(tmp_path / "client0.toml"))
    assert messages.read_hello(reply_to_hello(wire).content).name == "client-0"


class Liar(Wire):
    """One client answers announcements with budgets of its own making."""

    def __init__(self, app, folder, lie):
        super().__init__(app, folder)
        self.lie = lie

    def push_messages(self, pushed):
        ids = super().push_messages(pushed)
        for message, number in zip(pushed, ids, strict=True):
            if message.metadata.message_type == messages.TERMS and message.metadata.dst_node_id == 71:
                honest = messages.read_budgets(self.replies[number].content, 3)
                self.replies[number] = Message(messages.budgets_content(self.lie(honest)), reply_to=message)
        return ids


@pytest.mark.parametrize(
    "lie",
    [
        pytest.param(lambda honest: np.full(3, 1), marks=pytest.mark.slow),
        pytest.param(lambda honest: np.full(3, 10**12), marks=pytest.mark.slow),
        pytest.param(lambda honest: np.full(3, 2**62 - 1), marks=pytest.mark.slow),
        lambda honest: np.array([honest[0], honest[1], 119_000_000]),
        pytest.param(lambda honest: np.array([honest[0], 100_000, honest[2]]), marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("reannounce", [pytest.param("never", marks=pytest.mark.slow), "on-drift"])
def test_budgets_nobody_could_answer_with_are_not_counted_and_the_run_goes_on(run_file, tmp_path, lie, reannounce):
    config = load_run_config(str(run_file), ["data.num_clients=3", f'federation.reannounce="{reannounce}"'])
    wire = Liar(client_app(run_file), tmp_path, lie)
    store, said = serve_quietly(wire, config, tmp_path / "run")
    assert any("client 0 is not drawn: budget of round" in words for words in said), said
    lines = store.trial("fedpcs", 0).rounds()
    assert len(lines) == 3
    assert all(0 not in line.cohort for line in lines)
    owed = columns(store.trial("fedpcs", 0).ledger, "SELECT client, amount_nanos FROM rewards")
    assert owed
    assert all(int(client) != 0 and nanos <= 6 * 12 * 10**9 for client, nanos in owed)


def test_an_empty_folder_of_checkpoints_is_no_checkpoint(run_file, wire, config, tmp_path):
    def stop(message):
        if message.metadata.message_type == "train":
            raise KeyboardInterrupt

    wire.on_push = stop
    with pytest.raises(KeyboardInterrupt):
        serve_quietly(wire, config, tmp_path / "run")
    (next((tmp_path / "run").glob("trials/*")) / "checkpoints").mkdir(exist_ok=True)
    wire.on_push = lambda message: None
    store, _ = serve_quietly(wire, config, tmp_path / "run")
    assert all(line.reward == 6.0 for line in store.trial("fedpcs", 0).rounds())


def test_a_deployments_folder_is_not_simulated_on(finished):
    folder, *_ = finished
    with pytest.raises(InvalidInput, match="on machines of their own"):
        resume_run(folder / "run", force=True)


def test_a_bound_name_stays_with_its_node(run_file, tmp_path):
    told = ["data.num_clients=3", "federation.bind_names=true"]
    config = load_run_config(str(run_file), told)
    wire = Wire(client_app(run_file), tmp_path)
    first = []

    def leave_after_the_first(message):
        if message.metadata.message_type == "train" and not first:
            first.append(message)
            raise KeyboardInterrupt

    wire.on_push = leave_after_the_first
    with pytest.raises(KeyboardInterrupt):
        serve_quietly(wire, config, tmp_path / "run")
    names = {one["node"]: one["name"] for one in json.loads((tmp_path / "run" / "roster.json").read_text())["clients"]}
    assert names[71] == "client-0"
    # The node of client-0 is away, and that of another says it is client-0.
    wire.node_ids = [node for node in wire.node_ids if node != 71]
    other = wire.node_ids[0]
    write_settings(Path(wire.contexts[other].node_config["settings"]), name="client-0", state_dir="other")
    said = []
    with suppress(QuorumNotReached):
        serve(wire, config, tmp_path / "run", say=said.append, poll_seconds=0.0)
    assert any("the name belongs to the node that had it" in words for words in said), said


def test_seeded_noise_is_for_simulations(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(RUN.replace('noise = "secure"', 'noise = "fast"'))
    wire = Wire(client_app(path), tmp_path)
    assert "noise must be 'secure' or 'exact' by this client's own settings" in reply_to_hello(wire).error.reason
    write_settings(tmp_path / "client0.toml", accepts={"noise": "fast"})
    assert messages.read_hello(reply_to_hello(wire).content).name == "client-0"


def test_a_simulated_client_has_no_books_to_agree_with(tmp_path):
    from fedpcs.engines.flower.client_app import Member

    grid = LocalGrid(make_client_app(lambda context, run: Member("0", None, 1)), (7,))
    (number,) = grid.push_messages([Message(messages.announcement_content(announcement()), 7, messages.TERMS)])
    assert "has no books" in grid.replies[number].error.reason


class Boasting(Wire):
    """Nodes say other numbers of records than they have, in their first words; `reports` also in what they send."""

    def __init__(self, app, folder, sizes, mode="record"):
        super().__init__(app, folder, accepts={"mode": mode})
        self.sizes = sizes

    def push_messages(self, pushed):
        pushed = list(pushed)
        ids = super().push_messages(pushed)
        for message, number in zip(pushed, ids, strict=True):
            node, kind = message.metadata.dst_node_id, message.metadata.message_type
            if node not in self.sizes:
                continue
            content = self.replies[number].content
            told = json.loads(text_of(content))
            if kind == messages.HELLO:
                told["num_samples"] = self.sizes[node]
            elif kind == messages.TRAIN:  # what a client would send whose records are as many as it may use
                told["num_samples"] = min(self.sizes[node], json.loads(text_of(message.content))["max_samples"])
            content["text"]["json"] = json.dumps(told)
        return ids


def boasting(run_file, folder, sizes, *changes, mode="client"):
    """Run a federation whose clients are all drawn in every round, with such sizes; return its folder and its words."""
    run_file.write_text(RUN.replace('mode = "record"', f'mode = "{mode}"'))
    config = load_run_config(str(run_file), ["data.num_clients=3", "sampling.sampling_ratio=1.0", *changes])
    return serve_quietly(Boasting(client_app(run_file), folder, sizes, mode), config, folder / "run")


@pytest.mark.parametrize("size", [2 * 10**9, *(pytest.param(one, marks=pytest.mark.slow) for one in (2**32, 10**12))])
@pytest.mark.parametrize("rule", ["precision", pytest.param("normalised", marks=pytest.mark.slow)])
def test_a_size_beyond_all_others_is_capped_and_decides_half_of_a_step_at_most(run_file, tmp_path, size, rule):
    store, said = boasting(run_file, tmp_path, {71: size}, f"sampling.rule={rule}")
    roster = json.loads((store.folder / "roster.json").read_text())
    others = [one["num_samples"] for one in roster["clients"] if one["node"] != 71]
    assert roster["max_samples"] == 100 * max(others)  # the median of three, one of which is the greatest
    lines = store.trial("fedpcs", 0).rounds()
    assert all(line.heard == [0, 1, 2] for line in lines)
    assert all(line.draw.largest_weight <= 0.5 + 1e-12 for line in lines)
    assert all(line.draw.weight_sum == pytest.approx(1.0) for line in lines)
    assert rule == "precision" or all(line.num_capped == 1 for line in lines)
    (words,) = [words for words in said if "records and takes part with" in words]
    assert words.startswith(f"client-0 says it has {size:,} records")
    assert words in store.manifest.notes
    assert words.split(",")[0] in write_study(store.folder).report.read_text()


@pytest.mark.parametrize("size", [2**47, 10**12 + 1, 10**400, 0, -1, True, 1.0, 1e9, math.nan, "5", None, [5]])
def test_a_size_nobody_can_have_is_no_size_and_nothing_is_saved(run_file, tmp_path, size):
    wire = Boasting(client_app(run_file), tmp_path, {71: size})
    config = load_run_config(str(run_file), ["data.num_clients=3", "federation.wait_seconds=0.01"])
    said = []
    with pytest.raises(QuorumNotReached, match="2 of 3 clients"):
        serve(wire, config, tmp_path / "run", say=said.append, poll_seconds=0.0)
    assert any("does not say who it is" in words and len(words) < 400 for words in said)
    assert not (tmp_path / "run" / "roster.json").exists()


def test_an_honest_client_above_the_cap_trains_on_its_first_records_and_counts(run_file, tmp_path):
    store, said = boasting(run_file, tmp_path, {}, "federation.max_samples=10", mode="record")
    assert sum("takes part with 10" in words for words in said) == 3
    lines = store.trial("fedpcs", 0).rounds()
    assert all(line.heard == [0, 1, 2] and line.refusals == {} for line in lines)


@pytest.mark.parametrize("epochs", [pytest.param(1, marks=pytest.mark.slow), 10_000])
def test_sizes_whose_steps_cannot_be_counted_are_refused_before_anything_is_saved(run_file, tmp_path, epochs):
    sizes, setting = dict.fromkeys(NODES, 10**12), f"training.local_epochs={epochs}"
    if epochs == 1:
        store, _ = boasting(run_file, tmp_path, sizes, setting, "rounds=2")
        assert (store.folder / "roster.json").exists()
    else:
        with pytest.raises(InvalidInput, match=r"federation\.max_samples"):
            boasting(run_file, tmp_path, sizes, setting)
        assert not (tmp_path / "run" / "roster.json").exists()


DAMAGE = [
    {},
    {"clients": []},
    {"clients": [{"name": "a", "num_samples": 5, "node": 1}]},
    {"max_samples": 5, "clients": [{"name": "a", "num_samples": 2**70, "node": 1}]},
    {"max_samples": 5, "clients": [{"name": "a", "num_samples": 5.0, "node": 1}]},
    {"max_samples": 5, "clients": [{"name": "a", "num_samples": True, "node": 1}]},
    {"max_samples": 0, "clients": [{"name": "a", "num_samples": 5, "node": 1}]},
    {"max_samples": 5, "clients": [{"name": "a", "num_samples": 5, "node": 1}] * 2},
    {"max_samples": 5, "clients": [{"name": ["a"], "num_samples": 5, "node": 1}]},
    {"max_samples": 5, "clients": {"name": "a"}},
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_roster_is_one_line(config, tmp_path, damage):
    path = tmp_path / "roster.json"
    path.write_text(json.dumps(damage))
    with pytest.raises(CorruptFile, match="Put back a copy, or start a new run"):
        roster_of(path, config, lambda: [])
