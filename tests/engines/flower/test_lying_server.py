"""A server that lies to honest clients: each lie is refused in words, and nothing is trained or charged."""

import sqlite3
from contextlib import closing

import forgeries
import numpy as np
import pytest
from local_grid import LocalGrid
from node_files import write_settings

from fedpcs._chain import unsealed
from fedpcs.deploy.client_app import client_app
from fedpcs.deploy.server_app import serve
from fedpcs.engines.flower import messages
from fedpcs.errors import QuorumNotReached
from fedpcs.learning.client import ClientSide
from fedpcs.privacy.conversion import to_rho
from fedpcs.trial.config import load_run_config

RUN = """
name = "forged"
rounds = 5
[data]
partition = "iid"
[training]
learning_rate = 2.0
batch_size = 0
[privacy]
noise = "secure"
[game]
budget_unit = 0.01
reward = 6.0
[sampling]
samplers = ["fedpcs"]
sampling_ratio = 0.67
[federation]
wait_seconds = 1.0
"""
NODE = 7
ROUND = forgeries.TASK["round_index"]


class Honest:
    """One honest client, over a grid in this process, and what it has on its disk."""

    def __init__(self, folder, run_file=RUN, **settings):
        self.folder, self.run_file = folder, folder / "run.toml"
        self.run_file.write_text(run_file)
        self.grid = LocalGrid(client_app(self.run_file), [NODE])
        path = write_settings(folder / "node.toml", state_dir="state", **settings)
        self.grid.contexts[NODE].node_config = {"settings": str(path)}

    def reply(self, kind, content):
        (reply,) = self.grid.send_and_receive([forgeries.sent(NODE, kind, content)])
        return reply

    def announce(self, changes=None):
        return self.reply(messages.TERMS, forgeries.content(forgeries.changed(forgeries.HONEST, changes or {})))

    def train(self, budget, **changes):
        model = np.zeros(forgeries.NUM_PARAMETERS, np.float32)
        task = {**forgeries.TASK, "budget": int(budget), **changes}
        return self.reply(messages.TRAIN, forgeries.content(task, model))

    @property
    def charges(self):
        path = self.folder / "state" / "ledger.sqlite"
        if not path.exists():
            return []
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute("SELECT rho_nanos FROM charges").fetchall()

    @property
    def agreed(self):
        path = self.folder / "state" / "agreed.json"
        return path.read_text() if path.exists() else ""


def budgets_of(reply, rounds=forgeries.ROUNDS):
    return messages.read_budgets(reply.content, rounds)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return Honest(tmp_path_factory.mktemp("honest"))


@pytest.fixture(scope="module")
def budget(honest):
    """What the client agreed to for the round of forged tasks."""
    return int(budgets_of(honest.announce())[ROUND])


NAMES = [name for name, *_ in forgeries.forged(1)]


@pytest.mark.parametrize("name", NAMES)
def test_each_lie_of_a_server_is_refused_in_its_own_words_and_nothing_is_trained_or_charged(
    honest, budget, name, capsys, monkeypatch
):
    (kind, content, words) = next((found for one, *found in forgeries.forged(budget) if one == name))
    before = honest.agreed
    monkeypatch.delattr(ClientSide, "answer")
    monkeypatch.delattr(ClientSide, "ask")
    reply = honest.reply(kind, content)
    assert reply.has_error()
    assert words in reply.error.reason
    assert len(reply.error.reason) < 700
    assert honest.agreed == before
    assert honest.charges == []
    assert all(line.isprintable() for line in capsys.readouterr().err.splitlines())


def test_what_an_honest_server_asks_is_answered_and_charged_once(tmp_path):
    client = Honest(tmp_path)
    agreed = budgets_of(client.announce())
    assert not client.train(agreed[ROUND]).has_error()
    assert client.charges == [(int(agreed[ROUND]),)]


# A second announcement within the client's settings, after a first that asked for less.
TIGHT = {
    "conditions.budget_bounds": [1.0, 10.0],
    "conditions.delta": 1e-6,
    "conditions.noise": "exact",
}
LOOSE = {
    "wider bounds": ({"conditions.budget_bounds": [0.01, 12.0]}, "budget_bounds must stay (1.0, 10.0), as agreed"),
    "more rounds": (forgeries.long(50), "rounds must stay 5, as agreed"),
    "a larger delta": ({"conditions.delta": 1e-5}, "delta must stay 1e-06, as agreed"),
    "weaker noise": ({"conditions.noise": "secure"}, "noise must stay 'exact', as agreed"),
    "another N": ({"num_clients": 4}, "num_clients must stay 3, as agreed"),
    "another selection": ({"selection": "budget-blind"}, "selection must stay 'budget-aware', as agreed"),
    "a higher unit": ({"conditions.budget_unit": 0.02}, "budget_unit must be 0.01 by this client's own settings"),
    "another mode": ({"conditions.mode": "client"}, "mode must be 'record' by this client's own settings"),
    "another clipping bound": ({"conditions.clip_norm": 2.0}, "clip_norm must be 1 by this client's own settings"),
    "means above the bounds": (
        {"mean_budget": [11.0] * forgeries.ROUNDS},
        "mean_budget[0] must be a number in [1, 10]",
    ),
}


