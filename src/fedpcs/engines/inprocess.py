"""All clients in this process, one after another: the engine to debug with, and the twin the others must equal."""

from __future__ import annotations

import importlib
import math
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import numpy as np
import torch

from fedpcs._validate import FloatArray
from fedpcs.engines.base import Score, chunks, total_score
from fedpcs.engines.failures import Deadline, failure_of
from fedpcs.errors import WrongDevice
from fedpcs.learning.client import ClientSide, Question
from fedpcs.learning.device import no_mistaken_device, one_thread
from fedpcs.learning.layout import Values, as_tensor
from fedpcs.learning.protocol import ClientReport, Reply, Task


class InProcessEngine:
    """Plays every client here, on one thread each.

    Args:
        side: The clients.
        deadline_seconds: How long one client may take. Kept only in the main thread of a POSIX system, and against code
            that returns to Python now and then; worker processes keep it against anything.
    """

    name = "in-process"

    def __init__(self, side: ClientSide, deadline_seconds: float = 600.0) -> None:
        self._side = side
        self._deadline_seconds = deadline_seconds
        if side.plan.has_noisy_steps:  # a deadline in the midst of an import would leave half a module behind
            importlib.import_module("fedpcs.engines.record_warm_up")

    def run(self, parameters: Values, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Yield a reply for every task, in their order."""
        model = as_tensor(parameters)
        for task in tasks:
            yield self._answer(task, model)

    def _answer(self, task: Task, model: torch.Tensor) -> Reply:
        try:
            with one_thread(), _at_most(self._deadline_seconds), no_mistaken_device():
                # A copy of the model for each: what one client does to it, the next must not see.
                report: ClientReport = self._side.answer(task, model.clone(), torch.empty_like(model))
                return report
        except WrongDevice:  # it would strike every client
            raise
        except (Exception, SystemExit) as error:  # whatever a client's model or data do, the round goes on
            return failure_of(task, error)

    def ask(self, parameters: Values, question: Question, tasks: Sequence[Task]) -> FloatArray:
        """Return every client's answer to a question; NaN from one that fails."""
        model = as_tensor(parameters)
        return np.array([self._ask(question, task, model) for task in tasks])

    def _ask(self, question: Question, task: Task, model: torch.Tensor) -> float:
        try:
            with one_thread(), _at_most(self._deadline_seconds), no_mistaken_device():
                return self._side.ask(question, task, model)
        except WrongDevice:
            raise
        except (Exception, SystemExit):  # it does not answer; what it would have said of itself cannot be made up
            return math.nan

    def score(self, parameters: Values) -> Score:
        """Evaluate a model on the test records."""
        num_tests = self._side.data.num_tests
        with one_thread(), no_mistaken_device():
            model = as_tensor(parameters)
            return total_score([self._side.score(*piece, model) for piece in chunks(num_tests)], num_tests)

    def close(self) -> None:
        """Nothing to let go of."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `Deadline` in the block if it takes longer. The timer runs on a clock that never jumps."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def expire(_: int, __: FrameType | None) -> None:
        raise Deadline(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
