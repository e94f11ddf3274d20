"""The rules of one game: who plays, for how long, how many are drawn, what the server weighs; and what it announces.

`Game` is what the server knows before it starts. `Terms` is what it tells clients: enough for a client to
compute its best response from its own two private numbers and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.population import DEFAULT_BUDGET_BOUNDS, Population, check_bounds, uniform

Selection = Literal["budget-aware", "budget-blind"]
# Beyond these, sums of squares leave the range floats can hold, or a table the memory of any machine.
MOST = 1e12
MOST_ROUNDS = 100_000
MOST_ENTRIES = 1_000_000_000  # of a table of budgets: 8 GB
SELECTIONS: tuple[Selection, ...] = ("budget-aware", "budget-blind")


@dataclass(frozen=True)
class Terms:
    """What the server announces.

    Attributes:
        reward: (rounds,) R_t, paid per unit of budget.
        mean_budget: (rounds,) φ(t), the crowd's mean budget.
        cohort_size: (rounds,) K_t, how many clients are drawn.
        num_clients: N.
        selection: Whether the draw favours larger budgets ("budget-aware") or ignores them ("budget-blind").
    """

    reward: FloatArray
    mean_budget: FloatArray
    cohort_size: FloatArray
    num_clients: int
    selection: Selection = "budget-aware"

    @property
    def last_round(self) -> int:
        """T: rounds are 0…T."""
        return int(self.reward.size - 1)

    @property
    def is_budget_aware(self) -> bool:
        """Whether the draw favours larger budgets."""
        return self.selection == "budget-aware"


def announce(
    reward: ArrayLike,
    mean_budget: ArrayLike,
    cohort_size: int | ArrayLike,
    num_clients: int,
    selection: Selection = "budget-aware",
) -> Terms:
    """Check and build `Terms`; a single cohort size holds for every round.

    Example:
        >>> announce([5.0, 5.0], [6.0, 6.5], 20, 100).last_round
        1
    """
    path = _validate.vector("reward", reward, low=0.0)
    mean = _validate.vector("mean_budget", mean_budget, length=path.size, low=0.0)
    if not mean.min() > 0.0:
        raise InvalidInput(f"mean_budget must be above 0 in every round, got {float(mean.min())!r}.")
    clients = _validate.integer("num_clients", num_clients, low=1)
    cohort = np.broadcast_to(np.asarray(cohort_size, dtype=np.float64), path.shape)
    cohort = _validate.vector("cohort_size", cohort, low=1.0, high=clients)
    _validate.choice("selection", selection, SELECTIONS)
    return Terms(path, mean, cohort, clients, selection)


@dataclass(frozen=True)
class Game:
    """The two-stage game. Build it with `make_game`, which checks every field.

    Attributes:
        population: Who plays.
        last_round: T; there are T + 1 rounds.
        cohort_size: (rounds,) K_t.
        budget_bounds: [ρ_L, ρ_H].
        accuracy_priority: γ in (0, 1), the server's weight on accuracy against rewards.
        accuracy_scale: a > 0, the constant in front of the accuracy term.
        reward_max: Largest reward the server may announce.
        selection: How clients are drawn.
    """

    population: Population
    last_round: int
    cohort_size: FloatArray
    budget_bounds: tuple[float, float]
    accuracy_priority: float
    accuracy_scale: float
    reward_max: float
    selection: Selection

    @property
    def num_clients(self) -> int:
        """N."""
        return self.population.num_clients

    def terms(self, reward: FloatArray, mean_budget: FloatArray) -> Terms:
        """Return what the server announces for a reward path and a mean-budget path."""
        return Terms(reward, mean_budget, self.cohort_size, self.num_clients, self.selection)

    def reward_path(self, reward: float | ArrayLike) -> FloatArray:
        """Return a checked reward path: a number holds for every round."""
        rounds = self.last_round + 1
        if np.ndim(reward) == 0:
            _validate.number("reward", reward if isinstance(reward, int | float) else float(np.asarray(reward)))
            reward = np.full(rounds, reward)
        return _validate.vector(
            "reward",
            reward,
            length=rounds,
            low=0.0,
            high=self.reward_max,
            remedy="Give one number per round, last_round + 1 of them, none above reward_max.",
        )


def cohort_from_ratio(sampling_ratio: float, num_clients: int) -> int:
    """Return K = max(1, round(τN)), the one place where a sampling ratio is rounded.

    Example:
        >>> cohort_from_ratio(0.2, 100)
        20
    """
    ratio = _validate.number("sampling_ratio", sampling_ratio, low=0.0, high=1.0)
    if not ratio > 0.0:
        raise InvalidInput("sampling_ratio must be above 0 and at most 1, got 0.0. Nobody would be drawn.")
    return max(1, round(ratio * num_clients))


def make_game(
    population: Population | None = None,
    *,
    last_round: int = 30,
    cohort_size: int | ArrayLike | None = None,
    budget_bounds: tuple[float, float] = DEFAULT_BUDGET_BOUNDS,
    accuracy_priority: float = 0.5,
    accuracy_scale: float = 10_000.0,
    reward_max: float = 100.0,
    selection: Selection = "budget-aware",
) -> Game:
    """Return a checked game; with no arguments the default one (N = 100, T = 30, K = 20, seed 0).

    Raises:
        InvalidInput: A value is NaN, out of range or of the wrong length, or K > N.
    """
    bounds = check_bounds(budget_bounds)
    crowd = uniform(100, seed=0, budget_bounds=bounds) if population is None else population
    rounds = _validate.integer("last_round", last_round, low=1, high=MOST_ROUNDS) + 1
    if rounds * crowd.num_types > MOST_ENTRIES:
        raise InvalidInput(
            f"rounds × types must be at most {MOST_ENTRIES:,}, got {rounds:,} × {crowd.num_types:,}. Play "
            "fewer rounds, or tell fewer types apart."
        )
    if cohort_size is None:
        cohort_size = cohort_from_ratio(0.2, crowd.num_clients)
    if np.ndim(cohort_size) == 0:
        size = _validate.integer("cohort_size", cohort_size, low=1, high=crowd.num_clients)
        cohort_size = np.full(rounds, float(size))
    cohort = _validate.vector("cohort_size", cohort_size, length=rounds, low=1.0, high=crowd.num_clients)
    _validate.vector(
        "initial_budget",
        crowd.initial_budget,
        low=bounds[0],
        high=bounds[1],
        remedy="Every client starts inside budget_bounds; widen them or change the budget.",
    )
    priority = _validate.number("accuracy_priority", accuracy_priority, low=0.0, high=1.0)
    if not 0.0 < priority < 1.0:
        raise InvalidInput(f"accuracy_priority must lie strictly between 0 and 1, got {accuracy_priority!r}.")
    scale = _validate.positive("accuracy_scale", _validate.number("accuracy_scale", accuracy_scale, high=MOST))
    ceiling = _validate.positive("reward_max", _validate.number("reward_max", reward_max, high=MOST))
    _validate.choice("selection", selection, SELECTIONS)
    return Game(crowd, rounds - 1, cohort, bounds, priority, scale, ceiling, selection)
