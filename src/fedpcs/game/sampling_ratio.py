"""How many clients to draw when the cohort's budgets may add up to at most B_t, for real, mixed populations.

Choose K_t that minimises the server's cost *with* the sampling variance of Proposition 3,

    Σ_i π_i(K)[γa/((t+1)ρ_i) + (1−γ)R_t ρ_i] + (γ/K) Σ_i (θ_i² D² + 2a/ρ_i)/x_i,    Σ_i π_i(K) ρ_i ≤ B_t.

(θ_i² d σ_i² is 2a/ρ_i in the units of `accuracy_scale`, up to the constants β and μ.) Without the variance the cost
grows with K and the best cohort is empty; so it is in the paper's closed form (`fedpcs.theory.paper_ratio`).
`cut_to_cap` makes a realised cohort fit. A cap met exactly is met: all comparisons with B_t allow the relative slack of
`fedpcs._caps`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedpcs import _validate
from fedpcs._caps import SLACK, allowance
from fedpcs._format import rounded_up
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game import equilibrium
from fedpcs.game.config import GameFile
from fedpcs.game.mean_field import ResponseMode
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.rules import Game

_MOST_ROUNDS = 6
_SCAN = 128


@dataclass(frozen=True)
class CohortPlan:
    """How many to draw in each round.

    Attributes:
        cohort_size: (rounds,) K_t.
        budget_cap: (rounds,) B_t.
        expected_budget: (rounds,) E[Σ_{i in cohort} ρ_i], at most B_t up to the slack of 1e-9.
    """

    cohort_size: FloatArray
    budget_cap: FloatArray
    expected_budget: FloatArray

    @property
    def usage(self) -> FloatArray:
        """(rounds,) share of the cap that is spent in expectation."""
        return np.asarray(self.expected_budget / self.budget_cap)


def cap_path(budget_cap: float | ArrayLike, game: Game) -> FloatArray:
    """Return B_t for every round; refuse caps that not even the smallest possible cohort could meet."""
    rounds = game.last_round + 1
    if np.ndim(budget_cap) == 0:
        budget_cap = np.full(rounds, _validate.positive("budget_cap", budget_cap))
    return _validate.vector(
        "budget_cap",
        budget_cap,
        length=rounds,
        low=game.budget_bounds[0] / (1.0 + SLACK),
        remedy="Give one positive number, or one per round.",
    )


def plan_cohort(
    budget: FloatArray,
    reward: FloatArray,
    budget_cap: FloatArray,
    game: Game,
    *,
    gradient_bound: float = 1.0,
) -> CohortPlan:
    """Choose K_t round by round for given (rounds, types) budgets (method `numeric`).

    Raises:
        InvalidInput: In some round even one client is expected to exceed the cap.
    """
    size, spent = np.empty(budget_cap.size), np.empty(budget_cap.size)
    for t, cap in enumerate(budget_cap):
        most = _largest_cohort(budget[t], float(cap), game)
        if most == 0:
            least = rounded_up(_expected(budget[t], 1, game))
            raise InvalidInput(
                f"budget_cap[{t}] must be at least {least}, what one drawn client spends in round {t}, "
                f"got {float(cap)!r}. Raise the cap or lower the rewards."
            )
        costs = _cost_of_size(budget[t], float(reward[t]), t, game, gradient_bound)
        size[t] = _cheapest(costs, most)
        spent[t] = _expected(budget[t], int(size[t]), game)
    return CohortPlan(size, budget_cap, spent)


def solve_with_caps(
    game: Game,
    reward_policy: str | float | ArrayLike,
    budget_cap: float | ArrayLike,
    *,
    response: ResponseMode = "exact",
    tolerance: float = 1e-3,
    throw: bool = True,
) -> tuple[equilibrium.Equilibrium, CohortPlan]:
    """Solve the game with K_t chosen under caps: rewards, budgets and cohorts that fit one another.

    Clients' chances depend on K_t and K_t on their budgets, so the two are solved in turn. Rewards are planned
    twice, for the first and the second cohort plan, then held while the rest settles.
    """
    caps = cap_path(budget_cap, game)
    policy: str | float | ArrayLike = reward_policy
    found = equilibrium.solve(game, policy, response=response, tolerance=tolerance, throw=False)
    plan = plan_cohort(found.profile.budget, found.reward.path, caps, game)
    for attempt in range(_MOST_ROUNDS):
        adapted = replace(game, cohort_size=plan.cohort_size)
        found = equilibrium.solve(adapted, policy, response=response, tolerance=tolerance, throw=False)
        if attempt == 0:
            planned = found.reward
            policy = planned.path
        found = replace(found, reward=planned)
        before, plan = plan, plan_cohort(found.profile.budget, planned.path, caps, game)
        if np.array_equal(before.cohort_size, plan.cohort_size):
            break
    # The plan may still flicker by a client between two neighbours; the smaller cohort meets the cap in both.
    agreed = np.minimum(before.cohort_size, plan.cohort_size)
    final = equilibrium.solve(
        replace(game, cohort_size=agreed), planned.path, response=response, tolerance=tolerance, throw=throw
    )
    final = replace(final, reward=planned)
    return final, CohortPlan(agreed, caps, expected_spend(final.profile.budget, agreed, game))


def solve_file(game: Game, config: GameFile) -> tuple[equilibrium.Equilibrium, CohortPlan | None]:
    """Solve a game as its file asks: under caps if it has them; whether it converged is in the result."""
    how: Any = {"response": config.response, "tolerance": float(config.tolerance), "throw": False}
    if config.budget_cap is None:
        return equilibrium.solve(game, config.reward, **how), None
    return solve_with_caps(game, config.reward, config.budget_cap, **how)


def cut_to_cap(order: NDArray[np.int64], budget: FloatArray, cohort_size: int, budget_cap: float) -> NDArray[np.int64]:
    """Return the cohort that fits: clients in drawing order, passing over any whose budget would exceed the cap.

    Guarantees:
        The cohort has at most `cohort_size` clients, always, and their budgets add up to at most `budget_cap`, up to
        the slack of 1e-9 by which a cap met exactly is met.

    Example:
        >>> cut_to_cap(np.array([2, 0, 1]), np.array([1.0, 4.0, 5.0]), 3, 7.0).tolist()
        [2, 0]
    """
    kept: list[int] = []
    most, spent = allowance(_validate.positive("budget_cap", budget_cap)), 0.0
    for client in order:
        if len(kept) == cohort_size:
            break
        if spent + budget[client] <= most:
            kept.append(int(client))
            spent += float(budget[client])
    return np.array(kept, dtype=np.int64)


def draw_order(budget: FloatArray, rng: np.random.Generator, *, budget_aware: bool = True) -> NDArray[np.int64]:
    """Return all clients in the order successive draws proportional to budget would pick them.

    Exponential clocks: client i rings after Exp(1)/ρ_i, and the first K to ring are K successive draws.
    """
    clock = rng.exponential(size=budget.size)
    return np.argsort(clock / budget if budget_aware else clock, kind="stable")


def expected_spend(budget: FloatArray, cohort_size: FloatArray, game: Game) -> FloatArray:
    """Return E[Σ_{i in cohort} ρ_i] in each round for (rounds, types) budgets and (rounds,) cohorts."""
    return np.array([_expected(row, int(size), game) for row, size in zip(budget, cohort_size, strict=True)])


def _expected(budget: FloatArray, cohort_size: int, game: Game) -> float:
    inclusion = cohort_inclusion(budget, float(cohort_size), game)
    return float(game.population.client_count @ (inclusion * budget))


def _largest_cohort(budget: FloatArray, cap: float, game: Game) -> int:
    """Return the largest K whose expected budget fits: it rises with K, so bisect."""
    low, high = 0, game.num_clients
    while low < high:
        middle = (low + high + 1) // 2
        if _expected(budget, middle, game) <= allowance(cap):
            low = middle
        else:
            high = middle - 1
    return low


def _cost_of_size(
    budget: FloatArray, reward: float, t: int, game: Game, gradient_bound: float
) -> Callable[[int], float]:
    """Return the cost of drawing K clients in round t, sampling variance included."""
    γ, a = game.accuracy_priority, game.accuracy_scale
    count = game.population.client_count
    each = γ * a / ((t + 1) * budget) + (1.0 - γ) * reward * budget
    share = budget / float(count @ budget)
    if game.selection == "budget-blind":
        share = np.full_like(budget, 1.0 / game.num_clients)
    spread = count @ ((game.population.data_weight**2 * gradient_bound**2 + 2.0 * a / budget) / share)

    def cost(size: int) -> float:
        inclusion = cohort_inclusion(budget, float(size), game)
        return float(count @ (inclusion * each) + γ * spread / size)

    return cost


def _cheapest(cost: Callable[[int], float], most: int) -> int:
    """Return the K in 1…most of least cost: a scan, then every size around its best."""
    scan = np.unique(np.linspace(1, most, _SCAN).round().astype(int))
    best = int(np.argmin([cost(int(size)) for size in scan]))
    near = range(int(scan[max(best - 1, 0)]), int(scan[min(best + 1, scan.size - 1)]) + 1)
    if len(near) > _SCAN:
        near = range(near.start, near.stop, len(near) // _SCAN)
    return min(near, key=cost)
