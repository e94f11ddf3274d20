"""Two networks for small records of any shape, such as the embedded 8×8 digits."""

from __future__ import annotations

import math

from torch import nn

_HIDDEN_UNITS = 32


def linear(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return softmax regression: one dense layer, whose loss is convex."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(input_shape), num_classes))


def small_mlp(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return one hidden layer of 32 tanh units, then the classes."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(math.prod(input_shape), _HIDDEN_UNITS),
        nn.Tanh(),
        nn.Linear(_HIDDEN_UNITS, num_classes),
    )
