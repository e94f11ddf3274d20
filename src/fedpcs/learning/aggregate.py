"""The weighted sum of updates, in client order and in float64, so that neither engine nor workers change it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpcs._threads import in_threads
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning._kernels import add_four, move
from fedpcs.learning.layout import Values

# Columns summed at a time: few enough to stay in the processor's cache, so many that threads seldom wait for Python.
_BLOCK = 2**15
# Squares summed in float32 before float64 takes over.
_SHORT = 2**13


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
    if len({update.shape for update in updates}) > 1:
        raise InvalidInput(f"updates must be of one shape, got {sorted({update.shape for update in updates})}.")
    total = np.zeros(updates[0].size)
    # In fours, the last of them filled up with nothing.
    num_missing = -len(updates) % 4
    rows = [*updates, *[np.zeros_like(updates[0])] * num_missing]
    factors = np.append(np.asarray(weights, dtype=np.float64), np.zeros(num_missing))

    def add(first: int, last: int) -> None:
        for start in range(first * _BLOCK, last * _BLOCK, _BLOCK):
            part = slice(start, start + _BLOCK)
            for k in range(0, len(rows), 4):
                one, two, three, four = (row[part] for row in rows[k : k + 4])
                add_four(total[part], one, two, three, four, factors[k : k + 4])

    in_threads(add, -(-total.size // _BLOCK), smallest_chunk=6)
    return total


def distances(updates: Sequence[Values], weights: FloatArray, lengths: FloatArray) -> FloatArray:
    """Return (clients,) how far each update over its length is from the weighted mean of all of them.

    Args:
        updates: One (parameters,) float32 array for each client.
        weights: (clients,) of the mean, relative to one another.
        lengths: (clients,) η·(local steps), for distances of pseudo-gradients; ones, for those of updates.

    Example:
        >>> updates = [np.array([2.0, 0.0], np.float32), np.array([0.0, 0.0], np.float32)]
        >>> distances(updates, np.array([1.0, 3.0]), np.array([0.5, 1.0])).tolist()
        [3.0, 1.0]
    """
    middle = weighted_sum(updates, weights / weights.sum() / lengths)
    pairs = zip(updates, lengths, strict=True)
    return np.array([l2_norm(np.divide(update, length, dtype=np.float64) - middle) for update, length in pairs])


def step(parameters: Values, direction: FloatArray, rate: float = 1.0) -> Values:
    """Return w − rate·direction in float32.

    Example:
        >>> step(np.array([1.0], np.float32), np.array([0.25])).tolist()
        [0.75]
    """
    moved = np.empty_like(parameters)

    def work(first: int, last: int) -> None:
        part = slice(first * _BLOCK, last * _BLOCK)
        move(moved[part], parameters[part], direction[part], rate)

    in_threads(work, -(-moved.size // _BLOCK), smallest_chunk=6)
    return moved


def l2_norm(values: Values | FloatArray) -> float:
    """Return the norm of a flat array; not finite if and only if some number in it is not.

    Example:
        >>> l2_norm(np.array([3.0, 4.0], np.float32))
        5.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # einsum, not dot: BLAS would split a long one over threads, which changes the last bits.
        whole = values.size - values.size % _SHORT
        rows, rest = values[:whole].reshape(-1, _SHORT), values[whole:]
        square = float(np.einsum("ij,ij->i", rows, rows).sum(dtype=np.float64) + np.einsum("i,i->", rest, rest))
    if math.isfinite(square):
        return math.sqrt(square)
    # In float64 the squares of finite float32 numbers cannot overflow.
    return float(np.sqrt(np.sum(np.square(values, dtype=np.float64))))


@dataclass(frozen=True)
class StepParts:
    """Norms of an aggregate's parts, before momentum and the server's rate.

    Client i's update is u_i = μ + a deviation of mean square δ² + noise of power p_i, and the aggregate is Σ w_i u_i,
    with Σ w_i = 1. Then E Σ w_i‖u_i − Σ w_j u_j‖² = Σ w_i (1 − w_i)(δ² + p_i), and the left side is
    Σ w_i‖u_i‖² − ‖Σ w_i u_i‖², which needs no second look at the updates. What is left of the aggregate's squared norm
    when both kinds of error are taken out is that of μ. All three are estimates from one round, cut off at zero.

    Attributes:
        signal: Of μ, what all clients have in common.
        spread: Root mean square of what is due to clients differing: the error of the draw.
        noise: Root mean square of what is due to noise.
    """

    signal: float
    spread: float
    noise: float


def step_parts(norms: FloatArray, noise_power: FloatArray, weights: FloatArray, direction_norm: float) -> StepParts:
    """Take an aggregate apart.

    Args:
        norms: (heard,) ‖u_i‖, noise included.
        noise_power: (heard,) p_i.
        weights: (heard,) w_i; their sum may be other than one.
        direction_norm: ‖Σ w_i u_i‖.

    Example:
        >>> import numpy as np
        >>> step_parts(np.array([5.0, 5.0]), np.array([9.0, 9.0]), np.array([0.5, 0.5]), np.sqrt(20.5))
        StepParts(signal=4.0, spread=0.0, noise=2.1213203435596424)
    """
    total = float(weights.sum())
    if total <= 0.0:
        return StepParts(0.0, 0.0, 0.0)
    share = weights / total
    apart = float(share @ norms**2) - (direction_norm / total) ** 2
    inner = share * (1.0 - share)
    whole = float(inner.sum())
    δ2 = max((apart - float(inner @ noise_power)) / whole, 0.0) if whole > 0.0 else 0.0
    noise, spread = float(weights**2 @ noise_power), float(δ2 * (weights**2).sum())
    return StepParts(math.sqrt(max(direction_norm**2 - noise - spread, 0.0)), math.sqrt(spread), math.sqrt(noise))
