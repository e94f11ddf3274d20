"""Processes as tests look at them from outside: whether they run, what came from them, and waits until it is so."""

import time
from collections.abc import Callable
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def descendants(pid: int) -> list[int]:
    """Return the processes that come from this one."""
    children = [child for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return [one for child in map(int, children) for one in (child, *descendants(child))]


def wait_until(holds: Callable[[], bool], seconds: float = 10.0, what: Callable[[], object] = str) -> None:
    """Wait until something holds; fail, and say what is, if it does not within these seconds."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"after {seconds:g} s: {what()}"
        time.sleep(0.02)
