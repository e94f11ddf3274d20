"""An independent judge of profiles: brackets what every client could earn at best, with no code of the solver's.

Written from the definitions alone. With x = min(1, ρ/(Nφ)) and P = 1 − (1 − x)^K (P = K/N when the draw ignores
budgets), a client that starts at ρ⁰ chooses α in [0, 1], moves by ρ' = (1 − α)φ + αρ, and earns
Σ_t P (ρR − ψρ² − (1 − ψ)α²), with α = 0 in the last round.

**Lower bound.** A dynamic programme on nodes of the client's own: on and around its own path and every φ, evenly and
geometrically over all it can reach. It moves from node to node, so its path can be played. That path, and the one the
upper bound follows, are then improved on ever finer grids around themselves, turned into retentions, and played. What
counts is what they really earn: no interpolation enters.

**Upper bound.** For fixed retentions the utility from round t on is smooth in ρ, and its second derivative is at
least −c_t, where c_t adds up the worst −∂²/∂ρ² of each later round over all budgets in reach (budgets later depend on
ρ with a slope of at most 1). The best utility is a maximum of such functions, so between nodes at a distance h it
lies at most c_t h²/8 above the straight line. The programme that reads straight lines plus this allowance, and
maximises exactly within each cell, bounds the best utility from above. With K = 1 the chance has a kink at ρ = Nφ,
c_t does not exist where that is in reach, and the bound is infinite.

Exploitability is Σ weight · gain ÷ Σ weight · |best utility|, as `Certificate.relative` says. `Judgement` brackets it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numba import njit

_CHUNK = 50


@dataclass(frozen=True)
class Effort:
    """How hard the judge tries: nodes of each kind, and passes that add nodes where the best paths went."""

    even: int = 48
    spread: int = 48
    cluster: int = 18
    passes: int = 1
    polish: int = 12

    def doubled(self) -> Effort:
        """Return about four times the work."""
        return Effort(2 * self.even, 2 * self.spread, 2 * self.cluster, self.passes + 1, self.polish + 6)


@dataclass(frozen=True)
class Judgement:
    """What clients could gain, bracketed.

    Attributes:
        earned: (types,) what the profile's retentions earn against its own mean budgets.
        lower: (types,) utility of a plan that can be played and is no worse than the profile's.
        upper: (types,) no plan earns more; infinite where no bound is known.
        weight: (types,) share of the clients.
    """

    earned: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    weight: np.ndarray

    @property
    def at_least(self) -> float:
        """Relative exploitability is at least this."""
        return _ratio(self.weight, self.lower - self.earned, np.maximum(abs(self.lower), abs(self.upper)))

    @property
    def at_most(self) -> float:
        """Relative exploitability is at most this."""
        same_sign = (self.lower > 0.0) == (self.upper > 0.0)
        least = np.where(same_sign, np.minimum(abs(self.lower), abs(self.upper)), 0.0)
        return _ratio(self.weight, self.upper - self.earned, least)

    @property
    def found(self) -> float:
        """Relative exploitability as it would be if the plans found were the best: the judge's best guess."""
        return _ratio(self.weight, self.lower - self.earned, abs(self.lower))

    @property
    def share_gaining(self) -> float:
        """Share of clients that gain more than 1 % of their own best utility."""
        return float(self.weight @ (self.lower - self.earned > 0.01 * abs(self.lower)))


def _ratio(weight, gain, size):
    total, scale = float(weight @ np.maximum(gain, 0.0)), float(weight @ size)
    if math.isinf(scale):
        return math.inf if math.isinf(total) else 0.0
    return total / scale if scale > 0.0 else (math.inf if total > 0.0 else 0.0)


