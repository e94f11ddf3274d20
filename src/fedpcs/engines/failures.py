"""From what went wrong in a client to the value that says so."""

from __future__ import annotations

from fedpcs.learning.protocol import ClientFailure, FailureKind, Task

_LONGEST_REASON = 500


class Deadline(Exception):
    """A client took longer than it may."""


def failure_of(task: Task, error: BaseException) -> ClientFailure:
    """Return the failure an exception in a client stands for."""
    return ClientFailure(task.round_index, task.client, kind_of(error), reason_of(error))


def kind_of(error: BaseException) -> FailureKind:
    """Return which kind of failure an exception is."""
    if isinstance(error, Deadline):
        return "deadline"
    if isinstance(error, MemoryError) or "alloc" in str(error).lower():
        return "memory"
    if isinstance(error, SystemExit):
        return "died"
    if "CUDA" in str(error):
        return "device"
    return "raised"


def reason_of(error: BaseException) -> str:
    """Return an exception in one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}"[:_LONGEST_REASON]
