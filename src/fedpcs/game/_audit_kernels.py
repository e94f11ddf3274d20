"""Compiled kernels of the certificate: an upper bound on what a client could earn, and a path that shows what it can.

They share no more with the solver's than a bisection and a stack: other nodes, another search, another reading.

Notation (see `fedpcs.game.payoffs`): ρ budget, φ crowd's mean, α retention, ψ aversion, P chance of selection.

    V_t(ρ) = P(ρR − ψρ²) + max_y { V_{t+1}(y) − P(1−ψ)((y−φ)/(ρ−φ))² },   y between φ and ρ.

V_t(ρ) is the most that a plan of retentions α_t … α_{T−1} earns from ρ. What one plan earns is smooth in ρ, and its
second derivative is at least −B_t, with

    B_t = b_t + max B_{t+1},   b_t = |P''| max(n, 0) + 2P' max(2ψρ − R, 0) + 2ψP,   n = ρR − ψρ²:

a step turns ρ into φ + α(ρ − φ) with α ≤ 1, so what comes later bends no more in ρ than in y. The greatest of such
functions lies below its chord plus B/2 (ρ − left)(right − ρ). For K < 2, P'' has no bound near ρ = Nφ; its integral
over a cell does, and a kink of mass D lifts a function above its chord by at most D (ρ − left)(right − ρ)/width.

So values at the nodes of round t + 1, read in this way, bound V_{t+1} everywhere, and the best y against that reading,
a parabola in each cell, gives a bound in round t. It holds to rounding error however coarse the nodes are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.game._kernels import cell_of, compiled, push

# Rewards, mean budgets, cohort sizes; N; whether the draw favours larger budgets.
Announced = tuple[FloatArray, FloatArray, FloatArray, float, bool]
# Depth of the stack that halves a grid: nodes would have to number 2^64 to fill it.
_DEPTH = 64
# A client's first nodes: even ones, and halving steps on either side of each place that matters.
_EVEN = 17
_STEPS = 8


@compiled
def chance(rho: float, phi: float, cohort: float, clients: float, aware: bool) -> float:
    """Return P, the chance of being drawn at budget rho when the crowd's mean is phi."""
    if not aware:
        return cohort / clients
    share = rho / (clients * phi)
    if share >= 1.0:
        return 1.0
    return -math.expm1(cohort * math.log1p(-share))


@compiled
def _rise(rho: float, total: float, cohort: float) -> float:
    """Return P', the slope of the chance of a draw that favours budgets, where budgets add up to `total`."""
    return cohort / total * (1.0 - rho / total) ** (cohort - 1.0) if rho < total else 0.0


@compiled
def _curvature(
    left: float, right: float, dislike: float, reward: float, phi: float, cohort: float, clients: float, aware: bool
) -> tuple[float, float]:
    """Return (b, D) for a cell: a bound on minus the second derivative of a round's pay, and the mass of its kinks."""
    bend = 2.0 * dislike * chance(right, phi, cohort, clients, aware)
    total = clients * phi
    if not aware or left >= total:
        return bend, 0.0
    rise = _rise(left, total, cohort)
    bend += 2.0 * rise * max(0.0, 2.0 * dislike * right - reward)
    top = min(max(0.5 * reward / dislike, left), right)
    net = max(0.0, top * (reward - dislike * top))
    if cohort < 2.0:
        return bend, net * (rise - _rise(right, total, cohort))
    fall = cohort * (cohort - 1.0) / (total * total) * (1.0 - left / total) ** (cohort - 2.0)
    return bend + fall * net, 0.0


