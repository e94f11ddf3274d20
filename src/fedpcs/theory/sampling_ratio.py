"""Theorem 7: reward and cohort under a cap on the cohort's budget, for identical clients with ρ = G·R + H.

The cost of K clients is K·(a/ρ + (1 − γ)Rρ), subject to Kρ ≤ B. The paper's answer makes K as large as the cap allows,
⌊B/ρ*⌋, with ρ* = (2Ga/(1 − γ))^{1/3}. But the cost grows with K: one client is cheapest, and the multiplier of the cap
is negative wherever the reward is positive. What makes more clients worth their pay is the error of the draw, v/K,
which Proposition 3 has and the cost has not. With it, for each K the cost is convex in ρ, its least is where

    2ρ³ − Hρ² = Ga/(1 − γ),   or at an end of [H, B/K],

and K is found by trying all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from fedpcs import _validate
from fedpcs._caps import allowance, largest_count
from fedpcs.errors import InvalidInput


@dataclass(frozen=True)
class CappedCohort:
    """Identical clients whose budget answers the reward, and a cap on what a cohort may spend.

    Attributes:
        slope: G.
        offset: H; the budget of unpaid clients.
        accuracy_weight: a, the paper's upsilon γθ²/(t|D|²): what a client's noise costs, times its budget.
        reward_weight: 1 − γ.
        budget_cap: B.
        num_clients: N.
        sampling_error: v: what drawing costs, times K; the paper leaves it out.
    """

    slope: float
    offset: float
    accuracy_weight: float
    reward_weight: float
    budget_cap: float
    num_clients: int
    sampling_error: float = 0.0


@dataclass(frozen=True)
class RatioPlan:
    """A reward, and how many to draw for it.

    Attributes:
        reward: R.
        budget: ρ = G·R + H.
        cohort_size: K; zero if the cap is below one client's budget.
        cost: Of this plan, v/K included.
        is_feasible: Whether R ≥ 0, 1 ≤ K ≤ N and Kρ ≤ B, up to the slack of 1e-9 that caps have.
    """

    reward: float
    budget: float
    cohort_size: int
    cost: float
    is_feasible: bool


def paper_ratio(problem: CappedCohort) -> RatioPlan:
    """Return Theorem 7's plan, Eq. (opt_reward_and_tau)."""
    _check(problem)
    budget = (2.0 * problem.slope * problem.accuracy_weight / problem.reward_weight) ** (1.0 / 3.0)
    return _plan(problem, budget, largest_count(problem.budget_cap, budget, problem.num_clients))


def valid_ratio(problem: CappedCohort) -> RatioPlan:
    """Return the cheapest feasible plan.

    Raises:
        InvalidInput: Not even one unpaid client fits under the cap.
    """
    _check(problem)
    _validate.number("offset", problem.offset, low=0.0)
    most = problem.num_clients
    if problem.offset > 0.0:
        most = largest_count(problem.budget_cap, problem.offset, most)
    if most < 1:
        raise InvalidInput(f"budget_cap must be at least offset, {problem.offset!r}, got {problem.budget_cap!r}.")
    root = _cheapest_budget(problem)
    budgets = (max(problem.offset, min(root, problem.budget_cap / size)) for size in range(1, most + 1))
    plans = (_plan(problem, budget, size) for size, budget in enumerate(budgets, start=1))
    return min(plans, key=lambda plan: plan.cost)


def cost_of(problem: CappedCohort, budget: float, cohort_size: int) -> float:
    """Return K(a/ρ + (1 − γ)Rρ) + v/K."""
    each = problem.accuracy_weight / budget + problem.reward_weight * budget * (budget - problem.offset) / problem.slope
    return cohort_size * each + (problem.sampling_error / cohort_size if cohort_size else np.inf)


def multiplier_of(problem: CappedCohort, budget: float) -> float:
    """Return the multiplier of the cap that the paper's conditions ask for at a budget; it must not be negative."""
    return problem.accuracy_weight / budget**2 - problem.reward_weight / problem.slope * (2.0 * budget - problem.offset)


def _cheapest_budget(problem: CappedCohort) -> float:
    """Return where the cost of one client is least among budgets of at least H."""
    target = problem.slope * problem.accuracy_weight / problem.reward_weight

    def steepness(budget: float) -> float:
        return 2.0 * budget**3 - problem.offset * budget**2 - target

    high = max(problem.offset, target ** (1.0 / 3.0)) + target ** (1.0 / 3.0)
    return max(problem.offset, float(optimize.brentq(steepness, 0.0, high, xtol=1e-14)))


def _plan(problem: CappedCohort, budget: float, cohort_size: int) -> RatioPlan:
    reward = (budget - problem.offset) / problem.slope
    fits = reward >= 0.0 and cohort_size >= 1 and cohort_size * budget <= allowance(problem.budget_cap)
    return RatioPlan(reward, budget, cohort_size, cost_of(problem, budget, cohort_size), fits)


def _check(problem: CappedCohort) -> None:
    for name in ("slope", "accuracy_weight", "reward_weight", "budget_cap"):
        _validate.positive(name, getattr(problem, name))
    _validate.number("offset", problem.offset)
    _validate.number("sampling_error", problem.sampling_error, low=0.0)
    _validate.integer("num_clients", problem.num_clients, low=1)
