"""The paper's optimal-reward lemma: each round's reward from a first-order condition, budgets held on a line.

Notation (paper, Lemma 2): Theorem 1 makes retention linear in the next reward, α^{t−1} = I R_t + J, hence
ρ^t = φ(t−1) + (I R_t + J)(ρ^{t−1} − φ(t−1)) = G R_t + H, with everything else held from the previous iterate.
R_t minimises U_t(R) = Σ π_i [γa/((t+1)ρ_i(R)) + (1−γ) R ρ_i(R)] on [0, reward_max]. Three departures from the
print, each needed to have an answer at all: retention stays in [0, 1] (else G R + H can be negative); t + 1
for t; and where U_t has no stationary point inside, the better end of the interval is taken and reported as
not interior. The initial budget does not depend on R_0, so R_0 = 0 always.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.game import costate, exact, mean_field
from fedpcs.game.payoffs import Profile, cohort_inclusion, selection_probability, server_cost
from fedpcs.game.rules import Game, RewardPlan

_ITERATIONS = 10
_SWEEPS = 5
_SCAN = 100


@dataclass(frozen=True)
class _Line:
    """How one round's budgets move with its reward: ρ(R) = mean + clip(slope·R + offset, 0, 1)·gap.

    A reward gives (types,) budgets, several give (rewards, types).
    """

    mean: float
    gap: FloatArray
    slope: FloatArray
    offset: FloatArray

    def budget(self, reward: float | FloatArray) -> FloatArray:
        kept = np.multiply.outer(reward, self.slope) + self.offset
        return np.asarray(self.mean + kept.clip(0.0, 1.0) * self.gap)

    def derivative(self, reward: float) -> FloatArray:
        kept = self.slope * reward + self.offset
        return np.where((kept > 0.0) & (kept < 1.0), self.slope * self.gap, 0.0)


def per_round(game: Game) -> RewardPlan:
    """Return the cheapest path met while rewards and equilibrium are updated in turn.

    The iteration seldom comes to rest; `is_settled` says whether it did. Where it does not, the lemma names
    no path, and the cheapest one visited stands for it.
    """
    path = np.ones(game.last_round + 1).clip(0.0, game.reward_max)
    interior = np.zeros(path.size, dtype=np.bool_)
    best, least, is_settled, mean = (path, interior), np.inf, False, None
    for iteration in range(_ITERATIONS):
        outcome = mean_field.settle(game, path, start=mean, resolution=exact.COARSE, most_sweeps=_SWEEPS)
        mean = outcome.profile.mean_budget
        cost = float(server_cost(outcome.profile.budget, path, game).sum())
        if iteration > 0 and cost < least:
            best, least = (path, interior), cost
        before = path
        path, interior = _one_iteration(game, path, outcome.profile)
        is_settled = bool(np.abs(path - before).max() <= 1e-3 * max(1.0, float(path.max())))
        if is_settled:
            break
    return RewardPlan(best[0], "per-round", is_settled, best[1], iteration + 1)


def _one_iteration(game: Game, path: FloatArray, profile: Profile) -> tuple[FloatArray, NDArray[np.bool_]]:
    rewards = np.zeros_like(path)
    interior = np.zeros(path.size, dtype=np.bool_)
    lines = _lines(game, path, profile)
    for t in range(1, path.size):
        rewards[t], interior[t] = _best_reward(game, t, profile.budget[t], lines[t - 1])
    return rewards, interior


def _lines(game: Game, path: FloatArray, profile: Profile) -> list[_Line]:
    """Return the lines of rounds 1…T. I multiplies R_t, J gathers what does not depend on it."""
    terms = game.terms(path, profile.mean_budget)
    aversion = game.population.privacy_aversion

    def stage_with(rewards: FloatArray) -> FloatArray:
        return costate.stage_derivative(profile, aversion, game.terms(rewards, profile.mean_budget), printed=False)

    at_zero = stage_with(np.zeros_like(path))  # M_i^t
    per_unit = stage_with(np.ones_like(path)) - at_zero  # Q_i^t: S is linear in the reward
    stage = at_zero + per_unit * path[:, None]
    chance = selection_probability(profile.budget, terms)
    lines: list[_Line] = []
    onward = np.zeros_like(aversion)  # α^t λ(t+1), nothing beyond the last round
    for t in range(terms.last_round, 0, -1):
        gap = profile.budget[t - 1] - profile.mean_budget[t - 1]
        factor = gap / (2.0 * (1.0 - aversion) * chance[t - 1])
        lines.append(
            _Line(float(profile.mean_budget[t - 1]), gap, factor * per_unit[t], factor * (at_zero[t] + onward))
        )
        onward = profile.retention[t - 1] * (stage[t] + onward)
    return lines[::-1]


def _best_reward(game: Game, t: int, budget: FloatArray, line: _Line) -> tuple[float, bool]:
    count = cohort_inclusion(budget, float(game.cohort_size[t]), game) * game.population.client_count
    accuracy = game.accuracy_priority * game.accuracy_scale / (t + 1)
    thrift = 1.0 - game.accuracy_priority

    def slope(reward: float) -> float:
        rho, change = line.budget(reward), line.derivative(reward)
        return float(count @ (thrift * (rho + reward * change) - accuracy * change / rho**2))

    # U_t is convex only piecewise (retention is clipped), so look everywhere before closing in.
    grid = np.concatenate(([0.0], np.geomspace(1e-4, 1.0, _SCAN) * game.reward_max))
    rho_on_grid = line.budget(grid)
    best = int(np.argmin((accuracy / rho_on_grid + thrift * grid[:, None] * rho_on_grid) @ count))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _SCAN)]
    if slope(low) < 0.0 < slope(high):
        from scipy.optimize import brentq  # a third of a second to import, for this policy alone

        root = float(brentq(slope, low, high))
        return root, 0.0 < root < game.reward_max
    return float(grid[best]), False