@compiled
def _best_onward(
    nodes: FloatArray,
    value: FloatArray,
    bend: FloatArray,
    rho: float,
    own: int,
    phi: float,
    home: int,
    cost: float,
    first: int,
    last: int,
) -> tuple[float, float, int]:
    """Return (α, bound, cell): the best retention, with the next budget in cells [first, last].

    `cost` is P(1−ψ); `own` and `home` are the cells of rho and phi. The search is over α, not over the next budget:
    where rho and phi differ by their last digits alone, a budget rounded by one of them would seem to cost all of it.
    """
    gap = rho - phi
    low, high = min(rho, phi), max(rho, phi)
    best_alpha, best, best_k = 0.0, -np.inf, home
    for k in range(max(min(own, home), first), min(max(own, home), last) + 1):
        a, b = nodes[k], nodes[k + 1]
        slope, c = (value[k + 1] - value[k]) / (b - a), 0.5 * bend[k]
        begin, end = min(max(a, low), b), max(min(b, high), a)
        alpha = 0.0
        if gap != 0.0:
            least, most = (begin - phi) / gap, (end - phi) / gap
            if gap < 0.0:
                least, most = most, least
            # gap·(slope + c(a + b − 2(φ + α·gap))) − 2·cost·α = 0
            rise, weight = gap * (slope + c * (a + b - 2.0 * phi)), 2.0 * (c * gap * gap + cost)
            if weight > 0.0:
                alpha = rise / weight
            elif rise > 0.0:
                alpha = most
            alpha = min(max(alpha, least), most)
        y = phi + alpha * gap
        f = value[k] + slope * (y - a) + c * (y - a) * (b - y) - cost * alpha * alpha
        if f > best:
            best_alpha, best, best_k = alpha, f, k
    return best_alpha, best, best_k


@compiled
def bound(
    nodes: FloatArray,
    count: NDArray[np.int64],
    dislike: float,
    terms: Announced,
    value: FloatArray,
    bend: FloatArray,
) -> None:
    """Fill value[t, i], a bound on V_t at nodes[t, i], and bend[t, k] of the cells, backward in time.

    nodes[t, :count[t]] rise and reach from the lowest to the highest budget that can be had in round t. The best next
    budget rises with the present one, since a distance costs less the further one is from the mean: each node's search
    is bounded by its neighbours'.
    """
    reward, mean, cohort, clients, aware = terms
    last_round = reward.size - 1
    pending = np.empty((_DEPTH, 4), dtype=np.int64)
    kink = np.zeros((2, nodes.shape[1]))
    later = 0.0
    for t in range(last_round, -1, -1):
        phi = mean[t]
        home = cell_of(nodes[t + 1], count[t + 1], phi) if t < last_round else 0
        for k in range(count[t] - 1):
            bend[t, k], kink[t % 2, k] = _curvature(
                nodes[t, k], nodes[t, k + 1], dislike, reward[t], phi, cohort[t], clients, aware
            )
        if t < last_round:
            _add_later_bends(nodes, count, t, phi, home, bend)
            later = _add_kinks(nodes[t + 1], count[t + 1], kink[(t + 1) % 2], later, bend[t + 1])
        if t == last_round:
            for i in range(count[t]):
                rho = nodes[t, i]
                value[t, i] = chance(rho, phi, cohort[t], clients, aware) * rho * (reward[t] - dislike * rho)
            continue
        size = count[t + 1]
        push(pending, 0, 0, count[t] - 1, 0, size - 2)
        depth = 1
        while depth > 0:
            depth -= 1
            low, high, first, last = pending[depth, 0], pending[depth, 1], pending[depth, 2], pending[depth, 3]
            i = (low + high) >> 1
            rho = nodes[t, i]
            p = chance(rho, phi, cohort[t], clients, aware)
            own = cell_of(nodes[t + 1], size, rho)
            _, onward, chosen = _best_onward(
                nodes[t + 1], value[t + 1], bend[t + 1], rho, own, phi, home, p * (1.0 - dislike), first, last
            )
            value[t, i] = p * rho * (reward[t] - dislike * rho) + onward
            if low < i:
                push(pending, depth, low, i - 1, first, chosen)
                depth += 1
            if i < high:
                push(pending, depth, i + 1, high, chosen, last)
                depth += 1
    _add_kinks(nodes[0], count[0], kink[0], later, bend[0])


@compiled
def _add_kinks(nodes: FloatArray, count: int, kink: FloatArray, later: float, bend: FloatArray) -> float:
    """Turn the mass of a cell's kinks, and of later rounds', into the bend that lifts a chord as much; add it up."""
    mass = later
    for k in range(count - 1):
        bend[k] += 2.0 * (kink[k] + later) / (nodes[k + 1] - nodes[k])
        mass += kink[k]
    return mass