def judge(profile, reward, game, *, effort=None, clients=None):
    """Return the `Judgement` of a profile, or of some of its clients.

    Args:
        profile: Budgets and retentions; only budgets[0], retentions and the mean of the budgets are used.
        reward: (rounds,) announced rewards.
        game: Population, cohort sizes and selection are read.
        effort: How many nodes and passes.
        clients: Indices to judge; all if absent.
    """
    effort = effort or Effort()
    population = game.population
    mean = profile.budget @ population.weight
    kept = np.arange(population.num_types) if clients is None else np.asarray(clients)
    player = Players(
        population.privacy_aversion[kept],
        population.initial_budget[kept],
        np.asarray(reward, dtype=float),
        mean,
        np.asarray(game.cohort_size, dtype=float),
        float(game.num_clients),
        game.selection == "budget-aware",
    )
    retention = np.ascontiguousarray(profile.retention[:, kept])
    earned, path = player.earn(retention)
    parts = [
        bracket(player.some(slice(a, a + _CHUNK)), path[:, a : a + _CHUNK], effort) for a in range(0, kept.size, _CHUNK)
    ]
    lower, upper = (np.concatenate([part[k] for part in parts]) for k in range(2))
    lower = np.maximum(lower, earned)
    weight = population.weight[kept] / population.weight[kept].sum()
    return Judgement(earned, lower, np.maximum(upper, lower), weight)


@dataclass(frozen=True)
class Players:
    """Some clients and what they face."""

    aversion: np.ndarray
    start: np.ndarray
    reward: np.ndarray
    mean: np.ndarray
    cohort: np.ndarray
    clients: float
    aware: bool

    def some(self, kept):
        """Return these clients alone."""
        return Players(self.aversion[kept], self.start[kept], *self.facing)

    @property
    def facing(self):
        """What all of them face alike."""
        return self.reward, self.mean, self.cohort, self.clients, self.aware

    def chance(self, t, budget):
        """Return P in round t."""
        if not self.aware:
            return np.full_like(budget, self.cohort[t] / self.clients)
        share = np.minimum(1.0, budget / (self.clients * self.mean[t]))
        with np.errstate(divide="ignore"):
            return -np.expm1(self.cohort[t] * np.log1p(-share))

    def earn(self, retention):
        """Play (rounds, clients) retentions from the start; return utilities and the budgets played."""
        budget, total = self.start.copy(), np.zeros_like(self.start)
        path = np.empty_like(retention)
        for t in range(self.reward.size):
            path[t] = budget
            kept = retention[t] if t + 1 < self.reward.size else 0.0
            net = budget * self.reward[t] - self.aversion * budget**2 - (1.0 - self.aversion) * kept**2
            total += self.chance(t, budget) * net
            budget = self.mean[t] + kept * (budget - self.mean[t])
        return total, path

    def retention(self, path):
        """Return the retentions that lead along a path of budgets."""
        result = np.zeros_like(path)
        for t in range(self.reward.size - 1):
            gap = path[t] - self.mean[t]
            moved = path[t + 1] - self.mean[t]
            result[t] = np.divide(moved, gap, out=np.zeros_like(gap), where=gap != 0.0).clip(0.0, 1.0)
        return result

    def reach(self):
        """Return the lowest and the highest budget each client can ever have."""
        return np.minimum(self.start, self.mean.min()), np.maximum(self.start, self.mean.max())

    def dip(self):
        """Return c_t, (rounds, clients): −∂²/∂ρ² of the utility from round t on is nowhere larger."""
        low, high = self.reach()
        stage = np.zeros((self.reward.size, self.start.size))
        for t, cohort in enumerate(self.cohort):
            if not self.aware:
                stage[t] = 2.0 * self.aversion * cohort / self.clients
                continue
            total = self.clients * self.mean[t]
            if cohort < 2.0:  # the kink: P = min(1, x)
                stage[t] = np.where(high >= total, np.inf, 0.0)
            edges = low + (high - low) * np.linspace(0.0, 1.0, 25)[:, None] ** 2
            for a, b in pairwise(edges):
                stage[t] = np.maximum(stage[t], self._stage_dip(t, a, b, cohort, total))
        return stage[::-1].cumsum(axis=0)[::-1]

    def _stage_dip(self, t, a, b, cohort, total):
        """Bound |P''|(ρR − ψρ²) − 2P'(R − 2ψρ) + 2ψP for ρ in [a, b]: P rises, P' and |P''| fall."""
        at_a, at_b = (np.maximum(0.0, 1.0 - end / total) for end in (a, b))
        bend = cohort * (cohort - 1.0) / total**2 * at_a ** max(0.0, cohort - 2.0)
        peak = np.clip(self.reward[t] / (2.0 * self.aversion), a, b)
        pay = np.maximum(0.0, self.reward[t] * peak - self.aversion * peak**2)
        excess = 2.0 * self.aversion * b - self.reward[t]
        slope = cohort / total * np.where(excess > 0.0, at_a, at_b) ** (cohort - 1.0)
        return bend * pay + 2.0 * slope * excess + 2.0 * self.aversion * self.chance(t, b)


