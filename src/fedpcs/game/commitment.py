"""The Stackelberg leader: announce the whole reward path that costs least once clients have answered it.

Every candidate path is judged by the clients' mean-field equilibrium under it. Two facts shape the search. R_0 buys
nothing: initial budgets are given and no later choice depends on it, so R_0 = 0. And the cost has small steps, because
single clients change their minds, so gradients mislead and the search compares values only: a compass search on the
path's values at a few knots, close together at both ends of the run (where the first rewards set the level and the
last ones stop paying off) and joined by straight lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from fedpcs._validate import FloatArray
from fedpcs.game import exact, mean_field
from fedpcs.game.payoffs import server_cost
from fedpcs.game.per_round import per_round
from fedpcs.game.population import compress
from fedpcs.game.reward_plan import RewardPlan
from fedpcs.game.rules import Game

_CONSTANTS = 13
_MOST_EVALUATIONS = 150
_MOST_TYPES = 2_000
_FINEST_STEP = 0.03


@dataclass(frozen=True)
class Verdict:
    """A reward path, what it costs the server in all, and the mean field that answers it."""

    path: FloatArray
    cost: float
    mean_budget: FloatArray


Judge = Callable[[FloatArray, FloatArray | None], Verdict]


def commit(game: Game) -> RewardPlan:
    """Return the reward path in [0, reward_max]^{T+1} that minimises the server's total cost.

    Solves: min_R Σ_t U_t(R, equilibrium(R)), clients answering exactly, to a local optimum.

    Guarantees:
        Costs no more than the best constant reward and the per-round path it was compared with.
    """
    crowd = game.population
    small = replace(game, population=compress(crowd)) if crowd.num_types > _MOST_TYPES else game
    judge = _judge(small, is_rough=True)
    constant, calls = best_constant(small, judge)
    lemma = per_round(small)
    start = constant.path.copy()
    start[0] = 0.0
    best, more = _compass(small, judge, judge(start, constant.mean_budget))
    final = _judge(small, is_rough=False)
    finalists = [final(path, None) for path in (best.path, start, lemma.path)]
    chosen = min(finalists, key=lambda verdict: verdict.cost)
    return RewardPlan(chosen.path, "commitment", True, None, calls + more + lemma.evaluations + 4)


def best_constant(game: Game, judge: Judge) -> tuple[Verdict, int]:
    """Return the cheapest constant reward and how many equilibria it took to find it."""
    rounds = game.last_round + 1
    grid = np.concatenate(([0.0], np.geomspace(1e-3, 1.0, _CONSTANTS) * game.reward_max))
    verdicts: list[Verdict] = []
    for reward in grid:
        verdicts.append(judge(np.full(rounds, reward), verdicts[-1].mean_budget if verdicts else None))
    best = int(np.argmin([verdict.cost for verdict in verdicts]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, _CONSTANTS)]

    def cost(reward: float) -> float:
        verdicts.append(judge(np.full(rounds, reward), verdicts[best].mean_budget))
        return verdicts[-1].cost

    minimize_scalar(cost, bounds=(low, high), method="bounded", options={"maxiter": 9})
    return min(verdicts, key=lambda verdict: verdict.cost), len(verdicts)


def knots(last_round: int) -> NDArray[np.int64]:
    """Return the rounds whose rewards are searched: 1, 2, 4, 8… from the start and the same from the end.

    Example:
        >>> knots(30).tolist()
        [1, 2, 4, 8, 15, 23, 27, 29, 30]
    """
    steps = 2 ** np.arange(int(np.log2(max(last_round, 2))))
    steps = steps[steps <= last_round // 3 + 1]
    both = np.concatenate(([1, (last_round + 1) // 2], steps, last_round + 1 - steps))
    return np.unique(both.clip(1, last_round))


def _judge(game: Game, *, is_rough: bool) -> Judge:
    # Costs are only compared while searching: a rough equilibrium does, from the nearest mean field known.
    def judge(path: FloatArray, start: FloatArray | None) -> Verdict:
        if is_rough:
            outcome = mean_field.settle(
                game, path, tolerance=2e-3, start=start, resolution=exact.COARSE, most_sweeps=6
            )
        else:
            outcome = mean_field.settle(game, path, start=start)
        cost = float(server_cost(outcome.profile.budget, path, game).sum())
        return Verdict(path, cost, outcome.profile.mean_budget)

    return judge


def _directions(last_round: int) -> FloatArray:
    """Return the ways a path is bent, one per row: level, tilt, then a hat around each knot. R_0 stays as it is."""
    rounds = np.arange(last_round + 1)
    at = knots(last_round)
    hats = [np.interp(rounds, at, row) for row in np.eye(at.size)]
    bends = np.array([np.ones(rounds.size), np.linspace(1.0, -1.0, rounds.size), *hats])
    bends[:, 0] = 0.0
    return bends


def _compass(game: Game, judge: Judge, opening: Verdict) -> tuple[Verdict, int]:
    """Try each direction both ways by its own step; lengthen steps that help, shorten those that do not."""
    bends = _directions(game.last_round)
    best, calls = opening, 0
    unit = max(float(opening.path.mean()), 0.01 * game.reward_max)
    steps, signs = np.full(len(bends), 0.3), np.ones(len(bends))
    while steps.max() > _FINEST_STEP and calls < _MOST_EVALUATIONS:
        for k in np.flatnonzero(steps > _FINEST_STEP):
            for sign in (signs[k], -signs[k]):
                path = (best.path + sign * steps[k] * unit * bends[k]).clip(0.0, game.reward_max)
                trial = judge(path, best.mean_budget)
                calls += 1
                if trial.cost < best.cost * (1.0 - 1e-5):
                    best, signs[k], steps[k] = trial, sign, 1.6 * steps[k]
                    break
            else:
                steps[k] *= 0.4
    return best, calls
