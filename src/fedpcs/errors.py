"""Errors that users meet: each says what is wrong, and carries an exit code for the command line.

Every message has three parts: which value is wrong, what would be allowed, what to do about it.
"""

from __future__ import annotations


class FedpcsError(Exception):
    """Anything fedpcs refuses to do. Children differ in what a caller can do about it."""

    exit_code: int = 1  # of a command that ends by this error


class InvalidInput(FedpcsError, ValueError):
    """A value from the caller, a file or the command line is not usable as it stands."""

    exit_code = 2


class InUse(InvalidInput):
    """Another process is working on what this one was to work on."""


class NotConverged(FedpcsError):
    """A solver stopped without an answer it can vouch for; `solution` is what it returns with `throw=False`."""

    exit_code = 3

    def __init__(self, message: str, solution: object = None) -> None:
        super().__init__(message)
        self.solution = solution


class Unfinished(FedpcsError):
    """Something cannot be told before other work is done."""


class BudgetExhausted(FedpcsError):
    """A release would cost `requested`, more than the `remaining` ρ of a client, so it must not happen."""

    exit_code = 4

    def __init__(self, message: str, *, remaining: float, requested: float) -> None:
        super().__init__(message)
        self.remaining = remaining
        self.requested = requested


class QuorumNotReached(FedpcsError):
    """Too few of the drawn clients were heard, however often the round was drawn again. The model is as it was."""

    exit_code = 5


class DeviceLost(QuorumNotReached):
    """Clients fail because the device they train on is gone."""


class WrongDevice(FedpcsError):
    """Code left a tensor on another device than the rest. A mistake in a program, which no other draw can mend."""


class CorruptFile(FedpcsError):
    """A file fedpcs wrote earlier can no longer be trusted: damaged, or of another make."""

    exit_code = 6


class SuperLinkLost(FedpcsError):
    """A node does not hear its SuperLink any more. Started again, it connects anew."""

    exit_code = 8


class Interrupted(FedpcsError):
    """The user or the system asked the run to stop. What was done is safe, and the run can be resumed."""

    exit_code = 130
