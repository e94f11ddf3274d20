"""The rules of one game: who plays, for how long, how many are drawn, what the server weighs; and what it announces.

`Game` is what the server knows before it starts. `Terms` is what it tells clients: enough for a client to
compute its best response from its own two private numbers and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedpcs import _validate
from fedpcs._keys import checked
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.config import GameFile
from fedpcs.game.population import Population, uniform

Selection = Literal["budget-aware", "budget-blind"]
MOST_ENTRIES = 1_000_000_000  # of a table of budgets: 8 GB
_DEFAULT = GameFile()
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

    def with_cohort(self, cohort_size: ArrayLike) -> Game:
        """Return the game with as many drawn in each round as given."""
        return replace(self, cohort_size=_cohort(cohort_size, self.last_round + 1, self.num_clients))

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


@dataclass(frozen=True)
class RewardPlan:
    """The rewards to announce and how they came about.

    Attributes:
        path: (rounds,) R_t.
        policy: Which policy chose it.
        is_settled: Whether the policy's own iteration came to rest; a per-round path usually does not.
        is_interior: (rounds,) whether R_t solves a first-order condition rather than sits at 0 or reward_max;
            None where no such condition was solved.
        evaluations: How many mean-field equilibria were computed to find it.
    """

    path: FloatArray
    policy: Literal["commitment", "per-round", "fixed"]
    is_settled: bool = True
    is_interior: NDArray[np.bool_] | None = None
    evaluations: int = 0


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
    budget_bounds: tuple[float, float] = _DEFAULT.bounds,
    accuracy_priority: float = _DEFAULT.accuracy_priority,
    accuracy_scale: float = _DEFAULT.accuracy_scale,
    reward_max: float = _DEFAULT.reward_max,
    selection: Selection = "budget-aware",
) -> Game:
    """Return a checked game; with no arguments the default one (N = 100, T = 30, K = 20, seed 0).

    Raises:
        InvalidInput: A value is NaN, out of range or of the wrong length, or K > N.
    """
    stated: dict[str, Any] = {"last_round": last_round, "selection": selection, "budget_bounds": budget_bounds}
    stated |= {"accuracy_priority": accuracy_priority, "accuracy_scale": accuracy_scale, "reward_max": reward_max}
    rules = checked(GameFile, {name: np.asarray(value).tolist() for name, value in stated.items()})
    crowd = uniform(100, seed=0, budget_bounds=rules.bounds) if population is None else population
    rounds = rules.last_round + 1
    if rounds * crowd.num_types > MOST_ENTRIES:
        raise InvalidInput(
            f"rounds × types must be at most {MOST_ENTRIES:,}, got {rounds:,} × {crowd.num_types:,}. Play "
            "fewer rounds, or tell fewer types apart."
        )
    if cohort_size is None:
        cohort_size = cohort_from_ratio(0.2, crowd.num_clients)
    _validate.vector(
        "initial_budget",
        crowd.initial_budget,
        low=rules.bounds[0],
        high=rules.bounds[1],
        remedy="Every client starts inside budget_bounds; widen them or change the budget.",
    )
    return Game(
        crowd,
        rules.last_round,
        _cohort(cohort_size, rounds, crowd.num_clients),
        rules.bounds,
        float(rules.accuracy_priority),
        float(rules.accuracy_scale),
        float(rules.reward_max),
        rules.selection,
    )


def _cohort(cohort_size: int | ArrayLike, rounds: int, num_clients: int) -> FloatArray:
    """Return a checked cohort size for every round."""
    if np.ndim(cohort_size) == 0:
        cohort_size = np.full(rounds, float(_validate.integer("cohort_size", cohort_size, low=1, high=num_clients)))
    return _validate.vector("cohort_size", cohort_size, length=rounds, low=1.0, high=num_clients)
