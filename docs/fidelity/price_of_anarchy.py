"""Erratum 8: Theorem 6's bound on the price of anarchy as ρ_H grows, and Proposition 4 on random games."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _markdown import table

from fedpcs.game import make_game, uniform
from fedpcs.game.welfare import PriceOfAnarchy, Welfare, assess

REWARD = 10.0
CEILINGS = (12.0, 15.0, 18.0, 18.2, 20.0, 50.0, 500.0)


@dataclass(frozen=True)
class AtCeiling:
    """Welfare when everybody sits at ρ_H, what the paper takes for the worst equilibrium.

    Attributes:
        welfare: SW^(pri).
        price: Unbounded optimum over it, the paper's ratio.
        bound: R_max/(2N) Σ 1/ψ, claimed to be above it.
    """

    welfare: float
    price: float
    bound: float


def at_ceiling(ceiling: float, reward: float = REWARD) -> AtCeiling:
    """Return the paper's worst case for the default crowd with budgets in [0.01, ceiling]."""
    game = make_game(uniform(100, seed=0), budget_bounds=(0.01, ceiling))
    path = game.reward_path(reward)
    budget = np.full((path.size, game.num_clients), ceiling)
    welfare, anarchy = assess(budget, budget, path, game)
    return AtCeiling(welfare.equilibrium, welfare.optimum_unbounded / welfare.equilibrium, anarchy.paper_private_bound)


def assess_random_game(rng: np.random.Generator) -> tuple[Welfare, PriceOfAnarchy]:
    """Draw a crowd, floor, length and rewards, and assess everybody at ρ_L."""
    floor = float(10.0 ** rng.uniform(-3.0, 0.5))
    bounds = (floor, floor + float(rng.uniform(0.1, 20.0)))
    crowd = uniform(int(rng.integers(2, 60)), seed=int(rng.integers(2**31)), budget_bounds=bounds)
    game = make_game(crowd, last_round=int(rng.integers(1, 40)), cohort_size=1, budget_bounds=bounds)
    path = rng.uniform(0.0, 10.0 ** rng.uniform(-1.0, 1.5), game.last_round + 1)
    budget = np.full((path.size, game.num_clients), floor)
    return assess(budget, budget, path, game)


def worst_random_margin(count: int, seed: int = 0) -> tuple[float, int]:
    """Return the least ratio of price to Proposition 4's bound over games that meet its premise, and their number."""
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(count):
        welfare, anarchy = assess_random_game(rng)
        if anarchy.paper_random_premise:
            ratios.append(welfare.optimum_unbounded / welfare.worst_case / anarchy.paper_random_bound)
    return min(ratios), len(ratios)


def main() -> None:
    """Print the paper's worst case for rising ρ_H, then the check of Proposition 4."""
    rows = []
    for ceiling in CEILINGS:
        found = at_ceiling(ceiling)
        verdict = "holds" if 1.0 <= found.price <= found.bound else "fails"
        rows.append([f"{ceiling:g}", f"{found.welfare:.0f}", f"{found.price:.3g}", f"{found.bound:.3g}", verdict])
    print(table(["ρ_H", "SW^(pri)", "PoA^(pri)", "claimed bound", "1 ≤ PoA ≤ bound"], rows))
    least, count = worst_random_margin(2_000)
    print(f"\nProposition 4: price ÷ bound is at least {least:.4f} in {count} random games that meet its premise.")


if __name__ == "__main__":
    main()
