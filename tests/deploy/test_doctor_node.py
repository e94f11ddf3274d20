"""`fedpcs doctor --node`: what is open on a client's machine, what it has spent, and the most it can ever spend."""

import json

import pytest
from command_line import fedpcs

from fedpcs.deploy.doctor_node import check_node
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon, to_rho
from fedpcs.privacy.events import RECORD_LEVEL, Event, Family
from fedpcs.trial.config import load_run_config

SETTINGS = """
partition_id = 0
num_partitions = 1
privacy_aversion = 0.4
initial_budget = 5.0
state_dir = "state"
"""


@pytest.fixture
def node(tmp_path):
    def write(text="", accepts="budget_unit = 0.01", mode=0o600):
        path = tmp_path / "node.toml"
        path.write_text(f"{SETTINGS}{text}\n[accepts]\n{accepts}\n")
        path.chmod(mode)
        return path

    return write


def found(path, config=None):
    return {one.subject: one for one in check_node(path, config)}


def test_it_says_the_most_a_client_can_ever_spend(node):
    most = found(node())["at most"]
    assert most.standing == "fine"
    assert most.found.startswith("ε = 10 at δ = 10⁻⁵ over all runs, now and later, whatever a server announces")
    assert str(Rho.at_most(to_rho(10.0, 1e-5, "tight"))) in most.found
    assert "at most ρ = 0.12 in one round" in most.found


@pytest.mark.parametrize(("mode", "said"), [(0o644, "mode 0644"), (0o660, "mode 0660"), (0o602, "mode 0602")])
def test_settings_that_others_can_read_are_wrong_and_the_remedy_is_the_command(node, mode, said):
    path = node(mode=mode)
    (check,) = check_node(path)
    assert check.standing == "wrong"
    assert said in check.found
    assert f"Run: chmod 600 {path}" in check.found


def test_a_state_folder_that_others_can_look_into_is_wrong(node, tmp_path):
    (tmp_path / "state").mkdir(mode=0o755)
    check = found(node())["state folder"]
    assert check.standing == "wrong"
    assert f"chmod 700 {tmp_path / 'state'}" in check.found


def test_nothing_is_made_where_nothing_is(node, tmp_path):
    assert found(node())["ledger"].found == "no ledger yet: nothing was spent"
    assert not (tmp_path / "state").exists()


def test_it_says_what_was_spent(node, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    event = Event(Rho.of(0.3), RECORD_LEVEL, "secure", Family.GAUSSIAN, is_replayable=False)
    with PrivacyLedger.open(tmp_path / "state" / "ledger.sqlite") as ledger:
        ledger.charge(ReleaseKey("run", 0, "self"), event)
    said = found(node())["ledger"].found
    assert "1 releases; spent ρ = 0.3" in said
    assert to_epsilon(0.3, 1e-5, "exact") <= float(said.rpartition("ε = ")[2]) <= to_epsilon(0.3, 1e-5, "exact") + 0.01
    spent = found(node("limit_epsilon = 1.0"))["at most"]
    assert "All of it is spent" in spent.found


def test_a_damaged_ledger_is_wrong(node, tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "ledger.sqlite").write_bytes(b"no ledger at all" * 100)
    assert found(node())["ledger"].standing == "wrong"


@pytest.mark.parametrize(
    ("accepts", "subject", "standing", "words"),
    [
        ('budget_unit = 0.01\nmode = "none"', "at most", "wrong", "no limit holds"),
        ('budget_unit = 0.01\nnoise = "fast"', "accepts", "note", "noise 'fast' or stronger"),
        ("budget_unit = 1.0", "at most", "note", "One round could spend all of it"),
    ],
)
def test_what_undoes_a_clients_protection_is_said(node, accepts, subject, standing, words):
    check = found(node(accepts=accepts))[subject]
    assert check.standing == standing
    assert words in check.found


def test_a_run_is_held_to_what_the_client_accepts(node):
    told = ["privacy.noise=secure", "privacy.clip_norm=1.0"]
    config = load_run_config("default", [*told, "game.budget_unit=0.01"])
    assert found(node(), config)["run"].standing == "fine"
    other = load_run_config("default", [*told, "game.budget_unit=0.02"])
    check = found(node(), other)["run"]
    assert check.standing == "wrong"
    assert "budget_unit must be 0.01 by this client's own settings, got 0.02" in check.found


def test_the_command_says_so_with_its_exit_code(node, tmp_path):
    done = fedpcs("doctor", "--node", str(node()), "--json")
    assert done.returncode == 0
    assert {one["subject"] for one in json.loads(done.stdout)} >= {"settings", "state folder", "ledger", "at most"}
    assert fedpcs("doctor", "--node", str(node(mode=0o644)), "--json").returncode == 1
    missing = fedpcs("doctor", "--node", str(tmp_path / "none.toml"), "--json")
    assert missing.returncode == 1
    assert "No such file" in missing.stdout