@compiled
def _add_later_bends(
    nodes: FloatArray, count: NDArray[np.int64], t: int, phi: float, home: int, bend: FloatArray
) -> None:
    """Add to bend[t, k] the greatest bend of round t + 1 between the mean and the cell, where moves from it end."""
    following, size = nodes[t + 1], count[t + 1]
    own = cell_of(nodes[t], count[t], phi)  # moves from here may end on both sides of the mean
    above, reached = bend[t + 1, home], home
    at_mean = above
    for k in range(own, count[t] - 1):
        while reached < size - 2 and following[reached + 1] < nodes[t, k + 1]:
            reached += 1
            above = max(above, bend[t + 1, reached])
        if k == own:
            at_mean = above
        else:
            bend[t, k] += above
    below, reached = bend[t + 1, home], home
    for k in range(min(own, count[t] - 2), -1, -1):
        while reached > 0 and following[reached] > nodes[t, k]:
            reached -= 1
            below = max(below, bend[t + 1, reached])
        bend[t, k] += max(below, at_mean) if k == own else below


@compiled
def follow(
    nodes: FloatArray,
    count: NDArray[np.int64],
    value: FloatArray,
    bend: FloatArray,
    start: float,
    dislike: float,
    terms: Announced,
    path: FloatArray,
) -> float:
    """Fill path[t] with the budgets that look best against the bound, and return what they really earn."""
    reward, mean, cohort, clients, aware = terms
    last_round = reward.size - 1
    rho, earned = start, 0.0
    for t in range(last_round + 1):
        path[t] = rho
        phi = mean[t]
        p = chance(rho, phi, cohort[t], clients, aware)
        earned += p * rho * (reward[t] - dislike * rho)
        if t < last_round and rho != phi:
            size, cost = count[t + 1], p * (1.0 - dislike)
            home, own = cell_of(nodes[t + 1], size, phi), cell_of(nodes[t + 1], size, rho)
            alpha = _best_onward(nodes[t + 1], value[t + 1], bend[t + 1], rho, own, phi, home, cost, 0, size - 2)[0]
            earned -= cost * alpha * alpha
            rho = phi + alpha * (rho - phi)
    return earned


@compiled
def _insert(nodes: FloatArray, count: int, point: float) -> int:
    """Put a point among rising nodes if there is room and it is none of them; return how many there are now."""
    if count >= nodes.size or not nodes[0] < point < nodes[count - 1]:
        return count
    k = cell_of(nodes, count, point)
    if point == nodes[k]:
        return count
    for j in range(count, k + 1, -1):
        nodes[j] = nodes[j - 1]
    nodes[k + 1] = point
    return count + 1


@compiled
def _crowd_around(nodes: FloatArray, count: int, centre: float, steps: int) -> int:
    """Add nodes in halving steps on both sides of a point, where cells are wider than such steps."""
    width = nodes[count - 1] - nodes[0]
    count = _insert(nodes, count, centre)
    step = width
    for _ in range(steps):
        step *= 0.5
        for side in (-1.0, 1.0):
            point = centre + side * step
            if nodes[0] < point < nodes[count - 1]:
                k = cell_of(nodes, count, point)
                if nodes[k + 1] - nodes[k] > step:
                    count = _insert(nodes, count, point)
    return count


@compiled
def _first_nodes(
    nodes: FloatArray, count: NDArray[np.int64], path: FloatArray, mean: FloatArray, clients: float
) -> None:
    """Lay one client's nodes: even ones over what it can reach, more around its own path and the crowd's mean."""
    low = high = path[0]
    nodes[0, 0], count[0] = path[0], 1
    for t in range(1, mean.size):
        low, high = min(low, mean[t - 1]), max(high, mean[t - 1])
        high = max(high, low * (1.0 + 1e-9))
        for j in range(_EVEN - 1):
            nodes[t, j] = low + (high - low) * j / (_EVEN - 1)
        nodes[t, _EVEN - 1] = high  # to the last digit: whoever can have it must find it, in later rounds too
        n = _crowd_around(nodes[t], _EVEN, path[t], _STEPS)
        n = _crowd_around(nodes[t], n, mean[t - 1], _STEPS)
        n = _crowd_around(nodes[t], n, mean[t], _STEPS)
        n = _insert(nodes[t], n, path[0])
        count[t] = _insert(nodes[t], n, clients * mean[t])


