"""A real deployment on this machine: a SuperLink and SuperNodes as processes, with TLS and node authentication.

A round takes about 15 s, so faults are combined: one deployment, and in every round other clients that misbehave.
"""

import importlib.util
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import forgeries
import numpy as np
import pytest
from processes import is_alive, wait_until

from fedpcs.trial import checkpoint
from fedpcs.trial.store import TrialStore

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[2] / "examples" / "flower"
FAULTY_APP = {
    "client_app": HERE / "faulty_client_app.py",
    "fault_injection": HERE.parents[1] / "faults" / "fault_injection.py",
}
MAKE = HERE.parents[3] / "shared" / "data" / "make"
GIVEN = os.environ.get("FEDPCS_TEST_DATA")
NAMES = ["client-0", "client-1", "client-2"]
# Where nobody hangs, nobody need be hurried: machines that run tests have other things to do.
PATIENT = ("deadline_seconds = 60.0", "deadline_seconds = 300.0")


def load_example():
    spec = importlib.util.spec_from_file_location("local_federation", EXAMPLE / "local_federation.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


local = load_example()


class Deployment:
    """Processes of one federation; all end with the test, whatever becomes of it."""

    def __init__(self, folder, **told):
        self.folder, self.told = folder, told
        self.ports = local.free_ports(6)  # the SuperLink's, its nodes', and two more nodes'
        self.processes = local.up(folder, self.ports, **self.told)

    @property
    def superlink(self):
        return self.processes[0]

    def start_node(self, number, **told):
        port, own = self.ports[0], self.ports[1 + number]
        process = local.start_supernode(self.folder, number, port, own, **{**self.told, **told})
        self.processes.append(process)
        return process

    def restart_node(self, number, seconds=240.0):
        """Start a node until it is let in, as a service manager does: the SuperLink is slow to miss the old one."""
        until, before = time.monotonic() + seconds, self.times_let_in(number)
        while True:
            process = self.start_node(number)
            while process.poll() is None and time.monotonic() < until:
                if self.times_let_in(number) > before:
                    return
                time.sleep(0.5)
            assert time.monotonic() < until, self.log(f"supernode{number}")
            time.sleep(5.0)

    def times_let_in(self, number):
        return self.log(f"supernode{number}").count("SuperNode ID")

    def start_run(self, app, log, run_dir="run", **told):
        process = local.start_run(self.folder, app, log, run_dir=self.folder / run_dir, **told)
        self.processes.append(process)
        return process

    def run(self, app, log, seconds=1200.0, **told):
        """Run an app to its end; return what it said."""
        self.start_run(app, log, **told).wait(timeout=seconds)
        return self.log(log)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def children(self, process, name):
        """Return the processes of this name below one of ours."""
        below = local.descendants([process.pid])
        listed = subprocess.run(["ps", "-eo", "pid=,args="], check=True, text=True, capture_output=True).stdout
        pairs = [line.split(maxsplit=1) for line in listed.splitlines()]
        return [int(pid) for pid, *words in pairs if int(pid) in below and name in words[0] and is_alive(int(pid))]

    def trial(self, run_dir="run"):
        return TrialStore(next((self.folder / run_dir / "trials").iterdir()))

    def rounds(self):
        logs = self.folder.glob("run/trials/*/rounds.jsonl")  # there is none before the first round
        return [json.loads(line) for path in logs for line in path.read_text().splitlines()]

    def agreed(self, number):
        plan, _ = json.loads((self.folder / f"client{number}" / "agreed.json").read_text()).values()
        return plan["budgets"]

    def charges(self, number=None):
        """Return (round, client, billionths) of every charge: of a client's own ledger, or of the server's."""
        path = self.trial().ledger if number is None else self.folder / f"client{number}" / "ledger.sqlite"
        return table(path, "SELECT round_index, client, rho_nanos FROM charges ORDER BY rowid")

    def owed(self):
        return table(
            self.trial().ledger, "SELECT round_index, client, amount_nanos FROM rewards ORDER BY round_index, client"
        )


def table(path, sql):
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def deployments(tmp_path):
    """Brings deployments up."""
    made = []

    def bring_up(**told):
        made.append(Deployment(tmp_path, **told))
        return made[-1]

    yield bring_up
    for one in made:
        below = local.descendants(process.pid for process in one.processes)
        local.stop(one.processes)
        wait_until(lambda pids=below: not any(map(is_alive, pids)), 5.0, lambda: "processes are left")


def make_app(folder, changes=(), **replaced):
    """Copy the example's app, with another run file or other modules; return its folder."""
    shutil.copytree(EXAMPLE / "fedpcs_app", folder / "fedpcs_app", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLE / "pyproject.toml", folder)
    run_file = folder / "fedpcs_app" / "run.toml"
    text = run_file.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    run_file.write_text(text)
    for name, path in replaced.items():
        shutil.copy(path, folder / "fedpcs_app" / f"{name}.py")
    return folder


@pytest.fixture
def data(tmp_path):
    """Returns the name of a data set and what tells nodes where it is: Fashion-MNIST, or the digits fedpcs brings."""
    if GIVEN:
        return "fashion-mnist", {"data_dir": Path(GIVEN)}
    if not MAKE.exists():
        return "digits", {}
    command = [sys.executable, str(MAKE), "fashion-mnist", str(tmp_path / "data")]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return "fashion-mnist", {"data_dir": tmp_path / "data"}


def test_three_nodes_train_over_tls_and_nodes_without_the_right_secrets_are_refused(deployments, data, tmp_path):
    name, where = data
    app = make_app(tmp_path / "app", [('name = "digits"', f'name = "{name}"'), PATIENT])
    federation = deployments(**where)
    local.make_secrets(tmp_path / "others", 1)
    # One trusts another authority, so it does not take this SuperLink for its own; one has a key nobody registered.
    deceived = federation.start_node(3, authority=tmp_path / "others" / "ca.crt", key=tmp_path / "secrets" / "node0")
    unknown = federation.start_node(4, key=tmp_path / "others" / "node0")
    said = federation.run(app, "run", run_dir="run", **where)
    lines = federation.rounds()
    assert [line["heard"] for line in lines] == [line["cohort"] for line in lines], said
    assert len(lines) == 5
    assert lines[-1]["accuracy"] > 0.4
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert (tmp_path / "run" / "result.json").exists()
    roster = json.loads((tmp_path / "run" / "roster.json").read_text())["clients"]
    assert [one["name"] for one in roster] == NAMES

    assert "certificate" in federation.log("supernode3").lower()
    assert "SuperNode ID" not in federation.log("supernode3")
    assert unknown.poll() is not None
    assert "SuperNode ID" not in federation.log("supernode4")
    assert "SuperNode ID" in federation.log("supernode0")
    assert deceived.poll() is None or deceived.returncode != 0
    for number in (3, 4):
        assert not (tmp_path / f"client{number}").exists()
        assert f"client-{number}" not in said
    for number in range(3):
        assert federation.charges(number)
        spent_where_drawn(federation, number)


def spent_where_drawn(federation, number):
    """A client's own ledger holds what it agreed to, for rounds it was drawn in, and the server's holds no less."""
    agreed = federation.agreed(number)
    own = [(index, nanos) for index, _, nanos in federation.charges(number)]
    known = [(index, nanos) for index, client, nanos in federation.charges() if int(client) == number]
    for index, nanos in own:
        assert nanos == agreed[index]
    for charge in set(own):
        assert own.count(charge) <= known.count(charge)


# What the log says of each round's faulty clients, by round and client.
EXPECTED = {
    0: {1: ("raised", "RuntimeError"), 2: ("raised", "died: SystemExit")},
    1: {1: ("numbers", "nan"), 2: ("layout", "has shape (1,), expected (10,)")},
    2: {1: ("layout", "float64"), 2: ("layout", "is missing")},
    3: {1: ("layout", "'extra'"), 2: ("size", "1000000")},
    4: {1: ("contract", "contracted was"), 2: ("message", "characters of JSON")},
    5: {1: ("message", "Invalid JSON"), 2: ("stale", "another task's")},
    6: {1: ("message", "cannot be read"), 2: ("norm", "an honest update has at most")},
    7: {1: ("raised", "memory: RuntimeError"), 2: ("deadline", "")},
    8: {1: ("deadline", ""), 2: ("died|deadline", "")},  # whichever is noticed first
    9: {1: ("died|deadline", "")},
}


def test_no_fault_of_a_client_or_its_node_ends_the_run_or_counts(deployments, tmp_path):
    changes = [
        ("rounds = 5", "rounds = 12"),
        ("sampling_ratio = 0.67", "sampling_ratio = 1.0"),
        ("deadline_seconds = 60.0", "deadline_seconds = 90.0"),
        ("quorum = 0.5", "quorum = 0.3"),
    ]
    app = make_app(tmp_path / "app", changes, **FAULTY_APP)
    federation = deployments()
    (tmp_path / "faults").write_text("replies")
    run = federation.start_run(app, "run")
    wait_until(lambda: federation.rounds() or run.poll() is not None, 600.0, lambda: federation.log("run"))
    # A second node, with a key of its own, that says it is client-0.
    make_another_key(tmp_path, 3)
    local.register(tmp_path, 3)
    federation.start_node(3, name="client-0")
    # A node that is killed while its client trains, and started again. Its client app hung in the round before.
    mark = tmp_path / "client2" / "slow"
    wait_until(lambda: mark.exists() or run.poll() is not None, 1200.0, lambda: federation.log("run"))
    os.killpg(federation.processes[3].pid, signal.SIGKILL)
    federation.restart_node(2)
    run.wait(timeout=1200.0)

    check_faults(federation)
    assert mark.exists()  # a node whose client app hung in round 7 took the task of round 8
    assert not any(federation.children(process, "flwr-clientapp") for process in federation.processes)


def check_faults(federation):
    """No fault ended the run or counted, and everybody was heard again."""
    said, lines = federation.log("run"), federation.rounds()
    assert len(lines) == 12, said
    for line in lines:
        expected = EXPECTED.get(line["round"], {})
        told = {item["client"]: (item["kind"], item["reason"]) for item in [*line["failed"], *line["refused"]]}
        for client, (kind, words) in expected.items():
            assert client in told, line
            assert re.fullmatch(kind, told[client][0]), line
            assert words in told[client][1], line
        assert not set(expected) & set(line["heard"])
        assert 0 in line["heard"]
        assert line["accuracy"] is not None
        assert np.isfinite(line["step_norm"])
    assert lines[11]["heard"] == [0, 1, 2]  # also the one whose client app, and the one whose node was killed
    assert "calls itself client-0 is not heard: another node has this name" in said
    assert not (federation.folder / "client3").exists()
    assert not list(federation.folder.glob("*/executed"))  # what the pickle would have made
    for number in range(3):
        spent_where_drawn(federation, number)
    # Words of an exception stay on the client's machine.
    assert "injected" not in json.dumps(lines)
    assert "injected: the client's code failed" in federation.log("supernode1")
    # Owed is what was heard, no more.
    assert [(index, int(client)) for index, client, _ in federation.owed()] == [
        (line["round"], client) for line in lines for client in line["heard"]
    ]


def test_whoever_did_not_do_the_work_is_charged_and_not_paid_and_sizes_are_not_believed(deployments, tmp_path):
    """Client 0 says it has 2·10⁹ records; 1 sends zeros, then half of its update; 2 sends an old one again."""
    changes = [
        ("rounds = 5", "rounds = 4"),
        ("sampling_ratio = 0.67", "sampling_ratio = 1.0"),
        ("quorum = 0.5", "quorum = 0.3"),
        PATIENT,
    ]
    app = make_app(tmp_path / "app", changes, **FAULTY_APP)
    federation = deployments()
    (tmp_path / "faults").write_text("riders")
    said = federation.run(app, "run")
    lines = federation.rounds()
    assert [line["heard"] for line in lines] == [[0, 2], [0, 2], [0, 1], [0, 1, 2]], said
    refused = {(one["round_index"], one["client"]): one["kind"] for line in lines for one in line["refused"]}
    assert (refused[0, 1], refused[1, 1]) == ("noise", "noise")
    assert refused[2, 2] in ("repeat", "noise", "norm")  # its budget may have moved since
    assert all(line["draw"]["largest_weight"] <= 0.5 + 1e-12 for line in lines)
    roster = json.loads((tmp_path / "run" / "roster.json").read_text())
    assert roster["clients"][0]["num_samples"] == 2 * 10**9
    assert roster["max_samples"] == 100 * sorted(one["num_samples"] for one in roster["clients"])[1]
    assert f"client-0 says it has 2,000,000,000 records and takes part with {roster['max_samples']:,}" in said
    owed = [(now, int(client)) for now, client, _ in federation.owed()]
    assert owed == [(line["round"], client) for line in lines for client in line["heard"]]
    for number in range(3):
        assert sorted(now for now, client, _ in federation.charges() if int(client) == number) == [0, 1, 2, 3]


def make_another_key(folder, number):
    """Make a node's key pair beside those that are there."""
    local.make_secrets(folder / "more", 1)
    for suffix in ("", ".pub"):
        shutil.copy(folder / "more" / f"node0{suffix}", folder / "secrets" / f"node{number}{suffix}")


def test_a_server_without_quorum_or_killed_goes_on_where_it_was_and_forgets_no_privacy(deployments, tmp_path):
    changes = [
        ("sampling_ratio = 0.67", "sampling_ratio = 1.0"),
        ("quorum = 0.5", "quorum = 0.6\nredraws = 1"),
        PATIENT,
    ]
    app = make_app(tmp_path / "app", changes, **FAULTY_APP)
    federation = deployments()

    # Too few answer in round 1, and again when it is drawn afresh.
    (tmp_path / "faults").write_text("nobody")
    said = federation.run(app, "first")
    assert "QuorumNotReached" in said
    assert "round 1: fewer than 60%" in said
    assert [line["round"] for line in federation.rounds()] == [0]
    state, _, _ = checkpoint.latest(federation.trial().checkpoints)
    assert state.next_round == 1
    before = federation.charges()
    assert [index for index, _, _ in before] == [0] * 3 + [1] * 6  # two attempts were paid for
    assert {index for index, _, _ in federation.owed()} == {0}

    # Clients behave again, and the server app is killed when tasks of round 3 are out.
    (tmp_path / "faults").unlink()
    run = federation.start_run(app, "second")
    wait_until(
        lambda: any(index == 3 for index, _, _ in federation.charges(0)) or run.poll() is not None,
        900.0,
        lambda: federation.log("second"),
    )
    (server,) = federation.children(federation.superlink, "flwr-serverapp")
    os.kill(server, signal.SIGKILL)
    charged, owed, agreed = federation.charges(), federation.owed(), [federation.agreed(number) for number in range(3)]
    own = [federation.charges(number) for number in range(3)]
    lines = federation.rounds()
    assert [line["round"] for line in lines] == [0, 1, 2], federation.log("second")
    assert charged[: len(before)] == before

    said = federation.run(app, "third")
    after = federation.rounds()
    assert after[:3] == lines
    assert [line["round"] for line in after] == [0, 1, 2, 3, 4], said
    assert (tmp_path / "run" / "result.json").exists()
    # What was spent stays spent, in every book, and round 3, done over with fresh noise, is paid for twice.
    assert federation.charges()[: len(charged)] == charged
    assert [index for index, _, _ in federation.charges()[len(charged) :]] == [3] * 3 + [4] * 3
    for number in range(3):
        assert federation.charges(number)[: len(own[number])] == own[number]
        assert federation.agreed(number) == agreed[number]
        spent_where_drawn(federation, number)
    assert [index for index, _, _ in federation.charges(0)].count(3) == 2
    # What was owed is owed once.
    assert federation.owed()[: len(owed)] == owed
    assert [index for index, _, _ in federation.owed()] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3
    spent = after[-1]["spent"]["rho"]["maximum"]
    totals = [sum(nanos for _, client, nanos in federation.charges() if int(client) == number) for number in range(3)]
    assert spent == pytest.approx(max(totals) / 1e9)

    # Once more, on a run that is done: nothing happens, nothing is spent.
    said = federation.run(app, "fourth")
    assert "is done already" in said
    totals = [federation.charges(), *(federation.charges(number) for number in range(3))]

    # A server that lies gets nothing, and costs nothing.
    forger = make_app(tmp_path / "forger", server_app=HERE / "forging_server_app.py", forgeries=HERE / "forgeries.py")
    said = federation.run(forger, "forged", run_dir="forged")
    assert (tmp_path / "forged" / "replies.json").exists(), said
    replies = json.loads((tmp_path / "forged" / "replies.json").read_text())
    assert replies["names"] == NAMES
    assert len(replies["lies"]) == sum(1 for _ in forgeries.forged(1))
    for lie, (words, answered) in replies["lies"].items():
        assert words in answered, lie
    assert [federation.charges(), *(federation.charges(number) for number in range(3))] == totals


def test_honest_nodes_spend_nothing_on_a_server_that_changed_a_line_and_keep_their_numbers_to_themselves(
    deployments, tmp_path
):
    """The server's unit is 100 where the app says 0.01: clients that believed it spent ρ = 400 to 900 in a round."""
    app = make_app(tmp_path / "app", [PATIENT])
    lying = (app / "fedpcs_app" / "run.toml").read_text().replace("budget_unit = 0.01", "budget_unit = 100")
    (tmp_path / "lying.toml").write_text(lying)
    own = 'Path(__file__).with_name("run.toml")'
    code = (app / "fedpcs_app" / "server_app.py").read_text()
    assert own in code
    (app / "fedpcs_app" / "server_app.py").write_text(code.replace(own, repr(str(tmp_path / "lying.toml"))))
    federation = deployments()
    run = federation.start_run(app, "lied", run_dir="lied")
    seen = set()
    wait_until(lambda: seen.update(command_lines(federation)) or run.poll() is not None, 600.0, lambda: "no end")
    assert "budget_unit must be 0.01 by this client's own settings, got 100.0" in (said := federation.log("lied"))
    assert "QuorumNotReached" in said
    for number, (aversion, budget) in enumerate(local.CLIENTS):
        assert federation.charges(number) == []
        assert not (tmp_path / f"client{number}").exists()
        assert f"fedpcs: client-{number} refuses: budget_unit must be 0.01" in federation.log(f"supernode{number}")
        assert not any(str(secret) in line.split() for secret in (aversion, budget) for line in seen)
    assert any("flwr-clientapp" in line for line in seen)
    assert not any(word in line for word in ("privacy", "budget", "epsilon") for line in seen)

    # An honest server: what it leaves on both sides is its owner's alone.
    honest = make_app(tmp_path / "honest", [PATIENT, ("rounds = 5", "rounds = 2")])
    said = federation.run(honest, "run")
    assert (tmp_path / "run" / "result.json").exists(), said
    for kept in ("run", "client0", "client1", "client2"):
        assert (tmp_path / kept).stat().st_mode & 0o077 == 0
    for path in [
        *tmp_path.glob("*.log"),
        *tmp_path.glob("client*/agreed.json"),
        *tmp_path.glob("run/trials/*/*.*"),
        *tmp_path.glob("run/*.*"),
    ]:
        if path.is_file() and "ledger" not in path.name:
            assert path.stat().st_mode & 0o077 == 0, path


def command_lines(federation):
    """What `ps` shows anybody of the nodes and all that they start."""
    below = local.descendants(process.pid for process in federation.processes)
    listed = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], check=True, text=True, capture_output=True).stdout
    pairs = [line.split(maxsplit=1) for line in listed.splitlines()]
    return {words for pid, words in pairs if int(pid) in {*below, *(one.pid for one in federation.processes)}}
