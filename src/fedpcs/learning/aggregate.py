"""The weighted sum of updates, in client order and in float64, so that neither engine nor workers change it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fedpcs._threads import in_threads
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import Values

# Columns summed at a time: the rows of one block fit the processor's cache.
_BLOCK = 2**13


def weighted_sum(updates: Sequence[Values], weights: FloatArray) -> FloatArray:
    """Return Σ w_i u_i, summed column by column over the clients in the order given.

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
    total = np.empty(updates[0].size)
    num_blocks = -(-total.size // _BLOCK)

    def add(first: int, last: int) -> None:
        rows = np.empty((len(updates), _BLOCK))
        for start in range(first * _BLOCK, min(last * _BLOCK, total.size), _BLOCK):
            block = rows[:, : min(_BLOCK, total.size - start)]
            for row, update in zip(block, updates, strict=True):
                row[:] = update[start : start + _BLOCK]
            np.dot(weights, block, out=total[start : start + _BLOCK])

    in_threads(add, num_blocks, smallest_chunk=16)
    return total


def step(parameters: Values, direction: FloatArray, rate: float = 1.0) -> Values:
    """Return w − rate·direction in float32.

    Example:
        >>> step(np.array([1.0], np.float32), np.array([0.25])).tolist()
        [0.75]
    """
    moved = np.multiply(direction, -rate)
    moved += parameters
    return moved.astype(np.float32)


def l2_norm(values: Values | FloatArray) -> float:
    """Return the norm of a flat array; not finite if and only if some number in it is not.

    Example:
        >>> l2_norm(np.array([3.0, 4.0], np.float32))
        5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Blocks too short for BLAS to split over threads, which would change the last bits.
        square = sum(float(np.dot(block, block)) for block in np.split(values, range(_BLOCK, values.size, _BLOCK)))
    if math.isfinite(square):
        return math.sqrt(square)
    # In float64 the squares of finite float32 numbers cannot overflow.
    return float(np.sqrt(np.sum(np.square(values, dtype=np.float64))))
