"""Compiled kernels of the exact best response: one client's dynamic programme on its budget.

Notation (SPEC of the game, see `fedpcs.game.payoffs`): ρ budget, φ crowd's mean, α retention, ψ privacy aversion,
P probability of selection. A client at ρ moves to y = φ + α(ρ − φ), anywhere between φ and ρ:

    V_t(ρ) = P(ρR − ψρ²) + max_y { V_{t+1}(y) − P(1−ψ)((y−φ)/(ρ−φ))² },    V_T(ρ) = P(ρR − ψρ²).

V is stored with its slope at the nodes of a grid and read as a cubic Hermite spline. The slope costs nothing: by the
envelope theorem V_t' = ∂/∂ρ[P(ρR − ψρ² − (1−ψ)α²)] + α V_{t+1}'(y) at the chosen α. Between two nodes the quantity to
maximise is a cubic in y, so its maximum has a closed form and no step size is involved.

Every kernel releases the GIL and touches only its own rows, so threads give the same bits as one thread.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from fedpcs._validate import FloatArray

compiled = njit(cache=True, nogil=True, error_model="numpy")
# Closer to the crowd's mean than this share of it, a client *is* at the mean and has nothing to retain.
_AT_MEAN = 1e-12


@compiled
def cell_of(nodes: FloatArray, count: int, point: float) -> int:
    """Return k with nodes[k] ≤ point < nodes[k+1], clamped to the cells of the first `count` nodes."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if nodes[middle] <= point:
            low = middle
        else:
            high = middle
    return low


@compiled
def spline(nodes: FloatArray, value: FloatArray, slope: FloatArray, cell: int, point: float) -> tuple[float, float]:
    """Return the cubic Hermite spline and its derivative at `point` in `cell`."""
    h = nodes[cell + 1] - nodes[cell]
    u = (point - nodes[cell]) / h
    p = slope[cell] * h
    q = slope[cell + 1] * h
    d = value[cell + 1] - value[cell]
    c2 = 3.0 * d - 2.0 * p - q
    c3 = p + q - 2.0 * d
    return value[cell] + u * (p + u * (c2 + u * c3)), (p + u * (2.0 * c2 + 3.0 * u * c3)) / h


@compiled
def best_move(
    nodes: FloatArray,
    value: FloatArray,
    slope: FloatArray,
    budget: float,
    budget_cell: int,
    mean: float,
    mean_cell: int,
    keep_cost: float,
    first: int,
    last: int,
) -> tuple[float, float, int]:
    """Return (next budget, value, cell): the best y between `mean` and `budget`, searched in cells [first, last].

    Nodes are compared first; then the cubic of each cell beside the best node is maximised in closed form.
    """
    gap = budget - mean
    best_y = mean
    best_f = spline(nodes, value, slope, mean_cell, mean)[0]
    best_k = mean_cell
    if abs(gap) <= _AT_MEAN * mean:
        return best_y, best_f, best_k
    f = spline(nodes, value, slope, budget_cell, budget)[0] - keep_cost
    if f > best_f:
        best_y, best_f, best_k = budget, f, budget_cell
    price = keep_cost / (gap * gap)
    low_cell = min(mean_cell, budget_cell)
    high_cell = max(mean_cell, budget_cell)
    for k in range(max(low_cell + 1, first), min(high_cell, last) + 1):
        f = value[k] - price * (nodes[k] - mean) ** 2
        if f > best_f:
            best_y, best_f, best_k = nodes[k], f, k
    centre = best_k
    for k in range(max(low_cell, centre - 1), min(high_cell, centre + 1) + 1):
        # f(u) = value + p u + c2 u² + c3 u³ − price (y₀ − φ + u h)²; its maximum solves b1 + 2 b2 u + 3 c3 u² = 0.
        h = nodes[k + 1] - nodes[k]
        p = slope[k] * h
        q = slope[k + 1] * h
        d = value[k + 1] - value[k]
        c3 = p + q - 2.0 * d
        b1 = p - 2.0 * price * (nodes[k] - mean) * h
        if b1 <= 0.0:
            continue
        b2 = 3.0 * d - 2.0 * p - q - price * h * h
        discriminant = b2 * b2 - 3.0 * c3 * b1
        if discriminant < 0.0:
            continue
        denominator = math.sqrt(discriminant) - b2
        if not b1 < denominator:
            continue
        y = nodes[k] + b1 / denominator * h
        if not min(budget, mean) < y < max(budget, mean):
            continue
        f = spline(nodes, value, slope, k, y)[0] - price * (y - mean) ** 2
        if f > best_f:
            best_y, best_f, best_k = y, f, k
    return best_y, best_f, best_k


@compiled
def push(pending: NDArray[np.int64], depth: int, low: int, high: int, first: int, last: int) -> None:
    """Put an interval of nodes, and the cells their choices lie in, on a stack."""
    # Element by element: assigning a tuple to a row would double the time this module takes to compile.
    pending[depth, 0] = low
    pending[depth, 1] = high
    pending[depth, 2] = first
    pending[depth, 3] = last


