"""Local training without per-sample clipping: plain minibatch SGD on cross-entropy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedpcs._validate import FloatArray
from fedpcs.learning import chain
from fedpcs.learning._kernels import add_to_spread
from fedpcs.privacy.private_training import disjoint_batches


def local_sgd(
    model: nn.Module,
    data: tuple[Tensor, Tensor],
    *,
    learning_rate: float,
    batch_size: int | None,
    num_epochs: int,
    order: np.random.Generator,
    wants_variance: bool = False,
) -> float | None:
    """Train `model` in place on a client's records: E epochs over disjoint batches, in an order drawn from `order`.

    Returns:
        The spread of the minibatch gradients around their mean, which is private; None unless wanted.
    """
    inputs, targets = data
    fused = () if wants_variance else chain.fused_layers(model)
    moved = {id(value) for layer in fused for value in layer.parameters()}
    trained: list[Tensor] = [value for value in model.parameters() if value.requires_grad and id(value) not in moved]
    spread = Spread() if wants_variance else None
    model.train()
    for records in disjoint_batches(len(inputs), batch_size, num_epochs, order):
        chosen = torch.from_numpy(records).to(inputs.device)
        scores = chain.training_pass(model, inputs[chosen], fused, learning_rate)
        loss = functional.cross_entropy(scores, targets[chosen])
        gradients = torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)
        if spread is not None:
            spread.add([gradient.reshape(-1).cpu().numpy() for gradient in gradients])
        with torch.no_grad():
            torch._foreach_add_(trained, gradients, alpha=-learning_rate)
    return None if spread is None else spread.variance()


def losses(model: nn.Module, data: tuple[Tensor, Tensor], batch_size: int = 256) -> Tensor:
    """Return (records,) the loss of every record at the model as it is, on the CPU."""
    model.eval()
    with torch.no_grad():
        return torch.cat(
            [
                functional.cross_entropy(chain.forward(model, inputs), targets, reduction="none")
                for inputs, targets in zip(*(torch.split(part, batch_size) for part in data), strict=True)
            ]
        ).cpu()


class Spread:
    """Running mean and spread of gradients (Welford), over the batches of one local training."""

    def __init__(self) -> None:
        self._count, self._squares = 0, 0.0
        self._means: list[FloatArray] = []

    def add(self, gradient: Sequence[NDArray[Any]]) -> None:
        """Count the gradient of one batch, in the same flat parts each time."""
        self._means = self._means or [np.zeros(part.size) for part in gradient]
        self._count += 1
        self._squares += sum(map(add_to_spread, self._means, gradient, [self._count] * len(gradient)))

    def variance(self) -> float | None:
        """Return the unbiased variance, all coordinates together; None of fewer than two batches."""
        return self._squares / (self._count - 1) if self._count > 1 else None
