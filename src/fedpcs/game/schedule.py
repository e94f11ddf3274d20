"""What was announced for every round, and what clients will do about it: how a run holds a game that was solved.

A run plays in ρ of zCDP. The game is played in units of `budget_unit` ρ each, because how much a client dislikes
spending is a matter of scale: the default bounds [0.01, 12] with a unit of 0.01 stand for budgets of 0.0001 to 0.12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray

if TYPE_CHECKING:  # a run's processes hold schedules without loading the solver
    from fedpcs.game.equilibrium import Equilibrium

Behaviour = Literal["rational", "static", "selfish", "raised"]
Standing = Literal["converged", "not-played"]
PATHS = ("reward", "mean_budget", "cohort_size", "budget", "pay")


@dataclass(frozen=True)
class Schedule:
    """What was announced, and what clients will do about it.

    Attributes:
        reward: (rounds,) R_t for one unit of budget.
        mean_budget: (rounds,) φ(t) as announced, as ρ.
        cohort_size: (rounds,) K_t of the game, and of the draw.
        budget: (rounds, clients) ρ.
        pay: (rounds, clients) what a drawn client is owed.
        standing: Whether budgets are a certified equilibrium, or nobody plays: nothing depends on budgets.
        exploitability: Mean gain by deviating over mean utility; None where nobody plays.
        settled_by: How the mean field came to rest; empty where nobody plays.
    """

    reward: FloatArray
    mean_budget: FloatArray
    cohort_size: NDArray[np.int64]
    budget: FloatArray
    pay: FloatArray
    standing: Standing = "not-played"
    exploitability: float | None = None
    settled_by: str = ""

    @property
    def num_rounds(self) -> int:
        """T + 1."""
        return int(self.cohort_size.size)

    @property
    def paths(self) -> dict[str, Any]:
        """What it says of every round, by name."""
        return {name: getattr(self, name) for name in PATHS}

    def announced_from(self, now: int, fresh: Schedule) -> Schedule:
        """Return this schedule with what `fresh` announces from round `now` on; clients have not answered it yet."""
        changes: dict[str, Any] = {
            name: np.concatenate((getattr(self, name)[:now], getattr(fresh, name)))
            for name in ("reward", "mean_budget", "cohort_size")
        }
        changes |= {name: getattr(fresh, name) for name in ("standing", "exploitability", "settled_by")}
        return replace(self, **changes)

    def followed_by(self, now: int, fresh: Schedule, who: NDArray[np.bool_]) -> Schedule:
        """Return this schedule with rounds from `now` on as in `fresh`, which `who` play; the others keep theirs."""
        budget, pay = self.budget.copy(), self.pay.copy()
        budget[now:, who], pay[now:, who] = fresh.budget, fresh.pay
        return replace(self.announced_from(now, fresh), budget=budget, pay=pay)


def not_played(num_rounds: int, num_clients: int, cohort_size: int, budget: float = 1.0) -> Schedule:
    """Return the schedule of clients to whom nothing was announced: one budget for all, and no pay."""
    nothing, each = np.zeros(num_rounds), np.full((num_rounds, num_clients), budget)
    return Schedule(nothing, nothing + budget, np.full(num_rounds, cohort_size), each, 0.0 * each)


def schedule_of(found: Equilibrium, *, budget_unit: float = 1.0, behaviour: Behaviour = "rational") -> Schedule:
    """Return the schedule clients follow under an equilibrium's announcement."""
    budget = played_budget(found, behaviour)
    return Schedule(
        reward=found.reward.path,
        mean_budget=budget_unit * found.profile.mean_budget,
        cohort_size=found.game.cohort_size.astype(np.int64),
        budget=budget_unit * budget,
        pay=budget * found.reward.path[:, np.newaxis],
        standing="converged",
        exploitability=float(found.certificate.relative),
        settled_by=found.settled_by,
    )


def played_budget(found: Equilibrium, behaviour: Behaviour) -> FloatArray:
    """Return (rounds, types) what clients spend, in the game's units.

    "rational" ones play the equilibrium, "static" ones keep ρ⁰, "selfish" ones sit at ρ_L, and "raised" ones scale ρ⁰
    so that their mean is the equilibrium's.
    """
    played, first = found.profile.budget, found.game.population.initial_budget
    low, high = found.game.budget_bounds
    if behaviour == "static":
        return np.broadcast_to(first, played.shape)
    if behaviour == "raised":
        return np.array([_scaled_to(first, float(mean), low, high) for mean in played.mean(axis=1)])
    return np.full(played.shape, low) if behaviour == "selfish" else played


def _scaled_to(budget: FloatArray, mean: float, low: float, high: float) -> FloatArray:
    """Return budgets times the factor at which their mean, cut off at the bounds, is `mean`."""
    from scipy.optimize import brentq  # a third of a second to import, for this behaviour alone

    def excess(factor: float) -> float:
        return float(np.clip(factor * budget, low, high).mean()) - mean

    least, most = low / float(budget.max()), high / float(budget.min())
    factor = least if excess(least) >= 0.0 else most if excess(most) <= 0.0 else brentq(excess, least, most)
    return np.asarray(np.clip(factor * budget, low, high))
