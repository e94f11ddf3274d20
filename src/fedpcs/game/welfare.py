"""Social welfare of a profile, and what anarchy costs: SW(ρ) = Σ_t Σ_i (ρ_i^t R_t − ψ_i (ρ_i^t)²).

The price of anarchy (PoA) compares a profile with the best one that budgets within [ρ_L, ρ_H] allow. The paper
compares with the unbounded optimum ρ = R/(2ψ), which no client may choose; both are reported, and the paper's two
bounds beside them with whether their premises hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game.rules import Game


@dataclass(frozen=True)
class Welfare:
    """Social welfare over the whole run.

    Attributes:
        equilibrium: Of the profile at hand.
        budget_blind: Of the equilibrium the same rewards bring about under a sampler that ignores budgets.
        optimum_bounded: The most that budgets in [ρ_L, ρ_H] allow.
        optimum_unbounded: The most without bounds, (1/4) Σ R_t² Σ 1/ψ_i.
        worst_case: With every budget at ρ_L.
    """

    equilibrium: float
    budget_blind: float
    optimum_bounded: float
    optimum_unbounded: float
    worst_case: float


@dataclass(frozen=True)
class PriceOfAnarchy:
    """Bounded optimum over welfare; None where welfare is not positive and the ratio means nothing.

    Attributes:
        equilibrium: Of the profile at hand; at least one.
        budget_blind: Of the budget-blind equilibrium.
        worst_case: Of everyone at ρ_L.
        paper_random_bound: Proposition 4: a lower bound on unbounded optimum ÷ welfare at ρ_L. It holds.
        paper_random_premise: Whether its premise, positive welfare at ρ_L, holds here.
        paper_private_bound: Theorem 6: R_max/(2N) Σ 1/ψ_i, claimed as an upper bound. It is not one in general.
        paper_private_premise: Whether what its proof assumes holds here: N Σ R_t ≤ (T+1) Σ ψ_i and
            positive welfare at ρ_H.
    """

    equilibrium: float | None
    budget_blind: float | None
    worst_case: float | None
    paper_random_bound: float
    paper_random_premise: bool
    paper_private_bound: float
    paper_private_premise: bool


def social_welfare(budget: FloatArray, reward: FloatArray, game: Game) -> float:
    """Return SW of (rounds, types) budgets."""
    each = budget * reward[:, None] - game.population.privacy_aversion * budget**2
    return float((each @ game.population.client_count).sum())


def optimal_budget(reward: FloatArray, game: Game) -> FloatArray:
    """Return the welfare-maximising budgets within bounds, clip(R_t/(2ψ_i), ρ_L, ρ_H): (rounds, types)."""
    free = reward[:, None] / (2.0 * game.population.privacy_aversion)
    return np.asarray(free.clip(*game.budget_bounds))


def assess(
    budget: FloatArray, blind_budget: FloatArray, reward: FloatArray, game: Game
) -> tuple[Welfare, PriceOfAnarchy]:
    """Return welfare and price of anarchy of a profile and of its budget-blind counterpart."""
    count, aversion = game.population.client_count, game.population.privacy_aversion
    inverse_aversion = float(count @ (1.0 / aversion))
    lowest = np.full((reward.size, aversion.size), game.budget_bounds[0])
    highest = np.full_like(lowest, game.budget_bounds[1])
    welfare = Welfare(
        equilibrium=social_welfare(budget, reward, game),
        budget_blind=social_welfare(blind_budget, reward, game),
        optimum_bounded=social_welfare(optimal_budget(reward, game), reward, game),
        optimum_unbounded=0.25 * float((reward**2).sum()) * inverse_aversion,
        worst_case=social_welfare(lowest, reward, game),
    )

    def price(value: float) -> float | None:
        return welfare.optimum_bounded / value if value > 0.0 else None

    clients, rounds, total = game.num_clients, reward.size, float(reward.sum())
    return welfare, PriceOfAnarchy(
        equilibrium=price(welfare.equilibrium),
        budget_blind=price(welfare.budget_blind),
        worst_case=price(welfare.worst_case),
        paper_random_bound=total * inverse_aversion / (4.0 * clients * game.budget_bounds[0] * rounds),
        paper_random_premise=welfare.worst_case > 0.0,
        paper_private_bound=float(reward.max()) * inverse_aversion / (2.0 * clients),
        paper_private_premise=clients * total <= rounds * float(count @ aversion)
        and social_welfare(highest, reward, game) > 0.0,
    )
