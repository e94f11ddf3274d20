"""The Stackelberg leader: announce the whole reward path that costs least once clients have answered it.

Every candidate path is judged by the clients' mean-field equilibrium under it. Three facts shape the search.

- R_0 buys nothing: initial budgets are given and no later choice depends on it, so R_0 = 0.
- The cost has small steps, because single clients change their minds. Gradients would mislead, so only costs
  are compared: a compass search on the path's values at a few knots, joined by straight lines, close together
  at both ends of the run, where the first rewards set the level and the last ones stop paying off.
- Near good paths plain sweeps over the mean field often circle, and what a few of them end on is off by
  1–2 %, more than a candidate gains. Sweeps that move the announcement only half way do not circle: three of
  them, from the mean field of the path to be beaten, come within about 0.2 %. So every candidate gets such a
  glance, and the winner is then polished under the equilibrium that will be played.

`check_server` is the leader's half of the certificate: could something cheaper have been announced? A path is set
against constant rewards, the per-round policy, and perturbations of itself, each judged by the equilibrium it brings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.game import exact, mean_field
from fedpcs.game.payoffs import Profile, server_cost
from fedpcs.game.per_round import per_round
from fedpcs.game.population import compress
from fedpcs.game.rules import Game, RewardPlan

_LEVELS = 13
_GLANCE_SWEEPS = 3
_FIRST_STEP, _POLISH_STEP, _FINEST_STEP = 0.4, 0.2, 0.03
_SEARCH_SWEEPS = 240
_MOST_TYPES = 2_000
# Costs within 0.1 % of the full table's at half the time. Half as many nodes lead the search astray in 3 of 30 games.
_QUICK = exact.Resolution(spread=48, clustered=6)


@dataclass(frozen=True)
class Verdict:
    """A reward path, what it costs the server in all, the mean field that answers it, and the sweeps it took."""

    path: FloatArray
    cost: float
    mean_budget: FloatArray
    sweeps: int


# Judges a path, starting from a mean field thought to be near the answer.
Judge = Callable[[FloatArray, FloatArray], Verdict]


def commit(game: Game) -> RewardPlan:
    """Return the reward path in [0, reward_max]^{T+1} that minimises the server's total cost.

    Solves: min_R Σ_t U_t(R, equilibrium(R)), clients answering exactly, to a local optimum.

    Guarantees:
        Costs no more than the per-round path and the constant it began with, as compared on the coarse table.
    """
    crowd = game.population
    small = replace(game, population=compress(crowd)) if crowd.num_types > _MOST_TYPES else game
    glance, scrutiny, compare = _glance(small), _scrutiny(small, _QUICK), _scrutiny(small, exact.COARSE)
    level = _best_level(small, glance)
    trail, glances = _compass(small, glance, level, step=_FIRST_STEP, most_sweeps=_SEARCH_SWEEPS)
    opening = _cheapest(scrutiny, trail)
    polished, looks = _compass(small, scrutiny, opening, step=_POLISH_STEP, most_sweeps=_polish_sweeps(small))
    lemma = per_round(small)
    chosen = _cheapest(compare, [polished[-1], level, replace(level, path=lemma.path)])
    evaluations = _LEVELS + glances + len(trail) + looks + lemma.evaluations + 3
    return RewardPlan(chosen.path, "commitment", True, None, evaluations)


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


def _polish_sweeps(game: Game) -> int:
    # The fewer the clients, the higher the steps one of them makes in the cost, and the cheaper a sweep.
    return 900_000 // (game.population.num_types * (game.last_round + 1))


def _glance(game: Game) -> Judge:
    """Judge by a few sweeps, each announcing the middle of what was announced and what came of it."""

    def judge(path: FloatArray, start: FloatArray) -> Verdict:
        mean = start
        for _ in range(_GLANCE_SWEEPS):
            sweep = mean_field.settle(game, path, start=mean, resolution=_QUICK, most_sweeps=1)
            mean = 0.5 * (mean + sweep.profile.mean_budget)
        return _verdict(game, path, sweep.profile, mean, _GLANCE_SWEEPS)

    return judge


def _scrutiny(game: Game, resolution: exact.Resolution) -> Judge:
    """Judge by the equilibrium clients will be told to play: settled, and from no particular start."""

    def judge(path: FloatArray, _: FloatArray) -> Verdict:
        outcome = mean_field.settle(game, path, resolution=resolution)
        return _verdict(game, path, outcome.profile, outcome.profile.mean_budget, outcome.iterations)

    return judge


def _verdict(game: Game, path: FloatArray, profile: Profile, mean: FloatArray, sweeps: int) -> Verdict:
    return Verdict(path, float(server_cost(profile.budget, path, game).sum()), mean, sweeps)


def _cheapest(judge: Judge, candidates: list[Verdict]) -> Verdict:
    again = [judge(candidate.path, candidate.mean_budget) for candidate in candidates]
    return min(again, key=lambda verdict: verdict.cost)


def _lowest_level(game: Game) -> float:
    # Rewards matter in proportion to budgets, so a ceiling far above them must not set the scale alone.
    return min(1e-3 * game.reward_max, 1e-2 * game.budget_bounds[1])


def _best_level(game: Game, judge: Judge) -> Verdict:
    """Return the cheapest of a few constant rewards, from none to reward_max; R_0 is zero."""
    levels = np.geomspace(_lowest_level(game), game.reward_max, _LEVELS - 1)
    mean = np.full(game.last_round + 1, game.population.mean(game.population.initial_budget))
    verdicts: list[Verdict] = []
    for reward in (0.0, *levels):
        path = np.full(game.last_round + 1, reward)
        path[0] = 0.0
        verdicts.append(judge(path, mean))
        mean = verdicts[-1].mean_budget
    return min(verdicts, key=lambda verdict: verdict.cost)


def _directions(last_round: int) -> FloatArray:
    """Return the ways a path is bent, one per row: level, tilt, a hat around each knot. R_0 stays put."""
    rounds = np.arange(last_round + 1)
    at = knots(last_round)
    hats = [np.interp(rounds, at, row) for row in np.eye(at.size)]
    bends = np.array([np.ones(rounds.size), np.linspace(1.0, -1.0, rounds.size), *hats])
    bends[:, 0] = 0.0
    return bends


def _compass(game: Game, judge: Judge, opening: Verdict, *, step: float, most_sweeps: int) -> tuple[list[Verdict], int]:
    """Try each direction both ways by its own step; lengthen steps that help, shorten those that do not.

    The path to beat is judged anew every round, from the same mean field as its rivals: a lucky verdict would
    otherwise stand for ever. Where a path has two equilibria it may come out dearer than before, so the path of
    every round is handed back, not only the last.

    Returns:
        The path each round ended on, the opening first, and how many paths were judged. No round begins
        after `most_sweeps`.
    """
    bends = _directions(game.last_round)
    trail, calls, sweeps = [opening], 0, 0
    steps, signs = np.full(len(bends), step), np.ones(len(bends))
    while sweeps < most_sweeps and steps.max() > _FINEST_STEP:
        best = judge(trail[-1].path, trail[-1].mean_budget)
        calls, sweeps = calls + 1, sweeps + best.sweeps
        unit = max(float(best.path.mean()), _lowest_level(game))
        for k in np.flatnonzero(steps > _FINEST_STEP):
            for sign in (signs[k], -signs[k]):
                path = (best.path + sign * steps[k] * unit * bends[k]).clip(0.0, game.reward_max)
                trial = judge(path, best.mean_budget)
                calls, sweeps = calls + 1, sweeps + trial.sweeps
                if trial.cost < best.cost * (1.0 - 1e-5):
                    best, signs[k], steps[k] = trial, sign, 1.6 * steps[k]
                    break
            else:
                steps[k] *= 0.4
        trail.append(best)
    return trail, calls


@dataclass(frozen=True)
class ServerCheck:
    """Total costs, all under exact responses.

    Attributes:
        announced: Of the path at hand.
        best_constant: Of the cheapest constant reward tried.
        best_constant_reward: Which one that is.
        per_round: Of the paper's per-round policy.
        best_perturbation: Of the cheapest perturbation tried.
        improvement: Largest relative saving any of them offers; zero if none does.
    """

    announced: float
    best_constant: float
    best_constant_reward: float
    per_round: float
    best_perturbation: float
    improvement: float


def check_server(game: Game, path: FloatArray, *, num_constants: int = 25) -> ServerCheck:
    """Compare `path` with what else the server could announce."""

    def cost(rewards: FloatArray) -> float:
        outcome = mean_field.settle(game, rewards.clip(0.0, game.reward_max))
        return float(server_cost(outcome.profile.budget, rewards.clip(0.0, game.reward_max), game).sum())

    announced = cost(path)
    ceiling = min(game.reward_max, 3.0 * max(float(path.max()), 0.01 * game.reward_max))
    constants = np.linspace(0.0, ceiling, num_constants)
    constant_costs = [cost(np.full(path.size, reward)) for reward in constants]
    best = int(np.argmin(constant_costs))
    lemma = cost(per_round(game).path)
    perturbed = min(cost(other) for other in perturbations(path))
    saving = 1.0 - min(constant_costs[best], lemma, perturbed) / announced
    return ServerCheck(announced, constant_costs[best], float(constants[best]), lemma, perturbed, max(0.0, saving))


def perturbations(path: FloatArray, size: float = 0.1) -> list[FloatArray]:
    """Return paths near `path`: scaled, tilted, and bumped by ±`size` of the mean level at several widths."""
    rounds = np.arange(path.size)
    tilt = np.linspace(1.0, -1.0, path.size)
    others = [path * (1.0 + size), path * (1.0 - size), path * (1.0 + size * tilt), path * (1.0 - size * tilt)]
    for width in sorted({max(1, path.size // 3), max(1, path.size // 8)}, reverse=True):
        for centre in range(width // 2, path.size, 2 * width):
            hat = np.maximum(0.0, 1.0 - np.abs(rounds - centre) / width)
            others += [path + sign * size * float(path.mean()) * hat for sign in (1.0, -1.0)]
    return others