def bracket(player, own, effort):
    """Return the lower and the upper bound of some clients' best utility."""
    dip = np.ascontiguousarray(player.dip().T)
    extra, upper = [own], np.full(player.start.size, np.inf)
    best, lower = own, np.full(player.start.size, -np.inf)
    for turn in range(effort.passes):
        nodes = _nodes(player, extra, effort, 0.1 * 0.03**turn)
        low_path, high_path, bound = _sweep(nodes, dip, player)
        upper = np.minimum(upper, bound)
        for path in (low_path, high_path):
            improved, earned = _polish(player, path, effort.polish)
            best = np.where(earned > lower, improved, best)
            lower = np.maximum(earned, lower)
        extra = [own, best, high_path]
    return lower, upper


def _nodes(player, paths, effort, width):
    """Return (clients, rounds, nodes) nodes, rising.

    Every φ and every budget of the first path are nodes of every round, so that whoever gets there can stay.
    """
    low, high = (end[:, None] for end in player.reach())
    span = high - low
    even = low + span * np.linspace(0.0, 1.0, effort.even)
    spread = np.clip(low * (high / low) ** np.linspace(0.0, 1.0, effort.spread), low, high)
    toward = np.geomspace(1e-6, 0.7, effort.cluster)
    near = np.concatenate((-np.geomspace(1e-3, 1.0, 6)[::-1], [0.0], np.geomspace(1e-3, 1.0, 6))) * width
    anchors = np.broadcast_to(np.unique(player.mean), (low.size, np.unique(player.mean).size))
    rounds = []
    for t in range(player.reward.size):
        parts = [even, spread, anchors, paths[0].T]
        for mean in (player.mean[t], player.mean[max(t - 1, 0)]):
            centre = np.full_like(low, mean)
            parts += [centre + (high - centre) * toward, centre - (centre - low) * toward]
        for path in paths:
            here = path[t][:, None]
            parts.append(np.clip(here + np.minimum(span, here) * near, low, high))
            parts.append(np.broadcast_to(path[t][:, None], low.shape))
        rounds.append(np.sort(np.concatenate(parts, axis=1), axis=1))
    return np.stack(rounds, axis=1)


def _sweep(nodes, dip, player):
    clients, rounds, _ = nodes.shape
    low_path, high_path = np.empty((clients, rounds)), np.empty((clients, rounds))
    bound = np.empty(clients)
    _programme(nodes, dip, player.aversion, player.start, *player.facing, low_path, high_path, bound)
    return low_path.T.copy(), high_path.T.copy(), bound


def _polish(player, path, turns):
    """Improve paths on ever finer grids around themselves; return them and what they really earn."""
    low, high = player.reach()
    offsets = np.arange(-4, 5)
    no_dip = np.zeros((player.start.size, player.reward.size))
    before = np.vstack((path[:1] * 0.0 + player.mean[0], np.broadcast_to(player.mean[:-1, None], path[1:].shape)))
    earned = player.earn(player.retention(path))[0]
    for turn in range(turns):
        step = 0.02 * np.minimum(high - low, np.maximum(path.mean(axis=0), 1e-12)) * 0.5**turn
        around = path[:, :, None] + step[None, :, None] * offsets
        around = np.concatenate((np.clip(around, low[:, None], high[:, None]), before[:, :, None]), axis=2)
        nodes = np.ascontiguousarray(np.sort(around, axis=2).transpose(1, 0, 2))
        trial = _sweep(nodes, no_dip, player)[0]
        reached = player.earn(player.retention(trial))[0]
        path = np.where(reached > earned, trial, path)
        earned = np.maximum(earned, reached)
    return path, earned


