"""Local training that protects each record: the loop the `record` guarantee is about.

E epochs; each goes once through all records in disjoint batches, in an order that does not depend on the data. A step
takes the mean of a batch's clipped gradients, adds noise, and moves the model. A neighbouring data set differs in one
record, hence in one batch of each epoch, and each epoch costs ρ/E; everything after a noisy step is post-processing.
So the update as a whole is ρ-zCDP for replacing one record.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.privacy.clipping import ClippedMean
from fedpcs.privacy.events import Event
from fedpcs.privacy.mechanism import RecordMechanism
from fedpcs.privacy.noise import NoiseSource
from fedpcs.privacy.per_sample import Loss, PerSampleGradient, per_sample_gradient


@dataclass(frozen=True)
class LocalPlan:
    """How a client trains.

    Attributes:
        clip_norm: C, the bound on one record's gradient.
        learning_rate: Step size.
        batch_size: b; None: all records at once, which needs the least noise.
    """

    clip_norm: float
    learning_rate: float
    batch_size: int | None = None

    def __post_init__(self) -> None:
        _validate.positive("clip_norm", self.clip_norm, remedy="Set it near the median norm of a record's gradient.")
        _validate.number("learning_rate", self.learning_rate, low=1e-30, high=1e30)
        if self.batch_size is not None:
            _validate.integer("batch_size", self.batch_size, low=1)


@dataclass(frozen=True)
class PrivateUpdate:
    """What local training releases.

    Attributes:
        value: (parameters,) w(t) − w_i, float64, read-only.
        event: What it cost, all steps together.
        noise_stddev: σ of the noise the whole update holds, learning rate included.
        signal_bound: What the update's norm would be at most without noise.
    """

    value: FloatArray
    event: Event
    noise_stddev: float
    signal_bound: float


def private_sgd(
    model: nn.Module,
    loss: Loss,
    data: tuple[Tensor, Tensor],
    *,
    plan: LocalPlan,
    mechanism: RecordMechanism,
    source: NoiseSource,
    order: np.random.Generator,
) -> PrivateUpdate:
    """Train a copy of the model on a client's records and return the noisy update.

    Args:
        model: The global model; left as it is.
        loss: (prediction of a batch of one, its target) → a scalar.
        data: Inputs and targets, records along the first axis.
        plan: Clip norm, learning rate, batch size.
        mechanism: Budget and local epochs.
        source: Where the noise comes from.
        order: Shuffles the records; public, and separate from the noise.

    Guarantees:
        The update is ρ-zCDP for replacing one record, ρ the mechanism's budget, if the source is a guarantee. The
        number of records is public.
    """
    gradient = per_sample_gradient(copy.deepcopy(model), loss, *data)
    return train_by_record(gradient, data, plan=plan, mechanism=mechanism, source=source, order=order)


def train_by_record(
    gradient: PerSampleGradient,
    data: tuple[Tensor, Tensor],
    *,
    plan: LocalPlan,
    mechanism: RecordMechanism,
    source: NoiseSource,
    order: np.random.Generator,
    watch: Callable[[FloatArray], None] | None = None,
) -> PrivateUpdate:
    """Do what `private_sgd` does, on the model inside `gradient` itself: one check serves many trainings.

    `watch` is shown every step's mean of clipped gradients before it is perturbed. What it learns is private, and no
    part of the guarantee.
    """
    trained = [value for value in gradient.model.parameters() if value.requires_grad]
    before = _flat(trained)
    variance, reach = 0.0, 0.0
    for mean in _clipped_means(gradient, data, plan, mechanism.local_epochs, order):
        if watch is not None:
            watch(mean.value)
        release = mechanism.release(mean, source)
        _move(trained, torch.tensor(release.value), plan.learning_rate)
        variance += (plan.learning_rate * release.noise_stddev) ** 2
        reach += plan.learning_rate * plan.clip_norm
    value = (before - _flat(trained)).numpy()
    value.flags.writeable = False
    return PrivateUpdate(value, mechanism.event(source), float(np.sqrt(variance)), reach)


def signal_by_record(
    gradient: PerSampleGradient,
    data: tuple[Tensor, Tensor],
    *,
    plan: LocalPlan,
    num_epochs: int,
    order: np.random.Generator,
) -> Tensor:
    """Return (parameters,) the update `train_by_record` would send if its noise were zero; float64.

    Batches are the same and gradients are clipped alike. Nothing protects it: it is not for release.
    """
    trained = [value for value in gradient.model.parameters() if value.requires_grad]
    before = _flat(trained)
    for mean in _clipped_means(gradient, data, plan, num_epochs, order):
        _move(trained, torch.tensor(mean.value), plan.learning_rate)
    return before - _flat(trained)


def _clipped_means(
    gradient: PerSampleGradient,
    data: tuple[Tensor, Tensor],
    plan: LocalPlan,
    num_epochs: int,
    order: np.random.Generator,
) -> Iterator[ClippedMean]:
    """Yield each batch's mean of clipped gradients at the model as it is then: whoever asks moves it in between."""
    inputs, targets = data
    num_seen = 0
    for records in disjoint_batches(len(inputs), plan.batch_size, num_epochs, order):
        chosen = torch.from_numpy(records).to(inputs.device)
        num_seen += len(records)
        yield gradient.clipped_mean(inputs[chosen], targets[chosen], plan.clip_norm)
    assert num_seen == num_epochs * len(inputs)  # more would cost a record more than was charged


def disjoint_batches(
    num_records: int, batch_size: int | None, num_epochs: int, order: np.random.Generator
) -> Iterator[NDArray[np.int64]]:
    """Yield every epoch's batches: disjoint, together all records, the last one maybe smaller.

    Example:
        >>> batches = list(disjoint_batches(5, 2, 1, np.random.default_rng(0)))
        >>> [len(records) for records in batches], sorted(np.concatenate(batches).tolist())
        ([2, 2, 1], [0, 1, 2, 3, 4])
    """
    _validate.integer("num_records", num_records, low=1)
    size = num_records if batch_size is None else min(_validate.integer("batch_size", batch_size, low=1), num_records)
    for _ in range(_validate.integer("num_epochs", num_epochs, low=1)):
        shuffled = order.permutation(num_records)
        for start in range(0, num_records, size):
            yield shuffled[start : start + size]


def _flat(parameters: list[nn.Parameter]) -> Tensor:
    """Return all numbers in one vector on the CPU, in the order of their indices however they lie in memory."""
    return torch.cat([value.detach().reshape(-1) for value in parameters]).cpu().double()


def _move(parameters: list[nn.Parameter], gradient: Tensor, learning_rate: float) -> None:
    """Step against a gradient in float64 on the CPU: noise is drawn there, whatever device the parameters are on."""
    with torch.no_grad():
        start = 0
        for parameter in parameters:
            part = gradient[start : start + parameter.numel()].view_as(parameter)
            parameter.sub_((learning_rate * part).to(parameter.dtype).to(parameter.device))
            start += parameter.numel()
