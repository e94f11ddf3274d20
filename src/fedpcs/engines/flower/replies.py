"""What clients of a Flower app that is not ours reply: read one by one, and left out, logged and kept if of no use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedpcs._outside import printable
from fedpcs.engines.failures import reason_of
from fedpcs.engines.flower import reported
from fedpcs.engines.flower.known_clients import KnownClients
from fedpcs.engines.flower.named_arrays import update_of
from fedpcs.engines.flower.reported import Reported
from fedpcs.errors import InvalidInput
from fedpcs.learning.admission import outliers

_logger = logging.getLogger("flwr")  # Flower's own: one log, in order


@dataclass(frozen=True)
class Refused:
    """A reply that was left out.

    Attributes:
        server_round: As Flower counts, from one.
        phase: "query", "train" or "evaluate".
        node: Whom it is from; for a node that has died the SuperLink answers, under an id of its own.
        reason: What was expected and what came.
    """

    server_round: int
    phase: str
    node: int
    reason: str


@dataclass(frozen=True)
class Sent:
    """What a cohort was sent in a round: a model by name of array, and the same as one vector."""

    server_round: int
    clients: Sequence[int]
    arrays: Mapping[str, NDArray[Any]]
    values: NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """A reply that can be used: whose, w − w_i, its norm, what it tells, and the reply itself."""

    client: int
    update: NDArray[Any]
    norm: float
    reported: Reported
    content: RecordDict


class Replies:
    """Reads replies.

    Args:
        size_name: The metric that counts a client's records.
        metric_names: Of the other metrics, by field.
        goes_by: Fields that the sampler reads or hears.
        outlier_factor: Updates longer than this many times the round's median are left out, unless clients tell of
            noise or of budgets.

    Attributes:
        refused: Replies that were left out.
    """

    def __init__(
        self, size_name: str, metric_names: Mapping[str, str], goes_by: Collection[str], outlier_factor: float
    ) -> None:
        self._size_name, self._metric_names, self._outlier_factor = size_name, metric_names, outlier_factor
        self._wanted = {"budget", "noise_power", *goes_by}
        self.refused: list[Refused] = []

    def answers(self, sent: Sent, clients: KnownClients, replies: Iterable[Message]) -> list[Answer]:
        """Return what can be used of the replies to a round's messages, in client order."""
        found: dict[int, Answer] = {}
        number = {clients.nodes[client]: client for client in sent.clients}
        for reply, metrics in self.readable(sent.server_round, "train", replies):
            client = number.get(reply.metadata.src_node_id, -1)
            try:
                if client < 0 or client in found:
                    raise InvalidInput("it was not asked." if client < 0 else "it answers a second time.")
                update, norm = update_of(sent.arrays, sent.values, reply.content)
            except Exception as error:  # whatever came, it is no model
                self._refuse(sent.server_round, "train", reply.metadata.src_node_id, error)
            else:
                noise_power = clients.reported[client].get("noise_power", 0.0)
                found[client] = Answer(client, update, norm, {"noise_power": noise_power, **metrics}, reply.content)
        answers = [found[client] for client in sorted(found)]
        is_noisy = any("budget" in answer.reported or answer.reported["noise_power"] > 0.0 for answer in answers)
        wild = [] if is_noisy else outliers(np.array([answer.norm for answer in answers]), self._outlier_factor)
        for index in wild:
            reason = f"norm is {answers[index].norm:.4g}, more than {self._outlier_factor:g} times the median."
            self._refuse(sent.server_round, "train", clients.nodes[answers[index].client], InvalidInput(reason))
        return [answer for index, answer in enumerate(answers) if index not in wild]

    def readable(self, server_round: int, phase: str, replies: Iterable[Message]) -> list[tuple[Message, Reported]]:
        """Return the replies that tell what can be true, with what they tell."""
        found = []
        for reply in replies:
            try:
                found.append((reply, reported.read(reply, self._size_name, self._metric_names, self._wanted)))
            except Exception as error:  # whatever came, it is no answer
                self._refuse(server_round, phase, reply.metadata.src_node_id, error)
        return found

    def _refuse(self, server_round: int, phase: str, node: int, error: Exception) -> None:
        reason = printable(str(error) if isinstance(error, InvalidInput) else reason_of(error), 500)
        self.refused.append(Refused(server_round, phase, node, reason))
        _logger.warning("round %d, %s: reply of node %d is left out: %s", server_round, phase, node, reason)

    def averaged(
        self, phase: str, average: Callable[[list[RecordDict], str], MetricRecord], contents: list[RecordDict]
    ) -> MetricRecord | None:
        """Average what clients say beside their model; None if that fails."""
        try:
            return average(contents, self._size_name)
        except Exception as error:  # it is for reading: no run hangs on it
            _logger.warning("%s: metrics are not averaged: %s", phase, reason_of(error))
            return None
