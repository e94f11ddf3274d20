"""Where a client's records come from: a part of a data set, or a function that makes them when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets import Dataset, normalised

Records = tuple[Tensor, Tensor]
Shape = tuple[int, ...]


class ClientData(Protocol):
    """Records of every client, and of the server's own test set."""

    @property
    def num_samples(self) -> NDArray[np.int64]:
        """(clients,) |D_i|: public."""

    @property
    def num_classes(self) -> int:
        """How many labels there are."""

    @property
    def input_shape(self) -> Shape:
        """Shape of one record."""

    @property
    def num_tests(self) -> int:
        """How many test records the server holds."""

    def records(self, client: int) -> Records:
        """Return a client's inputs and targets, ready for a model."""

    def tests(self, start: int, end: int) -> Records:
        """Return test records start…end − 1."""


@dataclass(frozen=True)
class PartitionedData:
    """A data set dealt out to clients. Records stay where they are until a client trains.

    Attributes:
        dataset: Images and labels.
        order: (records,) record numbers, client after client.
        starts: (clients + 1,) where each client's begin.
        is_own: Whether there is one client here, whatever number a server gives it.
    """

    dataset: Dataset
    order: Tensor
    starts: NDArray[np.int64]
    is_own: bool = False

    @property
    def num_samples(self) -> NDArray[np.int64]:
        """(clients,) |D_i|."""
        return np.diff(self.starts)

    @property
    def num_classes(self) -> int:
        """How many labels there are."""
        return self.dataset.num_classes

    @property
    def input_shape(self) -> Shape:
        """Shape of one record."""
        return self.dataset.input_shape

    @property
    def num_tests(self) -> int:
        """How many test records the server holds."""
        return len(self.dataset.test_targets)

    def records(self, client: int) -> Records:
        """Return a client's inputs and targets."""
        part = 0 if self.is_own else client
        chosen = self.order[self.starts[part] : self.starts[part + 1]]
        return normalised(self.dataset, self.dataset.train_inputs[chosen]), self.dataset.train_targets[chosen]

    def tests(self, start: int, end: int) -> Records:
        """Return test records start…end − 1."""
        return normalised(self.dataset, self.dataset.test_inputs[start:end]), self.dataset.test_targets[start:end]


def deal_out(dataset: Dataset, parts: Sequence[NDArray[np.int64]]) -> PartitionedData:
    """Return a data set dealt out to clients: `parts[i]` are the record numbers of client i.

    Raises:
        InvalidInput: A client has no records, or a record number is not of this data set.
    """
    sizes = np.array([len(part) for part in parts], dtype=np.int64)
    if sizes.size == 0 or not sizes.all():
        empty = int(np.argmin(sizes)) if sizes.size else 0
        raise InvalidInput(f"parts[{empty}] must hold at least one record, got none. Use fewer clients.")
    order = np.concatenate(list(parts)).astype(np.int64)
    if not (order.min() >= 0 and order.max() < len(dataset.train_targets)):
        raise InvalidInput(
            f"parts must hold record numbers in [0, {len(dataset.train_targets) - 1}], got {order.min()}…{order.max()}."
        )
    return PartitionedData(dataset, torch.from_numpy(order), np.concatenate([[0], np.cumsum(sizes)]))


def own_part(data: PartitionedData, client: int) -> PartitionedData:
    """Return one client's part alone: what that client's own machine holds, whatever number a server gives it."""
    start, end = data.starts[client : client + 2]
    return replace(data, order=data.order[start:end], starts=np.array([0, end - start]), is_own=True)


@dataclass(frozen=True)
class MadeData:
    """Records made when they are asked for, so that a population of any size takes no memory.

    Attributes:
        make: client → (inputs, targets); the same ones every time. For worker processes, a function of a module.
        num_samples: (clients,) how many records it makes for each.
        test: Inputs and targets the server evaluates on.
        num_classes: How many labels there are.
    """

    make: Callable[[int], Records]
    num_samples: NDArray[np.int64]
    test: Records
    num_classes: int

    @property
    def input_shape(self) -> Shape:
        """Shape of one record."""
        return tuple(self.test[0].shape[1:])

    @property
    def num_tests(self) -> int:
        """How many test records the server holds."""
        return len(self.test[1])

    def records(self, client: int) -> Records:
        """Return a client's inputs and targets."""
        return self.make(client)

    def tests(self, start: int, end: int) -> Records:
        """Return test records start…end − 1."""
        return self.test[0][start:end], self.test[1][start:end]


def made_data(make: Callable[[int], Records], num_samples: ArrayLike, test: Records, num_classes: int) -> MadeData:
    """Return checked `MadeData`."""
    sizes = _validate.vector("num_samples", num_samples, low=1.0).astype(np.int64)
    return MadeData(make, sizes, test, _validate.integer("num_classes", num_classes, low=2))
