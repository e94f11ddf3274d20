"""Games that are hard to certify: wide bounds, outliers, bimodal crowds, heavy tails, extreme aversions.

Each is drawn once from (seed, index). Of five games in a row three have 401 to 2,000 clients, one has 100 to 400 and
one has 2 to 100. Two games that once fooled solver and certificate together are named at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from fedpcs.game import Game, individuals, make_game
from fedpcs.game.population import AVERSION_BOUNDS
from fedpcs.game.rules import SELECTIONS, Selection

_SIZES = ((401, 2_000), (401, 2_000), (100, 400), (401, 2_000), (2, 100))
_TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5)
_REWARD_MAX = 100.0


@dataclass(frozen=True)
class WildGame:
    """One game to solve, under fixed rewards, to a tolerance."""

    name: str
    game: Game
    reward: np.ndarray
    tolerance: float


def wild_game(index: int, *, seed: int = 0) -> WildGame:
    """Return game number `index`."""
    rng = np.random.default_rng([seed, index])
    clients = int(np.exp(rng.uniform(*np.log(_SIZES[index % len(_SIZES)]))).round())
    bounds = _bounds(rng)
    kind = list(_CROWDS)[int(rng.integers(len(_CROWDS)))]
    budget = _CROWDS[kind](rng, clients, *bounds).clip(*bounds)
    aversion_kind = list(_AVERSIONS)[int(rng.choice(len(_AVERSIONS), p=(0.6, 0.2, 0.1, 0.1)))]
    aversion = _AVERSIONS[aversion_kind](rng, clients).clip(*AVERSION_BOUNDS)
    rounds = int(rng.integers(2, 42))
    reward_kind = list(_REWARDS)[int(rng.integers(len(_REWARDS)))]
    level = float(np.exp(rng.uniform(np.log(0.1), np.log(50.0))))
    cohort = int(rng.choice([1, clients, round(np.exp(rng.uniform(0.0, np.log(clients))))], p=(0.1, 0.1, 0.8)))
    game = make_game(
        individuals(aversion, budget),
        last_round=rounds - 1,
        cohort_size=cohort,
        budget_bounds=bounds,
        reward_max=_REWARD_MAX,
        selection=SELECTIONS[index % 2],
    )
    reward = np.minimum(level * _REWARDS[reward_kind](rng, rounds), _REWARD_MAX)
    tolerance = _TOLERANCES[int(rng.integers(len(_TOLERANCES)))]
    return WildGame(f"{kind}, ψ {aversion_kind}, reward {reward_kind}", game, reward, tolerance)


def _bounds(rng):
    if rng.random() < 0.4:
        return 0.001, float(rng.choice([500.0, 1_000.0]))
    low, high = np.exp(rng.uniform(np.log([0.001, 1.0]), np.log([0.5, 1_000.0])))
    return float(low), float(high)


def _outliers(rng, clients, low, high, count):
    crowd = rng.uniform(low, min(high, max(2.0, 4.0 * low)), clients)
    crowd[: min(count, clients)] = high * rng.uniform(0.5, 1.0, min(count, clients))
    crowd[0] = high
    return crowd


def _bimodal(rng, clients, low, high):
    poor = rng.uniform(low, low + 0.02 * (high - low), clients)
    rich = rng.uniform(0.7 * high, high, clients)
    return np.where(rng.random(clients) < rng.uniform(0.02, 0.98), poor, rich)


_CROWDS = {
    "uniform": lambda rng, n, low, high: rng.uniform(low, high, n),
    "even in logs": lambda rng, n, low, high: np.exp(rng.uniform(np.log(low), np.log(high), n)),
    "one outlier": lambda rng, n, low, high: _outliers(rng, n, low, high, 1),
    "several outliers": lambda rng, n, low, high: _outliers(rng, n, low, high, 2 + n // 100),
    "bimodal": _bimodal,
    "pareto": lambda rng, n, low, high: max(low, 0.1) * (1.0 + rng.pareto(rng.uniform(0.5, 1.5), n)),
    "lognormal": lambda rng, n, low, high: np.exp(rng.normal(0.0, rng.uniform(1.0, 3.0), n)),
    "equal": lambda rng, n, low, high: np.full(n, rng.uniform(low, high)),
}
_AVERSIONS = {
    "uniform": lambda rng, n: rng.uniform(0.0, 1.0, n),
    "extreme": lambda rng, n: rng.choice(AVERSION_BOUNDS, n),
    "low": lambda rng, n: np.full(n, 0.001),
    "high": lambda rng, n: 1.0 - np.exp(rng.uniform(np.log(1e-3), np.log(0.2), n)),
}
_REWARDS = {
    "constant": lambda rng, rounds: np.ones(rounds),
    "declining": lambda rng, rounds: np.linspace(1.0, rng.uniform(0.0, 0.5), rounds),
    "jagged": lambda rng, rounds: np.exp(rng.uniform(-2.0, 2.0, rounds)) * (rng.random(rounds) > 0.25),
}


def one_large_budget(selection: Selection, *, clients: int = 420) -> WildGame:
    """Return a crowd below 2 and one client at 500 who hardly minds: the crowd fell between two nodes of an even grid.

    With 420 clients, budget-blind, it was called an equilibrium at 9.8e-18; plans that can be played gain 6.4e-3, and
    27 % of the clients gain more than 1 %. With 100 to 390 clients the certificate saw it and the game was refused.
    """
    rng = np.random.default_rng(0)
    aversion = rng.uniform(0.0, 1.0, clients).clip(*AVERSION_BOUNDS)
    budget = rng.uniform(0.001, 2.0, clients)
    aversion[-1], budget[-1] = AVERSION_BOUNDS[0], 500.0
    return _fixed(f"{clients} clients, one large budget", aversion, budget, selection, last_round=30, reward=1.5)


def crowd_that_hardly_minds(selection: Selection) -> WildGame:
    """Return 420 clients with ψ about 0.03 to 0.13 but for two: reading between rows of ψ invented gains.

    Budget-aware it was refused at 1.4e-3 where plans that can be played gain 1.6e-7; budget-blind 7.1e-4 was claimed
    where they gain 1.3e-7.
    """
    rng = np.random.default_rng(0)
    aversion = np.exp(rng.uniform(np.log(0.03), np.log(0.13), 420))
    aversion[:2] = AVERSION_BOUNDS
    budget = rng.uniform(0.001, 500.0, 420)
    return _fixed("a crowd that hardly minds", aversion, budget, selection, last_round=8, reward=13.8)


def heavy_tail(kind: Literal["pareto", "lognormal"], clients: int, selection: Selection) -> WildGame:
    """Return 100 to 390 clients, the richest 1 % of whom hardly mind; refused budget-blind, though it can be solved.

    A table with 1,500 even and 4 × 40 clustered nodes settles all of them at 1e-4 to 2.5e-4.
    """
    rng = np.random.default_rng(0)
    aversion = rng.uniform(0.0, 1.0, clients).clip(*AVERSION_BOUNDS)
    tail = 0.1 * (1.0 + rng.pareto(0.7, clients)) if kind == "pareto" else np.exp(rng.normal(-1.0, 2.5, clients))
    budget = tail.clip(0.001, 500.0)
    aversion[np.argsort(budget)[-max(1, clients // 100) :]] = AVERSION_BOUNDS[0]
    budget[budget.argmax()] = 500.0
    return _fixed(f"{clients} clients, {kind}", aversion, budget, selection, last_round=30, reward=1.5)


def _fixed(name, aversion, budget, selection, *, last_round, reward):
    population = individuals(aversion, budget)
    game = make_game(population, last_round=last_round, budget_bounds=(0.001, 500.0), selection=selection)
    return WildGame(name, game, np.full(last_round + 1, reward), 1e-3)
