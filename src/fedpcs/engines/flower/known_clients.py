"""Clients of a Flower app that is not ours: numbered when they are first seen, with what each reported last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.engines.flower import reported
from fedpcs.engines.flower.reported import Reported
from fedpcs.sampling.feedback import filled
from fedpcs.sampling.view import Memory


class KnownClients:
    """Every client that was ever connected; it keeps its number.

    Attributes:
        nodes: Flower's id of each, by number.
        reported: What each reported last, by field; empty before it is heard.
        num_drawn: (clients,) how often each was drawn.
        num_heard: (clients,) how often each was heard.
    """

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.reported: list[Reported] = []
        self.num_drawn, self.num_heard = np.zeros(0), np.zeros(0)

    def add(self, nodes: Sequence[int], reports: Mapping[int, Reported]) -> None:
        """Number nodes that are new: by the metric `partition-id` of those that report it, then in their order."""
        ordered = sorted(nodes, key=lambda node: reports.get(node, {}).get("partition-id", math.inf))
        self.nodes += ordered
        self.reported += [reports.get(node, {}) for node in ordered]
        none = np.zeros(len(ordered))
        self.num_drawn, self.num_heard = np.append(self.num_drawn, none), np.append(self.num_heard, none)

    def report(self, client: int, reported: Reported) -> None:
        """Keep what a client reports; what it leaves out stays as it was."""
        self.reported[client] = {**self.reported[client], **reported}

    def count(self, drawn: Sequence[int], heard: Sequence[int]) -> None:
        """Count a round."""
        self.num_drawn[drawn] += 1.0
        self.num_heard[heard] += 1.0

    def column(self, field: str) -> FloatArray:
        """Return (clients,) what each reported of a field; NaN where it reported nothing."""
        return reported.column(self.reported, field)

    def budgets(self, is_spent: NDArray[np.bool_]) -> FloatArray:
        """Return (clients,) budgets; those not heard yet, and those spent, are taken for the mean of the others."""
        return filled(np.where(is_spent, np.nan, self.column("budget")))

    def sizes_and_noise(self) -> dict[str, Any]:
        """Return what a view of a round needs of all; those not heard yet are taken for the mean of the others."""
        return {
            "num_samples": filled(self.column("num_samples")),
            "noise_power": filled(self.column("noise_power"), otherwise=0.0),
        }


def grown(memory: Memory, fresh: Memory, num_clients: int) -> Memory:
    """Return a sampler's memory for more clients: those it knows keep their entries, the others start afresh."""
    grown = {}
    for name, value in fresh.items():
        known = memory.get(name, value)
        grown[name] = np.append(known, value[known.size :]) if value.shape == (num_clients,) else known
    return grown
