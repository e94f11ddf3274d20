"""What an engine is: it carries tasks to clients, and reports or failures back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from fedpcs._validate import FloatArray
from fedpcs.learning.client import Question
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import Reply, Task

# Test records scored at a time: fixed, so that sums do not depend on the number of workers.
SCORE_CHUNK = 500


@dataclass(frozen=True)
class Score:
    """How good a model is on the server's test records.

    Attributes:
        accuracy: Share it gets right.
        loss: Mean cross-entropy.
    """

    accuracy: float
    loss: float


class Engine(Protocol):
    """Runs clients. A failed client is a value; an engine raises only when it cannot go on at all.

    A report's values may lie in memory the engine uses again for the next call of `run`.
    """

    @property
    def name(self) -> str:
        """As reports print it."""

    def run(self, parameters: Values, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Yield a reply for every task, in the order they come in."""

    def ask(self, parameters: Values, question: Question, tasks: Sequence[Task]) -> FloatArray:
        """Return every client's answer to a question, in the order of the tasks; NaN from one that fails."""

    def score(self, parameters: Values) -> Score:
        """Evaluate a model on the test records."""

    def close(self) -> None:
        """Let go of processes and memory."""


def chunks(num_tests: int) -> list[tuple[int, int]]:
    """Return the fixed pieces in which test records are scored.

    Example:
        >>> chunks(1200)
        [(0, 500), (500, 1000), (1000, 1200)]
    """
    return [(start, min(start + SCORE_CHUNK, num_tests)) for start in range(0, num_tests, SCORE_CHUNK)]


def total_score(parts: Sequence[tuple[int, float]], num_tests: int) -> Score:
    """Add up pieces, in their order."""
    return Score(sum(right for right, _ in parts) / num_tests, sum(loss for _, loss in parts) / num_tests)
