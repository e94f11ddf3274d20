"""A node that does not hear its SuperLink any more ends, with a code that says so."""

import socket
import subprocess
import sys
import textwrap

import pytest

from fedpcs.engines.flower import supernode
from fedpcs.engines.flower.supernode import Watch
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


@pytest.mark.slow
def test_a_node_that_never_reaches_its_superlink_ends_with_exit_code_8():
    """A real SuperNode, with nobody at the other end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = f"""
        from fedpcs.engines.flower.supernode import run_supernode
        run_supernode(["--insecure", "--superlink", "127.0.0.1:9", "--host", "127.0.0.1", "--port", "{port}"], 3.0)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == SuperLinkLost.exit_code == 8, ended.stderr
    assert "the SuperLink was not heard for 3 s. Start it again." in ended.stderr