@pytest.fixture(scope="module")
def bound(tmp_path_factory):
    client = Honest(tmp_path_factory.mktemp("bound"))
    assert not client.announce(TIGHT).has_error()
    return client


@pytest.mark.parametrize("name", LOOSE)
def test_a_second_announcement_that_loosens_the_first_is_refused(bound, name):
    changes, words = LOOSE[name]
    before = bound.agreed
    assert words in bound.announce({**TIGHT, **changes}).error.reason
    assert bound.agreed == before
    assert bound.charges == []


def test_announced_again_and_again_budgets_stay_within_the_clients_own_bounds(tmp_path):
    client = Honest(tmp_path)
    agreed = budgets_of(client.announce())
    for first in range(1, forgeries.ROUNDS):
        left = forgeries.ROUNDS - first
        higher = {"reward": [1e12] * left, "mean_budget": [12.0] * left, "cohort_size": [3] * left}
        again = budgets_of(client.announce({"first_round": first, **higher}), left)
        assert again[0] == agreed[first]
        assert (again <= 0.01 * 12.0 * 1e9).all()
        agreed = [*agreed[:first], *again]


def test_other_names_of_runs_do_not_set_the_limit_anew(tmp_path):
    client = Honest(tmp_path, limit_epsilon=1.5)
    most = to_rho(1.5, 1e-5, "tight") * 1e9
    refused = []
    for number in range(6):
        agreed = budgets_of(client.announce({"run": f"run {number}"}))
        reply = client.train(agreed[0], run=f"run {number}", round_index=0)
        refused += [reply.error.reason] if reply.has_error() else []
    spent = sum(nanos for (nanos,) in client.charges)
    assert refused
    assert all("it has reached its limit" in reason for reason in refused)
    assert most / 2 < spent <= most


def test_a_limit_is_in_force_where_none_is_given(tmp_path):
    client = Honest(tmp_path)
    client.train(budgets_of(client.announce())[ROUND])
    with closing(sqlite3.connect(tmp_path / "state" / "ledger.sqlite")) as connection:
        ((limit,),) = connection.execute("SELECT rho_nanos FROM limits").fetchall()
    assert limit == int(to_rho(10.0, 1e-5, "tight") * 1e9)


def test_a_client_that_changed_its_settings_takes_no_more_tasks_under_the_old_ones(tmp_path):
    client = Honest(tmp_path)
    agreed = budgets_of(client.announce())
    write_settings(tmp_path / "node.toml", state_dir="state", accepts={"budget_bounds": [0.01, 8.0]})
    assert "budget_bounds must be within [0.01, 8]" in client.train(agreed[ROUND]).error.reason
    assert client.charges == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('noise = "secure"', 'mode = "none"'), "mode must be 'record'"),
        (('noise = "secure"', 'mode = "paper"'), "mode must be 'record'"),
        (('noise = "secure"', 'noise = "fast"'), "noise must be 'secure' or 'exact'"),
        (('noise = "secure"', 'noise = "secure"\nclip_norm = 9.0'), "clip_norm must be 1"),
        (("budget_unit = 0.01", "budget_unit = 100"), "budget_unit must be 0.01"),
        (("rounds = 5", "rounds = 5000"), "rounds must be at most 100"),
    ],
)
def test_the_run_file_that_comes_with_the_app_is_held_to_the_clients_settings_too(tmp_path, change, words, capsys):
    client = Honest(tmp_path, RUN.replace(*change))
    for reply in (client.announce(), client.train(1)):
        assert words in reply.error.reason
        assert "by this client's own settings" in reply.error.reason
    assert f"fedpcs: client-0 refuses: {words}" in capsys.readouterr().err
    assert client.agreed == ""
    assert client.charges == []


def test_one_line_changed_on_the_servers_machine_costs_nobody_anything(tmp_path):
    """The unit is 100 where the app says 0.01: clients that believed it spent ρ = 400 to 900 in a round."""
    client = Honest(tmp_path, num_partitions=1)
    config = load_run_config(str(client.run_file), ["data.num_clients=1", "game.budget_unit=100"])
    said = []
    with pytest.raises(QuorumNotReached):
        serve(client.grid, config, tmp_path / "run", say=said.append, poll_seconds=0.0)
    assert any("budget_unit must be 0.01 by this client's own settings, got 100.0" in words for words in said)
    assert client.charges == []
    assert client.agreed == ""


def test_a_server_that_makes_up_names_of_runs_does_not_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("fedpcs.engines.flower.client_books._MOST_RUNS", 3)
    client = Honest(tmp_path)
    replies = [client.announce({"run": f"run {number}"}) for number in range(5)]
    assert [reply.has_error() for reply in replies] == [False] * 3 + [True] * 2
    assert "has agreed to 3 runs" in replies[-1].error.reason
    assert len(unsealed(client.agreed.encode())[0]) == 3