@njit(cache=True, error_model="numpy")
def _chance(rho, phi, cohort, clients, aware):
    if not aware:
        return cohort / clients
    share = rho / (clients * phi)
    return 1.0 if share >= 1.0 else -math.expm1(cohort * math.log1p(-share))


@njit(cache=True, error_model="numpy")
def _first_at(nodes, point):
    low, high = 0, nodes.size - 1
    while low < high:
        middle = (low + high) // 2
        if nodes[middle] < point:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, error_model="numpy")
def _programme(grids, dips, aversions, starts, reward, mean, cohort, clients, aware, low_path, high_path, bound):
    """Fill the best node-to-node path, the path the upper bound follows, and that bound, for each client.

    V_t(ρ) = P(ρR − ψρ²) + max_y {V_{t+1}(y) − P(1−ψ)((y−φ)/(ρ−φ))²}, y from φ to ρ. `lower` tries nodes y;
    `upper` takes the maximum of line + allowance − quadratic over every cell.
    """
    count, rounds, size = grids.shape
    lower, upper = np.empty((rounds, size)), np.empty((rounds, size))
    move, goal = np.zeros((rounds, size), np.int64), np.zeros((rounds, size))
    for c in range(count):
        grid, psi, start = grids[c], aversions[c], starts[c]
        origin = _first_at(grid[0], start)
        for t in range(rounds - 1, -1, -1):
            first, last = (0, size) if t > 0 else (origin, origin + 1)
            home = _first_at(grid[t + 1], mean[t]) if t + 1 < rounds else 0
            for i in range(first, last):
                rho = grid[t, i] if t > 0 else start
                p = _chance(rho, mean[t], cohort[t], clients, aware)
                stage = p * (rho * reward[t] - psi * rho * rho)
                if t == rounds - 1:
                    lower[t, i] = stage
                    upper[t, i] = stage
                    continue
                if i > first and rho == grid[t, i - 1]:
                    lower[t, i], upper[t, i] = lower[t, i - 1], upper[t, i - 1]
                    move[t, i], goal[t, i] = move[t, i - 1], goal[t, i - 1]
                    continue
                following = grid[t + 1]
                best, choice = lower[t + 1, home], home
                most, target = upper[t + 1, home], mean[t]
                gap = rho - mean[t]
                step = 1 if gap > 0.0 else -1
                price = p * (1.0 - psi) / (gap * gap) if gap != 0.0 else 0.0
                k = home
                while gap != 0.0 and 0 <= k + step < size:
                    a, b = following[k], following[k + step]
                    inside = (b - rho) * step <= 0.0
                    width = abs(b - a)
                    va, vb = upper[t + 1, k], upper[t + 1, k + step]
                    allowance = dips[c, t + 1] * width * width * 0.125
                    if width > 0.0 and max(va, vb) + allowance - price * (a - mean[t]) ** 2 > most:
                        slope = (vb - va) / (b - a)
                        far = b if inside else rho
                        y = mean[t] + slope / (2.0 * price)
                        y = min(max(y, min(a, far)), max(a, far))
                        f = va + slope * (y - a) + allowance - price * (y - mean[t]) ** 2
                        if f > most:
                            most, target = f, y
                    if not inside:
                        break
                    k += step
                    f = lower[t + 1, k] - price * (b - mean[t]) ** 2
                    if f > best:
                        best, choice = f, k
                lower[t, i] = stage + best
                upper[t, i] = stage + most
                move[t, i] = choice
                goal[t, i] = target
        bound[c] = upper[0, origin]
        i, j = origin, origin
        low_path[c, 0] = start
        high_path[c, 0] = start
        for t in range(rounds - 1):
            i = move[t, i]
            low_path[c, t + 1] = grid[t + 1, i]
            high_path[c, t + 1] = goal[t, j]
            j = _first_at(grid[t + 1], goal[t, j])
            if j > 0 and grid[t + 1, j] - high_path[c, t + 1] > high_path[c, t + 1] - grid[t + 1, j - 1]:
                j -= 1
