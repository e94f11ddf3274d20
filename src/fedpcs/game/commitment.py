"""The Stackelberg leader: announce the whole reward path that costs least once clients have answered it.

Every candidate path is judged by the clients' mean-field equilibrium under it. The cost has small steps, because single
clients change their minds, so gradients mislead; the search compares values only. It starts from the best
constant reward and tries bumps: raise or lower the path around one round, with bumps as wide as the run first and a single round wide
last, keeping what helps and shrinking what does not (a compass search on hat functions). It ends where no bump of
any width helps, which is also how the answer is checked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize_scalar

from fedpcs._validate import FloatArray
from fedpcs.game import exact, mean_field
from fedpcs.game.mean_field import ResponseMode
from fedpcs.game.payoffs import server_cost
from fedpcs.game.per_round import per_round
from fedpcs.game.reward_plan import RewardPlan
from fedpcs.game.rules import Game

_CONSTANTS = 24
_SWEEPS = 8


@dataclass
class _Judge:
    """Costs of reward paths, each under its own equilibrium; remembers the last mean field as a warm start."""

    game: Game
    response: ResponseMode
    resolution: exact.Resolution
    mean: FloatArray | None = None
    calls: int = field(default=0)

    def cost(self, path: FloatArray) -> float:
        outcome = mean_field.settle(
            self.game,
            path,
            self.response,
            start=self.mean,
            resolution=self.resolution,
            most_sweeps=_SWEEPS,
        )
        self.calls += 1
        self.mean = outcome.profile.mean_budget
        return float(server_cost(outcome.profile.budget, path, self.game).sum())


def commit(game: Game, *, response: ResponseMode = "exact") -> RewardPlan:
    """Return the reward path in [0, reward_max]^{T+1} that minimises the server's total cost.

    Solves: min_R Σ_t U_t(R, equilibrium(R)), to a local optimum under hat-shaped bumps of every width, at least as
    good as the best constant and the per-round policy.
    """
    rough = _Judge(game, response, exact.COARSE)
    constant, cost = best_constant(rough)
    path = np.full(game.last_round + 1, constant)
    lemma = per_round(game, response=response)
    if rough.cost(lemma.path) < cost:
        path = lemma.path
    for width in _widths(path.size):
        path = _compass(rough, path, width)
    fine = _Judge(game, response, exact.Resolution())
    candidates = [path, np.full(path.size, constant), lemma.path]
    costs = [fine.cost(candidate) for candidate in candidates]
    return RewardPlan(
        candidates[int(np.argmin(costs))], "commitment", True, None, rough.calls + fine.calls + lemma.evaluations
    )


def best_constant(judge: _Judge) -> tuple[float, float]:
    """Return the cheapest constant reward and its cost."""
    size = judge.game.last_round + 1
    grid = np.concatenate(([0.0], np.geomspace(1e-3, 1.0, _CONSTANTS) * judge.game.reward_max))
    costs = [judge.cost(np.full(size, reward)) for reward in grid]
    best = int(np.argmin(costs))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _CONSTANTS)]
    found = minimize_scalar(
        lambda reward: judge.cost(np.full(size, reward)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-3 * (high - low)},
    )
    if found.fun < costs[best]:
        return float(found.x), float(found.fun)
    return float(grid[best]), float(costs[best])


def _widths(rounds: int) -> list[int]:
    widths = [rounds]
    while widths[-1] > 2:
        widths.append((widths[-1] + 1) // 2)
    return [*widths, 1]


def bump(rounds: int, centre: int, width: int) -> FloatArray:
    """Return a hat of height one around `centre` that reaches zero `width` rounds away."""
    return np.maximum(0.0, 1.0 - np.abs(np.arange(rounds) - centre) / width)


def _compass(judge: _Judge, path: FloatArray, width: int) -> FloatArray:
    cost = judge.cost(path)
    step = 0.25
    while step >= 0.05:
        improved = False
        for centre in range(0, path.size + width - 1, width):
            for sign in (1.0, -1.0):
                size = sign * step * max(float(path.mean()), 0.02 * judge.game.reward_max)
                trial = (path + size * bump(path.size, min(centre, path.size - 1), width)).clip(
                    0.0, judge.game.reward_max
                )
                trial_cost = judge.cost(trial)
                if trial_cost < cost * (1.0 - 1e-5):
                    path, cost, improved = trial, trial_cost, True
                    break
        if not improved:
            step *= 0.5
    return path
