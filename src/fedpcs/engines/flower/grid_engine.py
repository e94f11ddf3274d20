"""An engine whose clients are nodes of a Flower federation: simulated by Ray, or SuperNodes on other machines.

A reply is taken for the message it answers, by that message's id: a node that died is answered for by the SuperLink,
under an id of its own. Whatever a reply holds, it becomes a report or a failure, never an exception.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from flwr.app import Error, Message, RecordDict
from flwr.serverapp import Grid

from fedpcs._validate import FloatArray
from fedpcs.engines.base import Score
from fedpcs.engines.flower import messages
from fedpcs.engines.flower.guarded_grid import REFUSED_CODE
from fedpcs.errors import WrongDevice
from fedpcs.learning.client import Question
from fedpcs.learning.device import WRONG_DEVICE
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import ClientFailure, FailureKind, Reply, Task
from fedpcs.learning.wire import MessageRefused

# Flower's codes: 3 and 4, a message that has expired; 5, a node that is gone; 8, its process that has died.
_KINDS: dict[int, FailureKind] = {3: "deadline", 4: "deadline", 5: "died", 8: "died", REFUSED_CODE: "message"}
_LONGEST_REASON = 500


class GridEngine:
    """Carries tasks over a Flower grid.

    Args:
        grid: Of the server app.
        nodes: Gives Flower's id of each client's node, by the client's number, as of now.
        score: Evaluates a model; the server's test records are its own.
        deadline_seconds: How long to wait for the next reply; clients not heard by then have failed.
        poll_seconds: How often to look for replies.
        task_seconds: How long a node may work at one task; its client app ends itself then. None: as long as the whole
            cohort may take one after another, as clients of a simulation do.
        is_simulated: Whether clients run this program here: a tensor on the wrong device then ends the run. A client
            on a machine of its own cannot end it so.
    """

    name = "flower"

    def __init__(
        self,
        grid: Grid,
        nodes: Callable[[], Mapping[int, int]],
        score: Callable[[Values], Score],
        *,
        deadline_seconds: float = 600.0,
        poll_seconds: float = 0.05,
        task_seconds: float | None = None,
        is_simulated: bool = False,
    ) -> None:
        self._grid = grid
        self._nodes = nodes
        self._score = score
        self._deadline_seconds = deadline_seconds
        self._poll_seconds = poll_seconds
        self._task_seconds = task_seconds
        self._is_simulated = is_simulated

    def run(self, parameters: Values, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Yield a reply for every task, in the order they come in."""
        model = messages.model_record(parameters)
        contents = {index: messages.task_content(task, model) for index, task in enumerate(tasks)}
        for index, reply in self._exchange(messages.TRAIN, tasks, contents):
            task = tasks[index]
            try:
                report = messages.read_report(content_of(reply))
                if report.client != task.client:  # nobody answers, or is refused, in another's name
                    raise MessageRefused(f"report says that it is client {report.client}'s.")
                yield report
            except Exception as error:  # whatever came, it is no report
                kind, words = _failure(reply, error)
                yield ClientFailure(task.round_index, task.client, kind, words)

    def ask(self, parameters: Values, question: Question, tasks: Sequence[Task]) -> FloatArray:
        """Return every client's answer to a question, in the order of the tasks; NaN from one that fails."""
        model = messages.model_record(parameters)
        contents = {index: messages.question_content(question, task, model) for index, task in enumerate(tasks)}
        answers = np.full(len(tasks), np.nan)
        for index, reply in self._exchange(messages.QUESTION, tasks, contents):
            try:
                answers[index] = messages.read_number(content_of(reply))
            except Exception:  # it does not answer; what it would have said of itself cannot be made up
                continue
        return answers

    def score(self, parameters: Values) -> Score:
        """Evaluate a model on the server's test records."""
        return self._score(parameters)

    def close(self) -> None:
        """Nothing to let go of: the grid is Flower's."""

    def _exchange(
        self, kind: str, tasks: Sequence[Task], contents: Mapping[int, RecordDict]
    ) -> Iterator[tuple[int, Message | Error]]:
        """Yield (number of the task, what came back) until all are answered or the deadline has passed."""
        nodes = self._nodes()
        absent = [index for index, task in enumerate(tasks) if task.client not in nodes]
        for index in absent:
            yield index, Error(code=5, reason="no node of this client is connected")
        found = {index: nodes[task.client] for index, task in enumerate(tasks) if index not in absent}
        one_by_one = self._deadline_seconds * max(1, len(tasks))
        seconds = one_by_one if self._task_seconds is None else self._task_seconds
        sent = {index: Message(contents[index], node, kind, ttl=seconds) for index, node in found.items()}
        for index, reply in exchange(self._grid, sent, self._deadline_seconds, self._poll_seconds):
            if self._is_simulated:
                _raise_if_mistaken(reply)
            yield index, reply


def exchange(
    grid: Grid, sent: Mapping[int, Message], deadline_seconds: float, poll_seconds: float
) -> Iterator[tuple[int, Message | Error]]:
    """Send messages; yield (key, reply or error) for each as it comes, and an error for those that do not.

    Args:
        grid: Over which.
        sent: Messages by key.
        deadline_seconds: Longest silence: so long after the last reply, the others are given up.
        poll_seconds: How often to look.
    """
    waiting: dict[str, int] = {}
    for key, message in sent.items():
        ids = list(grid.push_messages([message]))
        if ids and ids[0]:
            waiting[ids[0]] = key
        else:
            yield key, Error(code=5, reason="its node does not take messages")
    last = time.monotonic()
    while waiting and time.monotonic() - last < deadline_seconds:
        replies = list(grid.pull_messages(list(waiting)))
        for reply in replies:
            if (answered := reply.metadata.reply_to_message_id) in waiting:
                last = time.monotonic()
                yield waiting.pop(answered), reply
        if waiting and not replies:
            time.sleep(poll_seconds)
    for key in waiting.values():
        yield key, Error(code=4, reason=f"no reply within {deadline_seconds:g} s")


def _raise_if_mistaken(reply: Message | Error) -> None:
    """Raise what a client raised, if it was `WrongDevice`: Flower gives it back as words."""
    error = _error_of(reply)
    _, is_mistaken, words = str(error.reason if error else "").rpartition(WRONG_DEVICE)
    if is_mistaken:
        raise WrongDevice(is_mistaken + words.rstrip("'>\n"))


def _error_of(reply: Message | Error) -> Error | None:
    if isinstance(reply, Error):
        return reply
    return reply.error if reply.has_error() else None


def content_of(reply: Message | Error) -> RecordDict:
    """Return what a reply holds.

    Raises:
        ConnectionError: It is an error, of the client's or on the way.
    """
    if isinstance(reply, Error):
        raise ConnectionError(reply.reason)
    if reply.has_error():
        raise ConnectionError(reply.error.reason)
    return reply.content


def _failure(reply: Message | Error, error: Exception) -> tuple[FailureKind, str]:
    """Return which kind of failure a reply stands for, and in words why."""
    failure = _error_of(reply)
    if failure is None:
        return "message", str(error)[:_LONGEST_REASON]
    words = " ".join(str(failure.reason or "its client app failed").split())
    return _KINDS.get(failure.code, "raised"), words[-_LONGEST_REASON:]