@compiled
def examine(
    paths: FloatArray,
    aversion: FloatArray,
    members: NDArray[np.int64],
    terms: Announced,
    limits: tuple[float, int, int],
    shown: FloatArray,
    at_most: FloatArray,
    first: int,
    last: int,
) -> None:
    """Raise shown[i] and lower at_most[i] for the clients members[first:last], each on nodes of its own.

    shown[i] is what a path is known to earn, at_most[i] what none can exceed. Nodes are added around the path that
    looks best until the two differ by at most `slack`.
    """
    slack, most_passes, most_nodes = limits
    mean, clients = terms[1], terms[3]
    rounds = mean.size
    nodes, path = np.empty((rounds, most_nodes)), np.empty(rounds)
    value, bend = np.empty((rounds, most_nodes)), np.empty((rounds, most_nodes))
    count = np.empty(rounds, dtype=np.int64)
    for m in range(first, last):
        i = members[m]
        _first_nodes(nodes, count, paths[:, i], mean, clients)
        for attempt in range(most_passes):
            bound(nodes, count, aversion[i], terms, value, bend)
            at_most[i] = min(at_most[i], value[0, 0])
            start = paths[0, i]
            found = follow(nodes, count, value, bend, start, aversion[i], terms, path)
            shown[i] = max(shown[i], found)
            if at_most[i] - shown[i] <= slack:
                break
            for t in range(1, rounds):
                count[t] = _crowd_around(nodes[t], count[t], path[t], _STEPS + 2 * attempt)


@compiled
def examine_together(
    nodes: FloatArray,
    count: NDArray[np.int64],
    rows: FloatArray,
    start: FloatArray,
    aversion: FloatArray,
    members: NDArray[np.int64],
    terms: Announced,
    slack: float,
    shown: FloatArray,
    at_most: FloatArray,
    first: int,
    last: int,
) -> None:
    """Raise shown and lower at_most for all clients with aversions from rows[first] to rows[last], on shared nodes.

    A plan's pay is linear in ψ, so the best is convex in it: the straight line between the bounds at two rows is a
    bound too. members[j] are the clients in the order of their ψ.
    """
    rounds, width = nodes.shape
    value, bend = np.empty((2, rounds, width)), np.empty((2, rounds, width))
    path = np.empty(rounds)
    j = 0
    while j < members.size and aversion[members[j]] < rows[first]:
        j += 1
    for r in range(first, last):
        below, above = r % 2, (r + 1) % 2
        if r == first:
            bound(nodes, count, rows[r], terms, value[below], bend[below])
        bound(nodes, count, rows[r + 1], terms, value[above], bend[above])
        while j < members.size and (aversion[members[j]] < rows[r + 1] or r == rows.size - 2):
            i = members[j]
            j += 1
            w = (aversion[i] - rows[r]) / (rows[r + 1] - rows[r])
            k = cell_of(nodes[0], count[0], start[i])
            a, b = nodes[0, k], nodes[0, k + 1]
            u = (start[i] - a) / (b - a)
            both = 0.0
            for side, weight in ((below, 1.0 - w), (above, w)):
                chord = (1.0 - u) * value[side, 0, k] + u * value[side, 0, k + 1]
                both += weight * (chord + 0.5 * bend[side, 0, k] * (start[i] - a) * (b - start[i]))
            at_most[i] = min(at_most[i], both)
            if at_most[i] - shown[i] > slack:
                near = below if w < 0.5 else above
                bounds, bends = value[near], bend[near]
                found = follow(nodes, count, bounds, bends, start[i], aversion[i], terms, path)
                shown[i] = max(shown[i], found)
