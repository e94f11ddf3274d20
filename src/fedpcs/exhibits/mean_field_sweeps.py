"""The mean budget φ(t), sweep by sweep, three ways.

Each iteration goes over the whole path φ(0)…φ(T), from the initial mean in every round. "Whole paths" is Algorithm 1
with exact best responses. "In order" is ours: within a sweep each round's mean is updated before the next round is
answered. "As printed" is Algorithm 1 with Theorem 1's formula (response mode `paper`). A sweep's change is
max |φ_m(t) − φ_(m−1)(t)|; rest is a change of at most the paper's ε₀ = 0.001.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game import exact
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.mean_field import PAPER_SWEEPS
from fedpcs.game.rules import Game

PAPER_THRESHOLD = 1e-3
NUM_SWEEPS, NUM_PRINTED_SWEEPS = 40, PAPER_SWEEPS
# Once a sweep changes φ by no more than this, further ones would not be seen.
_STILL = 1e-7


@dataclass(frozen=True)
class Iterations:
    """One game's mean budget, sweep by sweep.

    Attributes:
        reward: What was announced, in words.
        seed: Of the population.
        found: Its certified equilibrium.
        whole_paths: (sweeps + 1, rounds) φ with exact responses to a whole announced path.
        in_order: (sweeps + 1, rounds) φ with exact responses, rounds updated in order.
        printed: What Algorithm 1 as printed ends with, certified or not; its history is (sweeps + 1, rounds) too.
    """

    reward: str
    seed: int
    found: Equilibrium
    whole_paths: FloatArray
    in_order: FloatArray
    printed: Equilibrium

    @property
    def histories(self) -> dict[str, FloatArray]:
        """The three iterations by name, one that stopped early as if it had stood still from there on."""
        printed = self.printed.history
        rest = np.repeat(printed[-1:], max(0, NUM_PRINTED_SWEEPS + 1 - len(printed)), axis=0)
        return {
            "whole paths": self.whole_paths,
            "in order": self.in_order,
            "as printed": np.vstack((printed, rest)),
        }


def iterate(games: Games, case: Case) -> Iterations:
    """Sweep a solved game's mean budget three ways from the initial mean, on its own rewards."""
    found = games.solve(case)
    printed = games.solve(Case(case.seed, reward=shared.path_of(found), response="paper"))
    whole_paths, in_order = (
        sweep_history(found.game, found.reward.path, in_order=is_in_order) for is_in_order in (False, True)
    )
    words = f"constant {_format.amount(case.reward)}" if isinstance(case.reward, float) else found.reward.policy
    return Iterations(words, case.seed, found, whole_paths, in_order, printed)


def sweep_history(game: Game, reward: FloatArray, *, in_order: bool, num_sweeps: int = NUM_SWEEPS) -> FloatArray:
    """Return φ before the first of `num_sweeps` sweeps and after each, with exact best responses.

    Sweeps that would change nothing are not made: φ is repeated.
    """
    crowd = game.population
    rows = exact.table_rows(crowd)
    history = [np.full(game.last_round + 1, crowd.mean(crowd.initial_budget))]
    while len(history) <= num_sweeps:
        if len(history) > 1 and np.abs(history[-1] - history[-2]).max() <= _STILL:
            return np.vstack((history, np.repeat(history[-1:], num_sweeps + 1 - len(history), axis=0)))
        terms = game.terms(reward, history[-1])
        table = exact.tabulate(terms, rows, crowd.initial_budget)
        history.append(exact.play(table, terms, crowd, in_order=in_order).mean_budget)
    return np.array(history)


def changes(history: FloatArray) -> FloatArray:
    """Return max_t |φ_m(t) − φ_(m−1)(t)| for each sweep: (sweeps,)."""
    return np.asarray(np.abs(np.diff(history, axis=0)).max(axis=1))


def sweeps_to_rest(history: FloatArray, threshold: float = PAPER_THRESHOLD) -> int | None:
    """Return the first sweep that changes φ by no more than the threshold; None if none does.

    Example:
        >>> sweeps_to_rest(np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 2.0]]))
        2
    """
    rests = np.flatnonzero(changes(history) <= threshold)
    return int(rests[0]) + 1 if rests.size else None
