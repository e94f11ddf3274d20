"""Child processes end with whoever started them, however it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

STARTER = """
import multiprocessing, time
from starter_child import wait

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.Process(target=wait).start()
    time.sleep(60)
"""
CHILD = """
import os, time
from fedpcs._processes import end_with_parent, end_with_starter

def wait():
    end_with_parent()
    end_with_starter()
    print(os.getpid(), flush=True)
    time.sleep(60)
"""


def is_running(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_fork_server_has_forked_ends_when_its_starter_is_killed(tmp_path):
    (tmp_path / "starter_child.py").write_text(CHILD)
    (tmp_path / "starter.py").write_text(STARTER)
    with subprocess.Popen([sys.executable, tmp_path / "starter.py"], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        os.kill(starter.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20.0
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)