@compiled
def fill_round(
    dislike: float,
    reward: float,
    mean: float,
    nodes: FloatArray,
    chance: FloatArray,
    chance_slope: FloatArray,
    cell: NDArray[np.int64],
    following: FloatArray,
    onward: FloatArray,
    onward_slope: FloatArray,
    is_last: bool,
    pending: NDArray[np.int64],
    value: FloatArray,
    slope: FloatArray,
) -> None:
    """Fill one aversion's value and slope of one round, given next round's: `onward` at the nodes `following`.

    The best y never falls as ρ rises (keeping costs P(1−ψ)/(ρ−φ)² per squared step, which falls away from φ on
    both sides), so the middle node's choice bounds the search of the nodes on either side: divide and conquer,
    n log n instead of n² comparisons a round.
    """
    size = nodes.size
    mean_cell = cell_of(following, size, mean)
    push(pending, 0, 0, size - 1, 0, size - 2)
    depth = 1
    while depth > 0:
        depth -= 1
        low, high, first, last = pending[depth, 0], pending[depth, 1], pending[depth, 2], pending[depth, 3]
        i = (low + high) >> 1
        rho, p, dp = nodes[i], chance[i], chance_slope[i]
        gain = rho * reward - dislike * rho * rho
        value[i] = p * gain
        slope[i] = dp * gain + p * (reward - 2.0 * dislike * rho)
        chosen = 0
        if not is_last:
            keep_cost = (1.0 - dislike) * p
            y, f, chosen = best_move(
                following, onward, onward_slope, rho, cell[i], mean, mean_cell, keep_cost, first, last
            )
            gap = rho - mean
            value[i] += f
            if abs(gap) > _AT_MEAN * mean:
                kept = (y - mean) / gap
                rise = spline(following, onward, onward_slope, chosen, y)[1]
                slope[i] += kept * rise - dp * (1.0 - dislike) * kept * kept
        # One cell of slack on either side: the choice is a node or a point inside a cell.
        if low < i:
            push(pending, depth, low, i - 1, first, min(chosen + 1, last))
            depth += 1
        if i < high:
            push(pending, depth, i + 1, high, max(chosen - 1, first), last)
            depth += 1


@compiled
def tabulate(
    aversion: FloatArray,
    nodes: FloatArray,
    reward: FloatArray,
    mean: FloatArray,
    cell: NDArray[np.int64],
    chance: FloatArray,
    chance_slope: FloatArray,
    value: FloatArray,
    slope: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Fill value[t, m] and slope[t, m] for the aversions in [first_row, last_row), backward in time.

    cell[t, i] is where node i lies among next round's nodes; chance[t, i] and chance_slope[t, i] are P and dP/dρ there.
    None of them depends on ψ, so they come ready.
    """
    last_round = reward.size - 1
    pending = np.empty((64, 4), np.int64)  # intervals of nodes still to do, and the cells their choices lie in
    for m in range(first_row, last_row):
        for t in range(last_round, -1, -1):
            onward = min(t + 1, last_round)
            fill_round(
                aversion[m],
                reward[t],
                mean[t],
                nodes[t],
                chance[t],
                chance_slope[t],
                cell[t],
                nodes[onward],
                value[onward, m],
                slope[onward, m],
                t == last_round,
                pending,
                value[t, m],
                slope[t, m],
            )


@compiled
def advance(
    row: NDArray[np.int64],
    fraction: FloatArray,
    nodes: FloatArray,
    value: FloatArray,
    slope: FloatArray,
    budget: FloatArray,
    keep_cost: FloatArray,
    mean: float,
    following: FloatArray,
    retention: FloatArray,
    first_client: int,
    last_client: int,
) -> None:
    """Move clients [first_client, last_client) one round on, given next round's table of values.

    Client i reads row[i] of the table, blended with the next row by fraction[i].
    """
    size = nodes.size
    blend_value, blend_slope = np.empty(size), np.empty(size)
    mean_cell = cell_of(nodes, size, mean)
    for i in range(first_client, last_client):
        w = fraction[i]
        lower = row[i]
        upper = lower + 1 if w > 0.0 else lower
        for k in range(size):
            blend_value[k] = (1.0 - w) * value[lower, k] + w * value[upper, k]
            blend_slope[k] = (1.0 - w) * slope[lower, k] + w * slope[upper, k]
        here = cell_of(nodes, size, budget[i])
        y = best_move(nodes, blend_value, blend_slope, budget[i], here, mean, mean_cell, keep_cost[i], 0, size - 2)[0]
        gap = budget[i] - mean
        retention[i] = 0.0 if abs(gap) <= _AT_MEAN * mean else (y - mean) / gap
        following[i] = y
