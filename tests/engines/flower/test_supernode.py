"""A node that does not hear its SuperLink any more ends, with a code that says so."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import local_grid
import pytest
from flwr.app import Message, RecordDict
from flwr.common.constant import SubStatus
from flwr.supercore.constant import TaskType
from flwr.supercore.object_store.in_memory_object_store import InMemoryObjectStore

from fedpcs.engines.flower import supernode
from fedpcs.engines.flower.supernode import AnsweringState, Watch
from fedpcs.errors import SuperLinkLost


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(supernode.time, "monotonic", lambda: now[0])
    return now


def test_a_node_that_asks_and_beats_is_not_silent(clock):
    watch = Watch()
    for clock[0] in range(0, 1000, 20):
        watch.asked(False)
        watch.beat()
    assert watch.silent_seconds() == 0.0


def test_a_node_at_work_is_heard_by_its_heartbeat_alone(clock):
    watch = Watch()
    watch.asked(True)
    clock[0] = 3600.0
    watch.beat()
    clock[0] = 3610.0
    assert watch.silent_seconds() == 10.0


@pytest.mark.parametrize("what", ["beat", "asked"])
def test_either_of_the_two_that_stops_is_noticed(clock, what):
    watch = Watch()
    for clock[0] in range(0, 1000, 20):
        watch.beat() if what == "asked" else watch.asked(False)
    assert watch.silent_seconds() == 980.0


@pytest.mark.parametrize("has_answered", [False, True])
def test_a_client_app_that_ends_without_an_answer_is_answered_for(has_answered):
    state = AnsweringState(InMemoryObjectStore())
    state.set_node_id(local_grid.TaskIdentity.node_id)  # without it no message can be made
    asked = Message(RecordDict(), 5, "train")
    asked.metadata.__dict__.update(_message_id="1" * 64, _run_id=7, _src_node_id=1)
    state.store_message(asked)
    assert len(state.get_messages_legacy(is_reply=False)) == 1
    task = state.create_task(TaskType.CLIENT_APP, 7, fab_hash="f")
    state.claim_task(task)
    if has_answered:
        reply = Message(RecordDict(), reply_to=asked)
        reply.metadata.__dict__["_message_id"] = "2" * 64
        state.store_message(reply)
    assert state.finish_task(task, SubStatus.FAILED, "its message could not be read")
    (told,) = state.get_messages_legacy(is_reply=True)
    assert told.metadata.reply_to_message_id == asked.metadata.message_id
    assert told.has_error() == (not has_answered)


@pytest.fixture
def started(tmp_path):
    """Starts commands in the background; they end with the test."""
    processes = []

    def start(name, *words):
        quiet = {"FLWR_HOME": str(tmp_path / "flwr"), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with (tmp_path / f"{name}.log").open("ab") as log:
            processes.append(
                subprocess.Popen(
                    [str(word) for word in words],
                    env={**os.environ, **quiet, "PATH": path},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return processes[-1]

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def free_ports(number):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.mark.slow
def test_a_node_ends_with_exit_code_8_when_its_superlink_fails_or_stops_and_connects_again(started, tmp_path):
    """A real SuperLink: first its database is locked, then the whole process is stopped; after each it goes on."""
    port, own = free_ports(2)
    database, log = tmp_path / "superlink.db", tmp_path / "node.log"
    address = ("--insecure", "--host", "127.0.0.1", "--port")
    superlink = started("superlink", "fedpcs", "superlink", *address, port, "--database", database)
    node = ("node", "fedpcs", "node", "--patience", "1", *address, own, "--superlink", f"127.0.0.1:{port}")

    def connects():
        before = log.read_text().count("SuperNode ID") if log.exists() else 0
        process, until = started(*node), time.monotonic() + 120.0
        while log.read_text().count("SuperNode ID") == before:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.5)
        return process

    process = connects()
    with contextlib.closing(sqlite3.connect(database, timeout=30.0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert process.wait(timeout=100.0) == SuperLinkLost.exit_code == 8
        other.execute("ROLLBACK")
    assert "of no use any more" in log.read_text()

    process = connects()
    os.kill(superlink.pid, signal.SIGSTOP)
    assert process.wait(timeout=180.0) == SuperLinkLost.exit_code
    assert "the SuperLink was not heard for 60 s. Start it again." in log.read_text()
    os.kill(superlink.pid, signal.SIGCONT)
    assert connects().poll() is None
