"""A client app whose client fails: the node is free again, and what is told of the failure says nothing of records."""

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from fault_injection import Fault, FaultyClients
from flwr.app import Message
from local_grid import LocalGrid
from node_files import announcement, make_books

from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import Member, make_client_app
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import deal_out
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho

TOLD = announcement()


@pytest.fixture
def member(tmp_path):
    dataset = load_dataset("digits")
    model = make_model("linear", dataset.input_shape, dataset.num_classes, seed=0)
    data = deal_out(dataset, [np.arange(20)])
    side = FaultyClients(ClientPlan(mode="record", noise="secure", batch_size=None), model, data)
    return Member("ada", side, 20, make_books(tmp_path / "ada"))


def answer(member, kind=None, ttl=60.0, **fault):
    """Return the reply to a task of round 0, for which the client's budget is agreed."""
    if kind is not None:
        member.side.faults = (Fault(kind, **fault),)
    budget = Rho(int(member.books.agree(TOLD)[0])) if member.books is not None else Rho.of(0.01)
    grid = LocalGrid(make_client_app(lambda context, run: member), [11])
    content = messages.task_content(
        Task("run", 0, 0, "nonce", budget), messages.model_record(np.zeros(650, np.float32))
    )
    (reply,) = grid.send_and_receive([Message(content, 11, messages.TRAIN, ttl=ttl)])
    return reply


def test_a_client_that_behaves_reports(member):
    assert messages.read_report(answer(member).content).num_samples == 20


@pytest.mark.parametrize(
    ("kind", "told"), [("raise", "raised: RuntimeError"), ("exit", "died: SystemExit"), ("memory", "memory: ")]
)
def test_the_words_of_a_failure_stay_on_the_clients_machine(member, capsys, kind, told):
    reason = answer(member, kind).error.reason
    assert told in reason
    assert "injected" not in reason
    assert "ada fails: " in capsys.readouterr().err


def test_a_client_does_not_tell_its_limit_nor_what_it_has_spent_elsewhere(member, capsys):
    books = replace(member.books, limit=Rho.of(0.07))
    assert not answer(replace(member, books=books)).has_error()
    reason = answer(replace(member, books=books)).error.reason
    assert "it has reached its limit" in reason
    assert "0.0" not in reason
    assert "its limit ρ = 0.07" in capsys.readouterr().err


def test_in_a_simulation_they_are_told(member):
    assert "injected" in answer(replace(member, books=None), "raise").error.reason


def test_a_client_that_hangs_is_cut_off_when_its_message_has_run_out(member):
    began = time.monotonic()
    assert "deadline: Deadline" in answer(member, "hang", ttl=0.5).error.reason
    assert 0.4 < time.monotonic() - began < 5.0


@pytest.mark.slow
def test_one_that_hangs_where_python_cannot_interrupt_ends_its_process():
    code = (
        "import ctypes\n"
        "from fedpcs.engines.flower.client_app import _ended_after\n"
        "with _ended_after(0.5, True):\n"
        "    ctypes.PyDLL(None).sleep(3600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "Timeout" in done.stderr


@pytest.mark.slow
def test_one_that_is_in_time_does_not():
    code = (
        "import time\n"
        "from fedpcs.engines.flower.client_app import _ended_after\n"
        "with _ended_after(0.5, True):\n"
        "    pass\n"
        "time.sleep(1.0)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
