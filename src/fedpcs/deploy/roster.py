"""Who takes part in a deployment: fixed before its first round, checked before it is saved, read after a crash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedpcs._files import NEW_RUN, write_json
from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.game.population import MOST_SAMPLES
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import Record, read_record

# Sums of sizes, and of steps, are whole numbers that a float holds exactly.
_MOST_STEPS = 2**53
_MOST_MEDIANS = 100


@dataclass(frozen=True)
class Roster:
    """The clients of a run, in the order of their numbers.

    Attributes:
        num_samples_of: How many records each says it has, by name.
        nodes: The node each had when the run began, by name.
        max_samples: The most that are believed.
    """

    num_samples_of: Mapping[str, int]
    nodes: Mapping[str, int]
    max_samples: int

    @property
    def num_samples(self) -> NDArray[np.int64]:
        """(clients,) how many records each counts with, and trains on."""
        return np.array([min(size, self.max_samples) for size in self.num_samples_of.values()], dtype=np.int64)

    def capped(self) -> list[str]:
        """Return a sentence for each client that says it has more than are believed."""
        return [
            f"{printable(name)} says it has {size:,} records and takes part with {self.max_samples:,}, the most that "
            "are believed. If it is right, start a new run with a higher federation.max_samples."
            for name, size in self.num_samples_of.items()
            if size > self.max_samples
        ]


class _Client(Record):
    name: str
    num_samples: int = Field(ge=1, le=MOST_SAMPLES)
    node: int


class _Saved(Record):
    max_samples: int = Field(ge=1, le=_MOST_MEDIANS * MOST_SAMPLES)
    clients: list[_Client] = Field(min_length=1)


def roster_of(path: Path, config: RunConfig, connected: Callable[[], Sequence[Mapping[str, Any]]]) -> Roster:
    """Return the clients of a run: as saved, or those that are connected now, checked and then saved.

    Args:
        path: Of `roster.json`.
        config: The run.
        connected: Gives name, num_samples and node of connected clients, in the order of names.

    Raises:
        InvalidInput: Clients say they hold more records than a run can count.
        CorruptFile: The file is damaged.
    """
    if path.exists():
        return _read(path)
    clients = [dict(one) for one in connected()[: config.data.num_clients]]
    cap = size_cap([one["num_samples"] for one in clients], config.federation.max_samples)
    total = sum(min(one["num_samples"], cap) for one in clients) * config.training.local_epochs
    if total > _MOST_STEPS:
        raise InvalidInput(
            f"clients say they hold records for {total:,} steps of a round; at most {_MOST_STEPS:,} can be counted. "
            "Set federation.max_samples to what a client can hold."
        )
    write_json(path, {"max_samples": cap, "clients": clients})
    return _read(path)


def _read(path: Path) -> Roster:
    found = read_record(_Saved, path)
    num_samples_of = {one.name: one.num_samples for one in found.clients}
    if len(num_samples_of) < len(found.clients):
        raise CorruptFile(f"{path}: names a client twice. {NEW_RUN}")
    return Roster(num_samples_of, {one.name: one.node for one in found.clients}, found.max_samples)


def size_cap(sizes: Sequence[int], configured: int | None = None) -> int:
    """Return the most records a client is believed to have; nobody can check what clients say.

    Sizes decide what an update weighs, how many steps a client may have taken and how little noise it may have added.

    Args:
        sizes: What clients say, whole numbers of at least 1.
        configured: What whoever runs the federation says; None: 100 times the median.

    Example:
        >>> size_cap([600, 500, 2_000_000_000]), size_cap([600, 2_000_000_000]), size_cap([1, 1, 70], 50)
        (60000, 60000, 50)
    """
    if configured is not None:
        return configured
    # The lower median: of two clients one must not set the measure for the other.
    return _MOST_MEDIANS * sorted(sizes)[(len(sizes) - 1) // 2]
