"""The weighted sum of updates, in client order and in float64, so that neither engine nor workers change it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import Values, as_tensor

# Columns summed at a time: the running sum stays in the processor's cache while every client is added to it.
_BLOCK = 2**15


def weighted_sum(updates: Sequence[Values], weights: FloatArray) -> FloatArray:
    """Return Σ w_i u_i, added in the order given.

    Args:
        updates: One (parameters,) float32 array for each client.
        weights: (clients,).

    Example:
        >>> updates = [np.array([1.0, 2.0], np.float32), np.array([3.0, 0.0], np.float32)]
        >>> weighted_sum(updates, np.array([0.5, 1.0])).tolist()
        [3.5, 1.0]
    """
    if len(updates) != len(weights) or not updates:
        raise InvalidInput(f"updates and weights must pair up, got {len(updates)} and {len(weights)}.")
    rows = [as_tensor(update) for update in updates]
    total = torch.zeros(rows[0].numel(), dtype=torch.float64)
    for start in range(0, total.numel(), _BLOCK):
        block = total[start : start + _BLOCK]
        for row, weight in zip(rows, weights, strict=True):
            block.add_(row[start : start + _BLOCK], alpha=float(weight))
    found: FloatArray = total.numpy()
    return found


def step(parameters: Values, direction: FloatArray, rate: float = 1.0) -> Values:
    """Return w − rate·direction in float32.

    Example:
        >>> step(np.array([1.0], np.float32), np.array([0.25])).tolist()
        [0.75]
    """
    return (parameters - rate * direction).astype(np.float32)
