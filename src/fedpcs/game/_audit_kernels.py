"""Compiled kernels of the certificate. They share no code with the solver's: different grid, different search.

The checker moves only from node to node. Its nodes hold every announced mean φ(t) and the client's own path, so every
path it weighs up can really be played, "follow the crowd" and "do as you do now" included: what it reports as a
gain is a gain, with no interpolation in between. Missing the best path by at most half a cell costs O(h²).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from fedpcs._validate import FloatArray


@njit(cache=True, nogil=True, error_model="numpy")
def _chance(rho: float, phi: float, cohort: float, clients: float, aware: bool) -> float:
    if not aware:
        return cohort / clients
    share = rho / (clients * phi)
    if share >= 1.0:
        return 1.0
    return -math.expm1(cohort * math.log1p(-share))


@njit(cache=True, nogil=True, error_model="numpy")
def _index(nodes: FloatArray, point: float) -> int:
    """Return the first index at which nodes reach `point`."""
    low, high = 0, nodes.size
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True, error_model="numpy")
def _onward(
    nodes: FloatArray, value: FloatArray, home: int, rho: float, phi: float, dislike: float, chance: float
) -> float:
    """Return the best of: join the mean at node `home`, or go to any node between it and rho."""
    best = float(value[home])
    gap = rho - phi
    if gap == 0.0:
        return best
    price = (1.0 - dislike) * chance / (gap * gap)
    if gap > 0.0:
        k = home
        while k < nodes.size and nodes[k] <= rho:
            best = max(best, float(value[k] - price * (nodes[k] - phi) ** 2))
            k += 1
    else:
        k = home
        while k >= 0 and nodes[k] >= rho:
            best = max(best, float(value[k] - price * (nodes[k] - phi) ** 2))
            k -= 1
    return best


@njit(cache=True, nogil=True, error_model="numpy")
def value_on_nodes(
    value: FloatArray,
    nodes: FloatArray,
    dislike: float,
    reward: FloatArray,
    mean: FloatArray,
    cohort: FloatArray,
    clients: float,
    aware: bool,
    first_round: int,
) -> None:
    """Fill value[i] with the best utility from `first_round` on at node i."""
    last = reward.size - 1
    before = np.empty(nodes.size)
    for i in range(nodes.size):
        p = _chance(nodes[i], mean[last], cohort[last], clients, aware)
        value[i] = p * (nodes[i] * reward[last] - dislike * nodes[i] ** 2)
    for t in range(last - 1, first_round - 1, -1):
        home = _index(nodes, mean[t])
        for i in range(nodes.size):
            p = _chance(nodes[i], mean[t], cohort[t], clients, aware)
            stage = p * (nodes[i] * reward[t] - dislike * nodes[i] ** 2)
            before[i] = stage + _onward(nodes, value, home, nodes[i], mean[t], dislike, p)
        for i in range(nodes.size):
            value[i] = before[i]


@njit(cache=True, nogil=True, error_model="numpy")
def best_utility(
    nodes: FloatArray,
    start: FloatArray,
    aversion: FloatArray,
    reward: FloatArray,
    mean: FloatArray,
    cohort: FloatArray,
    clients: float,
    aware: bool,
    result: FloatArray,
    first: int,
    last: int,
) -> None:
    """Fill result[i] with client i's best utility from start[i] on its own grid nodes[i]."""
    value = np.empty(nodes.shape[1])
    for i in range(first, last):
        value_on_nodes(value, nodes[i], aversion[i], reward, mean, cohort, clients, aware, 0)
        result[i] = value[_index(nodes[i], start[i])]


@njit(cache=True, nogil=True, error_model="numpy")
def best_first_move(
    nodes: FloatArray,
    rows: FloatArray,
    table: FloatArray,
    start: FloatArray,
    aversion: FloatArray,
    reward: float,
    mean: float,
    cohort: float,
    clients: float,
    aware: bool,
    result: FloatArray,
    first: int,
    last: int,
) -> None:
    """Fill result[i] from next round's values on (rows, nodes), blended linearly between two aversions."""
    home = _index(nodes, mean)
    for i in range(first, last):
        r = min(max(_index(rows, aversion[i]) - 1, 0), rows.size - 2)
        w = (aversion[i] - rows[r]) / (rows[r + 1] - rows[r])
        p = _chance(start[i], mean, cohort, clients, aware)
        low = _onward(nodes, table[r], home, start[i], mean, aversion[i], p)
        high = _onward(nodes, table[r + 1], home, start[i], mean, aversion[i], p)
        # To stay where one starts is a move too, though the start is no node: read its value between two.
        k = min(max(_index(nodes, start[i]) - 1, 0), nodes.size - 2)
        u = (start[i] - nodes[k]) / (nodes[k + 1] - nodes[k]) if nodes[k + 1] > nodes[k] else 0.0
        keep_cost = (1.0 - aversion[i]) * p
        low = max(low, (1.0 - u) * table[r, k] + u * table[r, k + 1] - keep_cost)
        high = max(high, (1.0 - u) * table[r + 1, k] + u * table[r + 1, k + 1] - keep_cost)
        result[i] = p * (start[i] * reward - aversion[i] * start[i] ** 2) + (1.0 - w) * low + w * high
