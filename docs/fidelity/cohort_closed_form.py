"""Erratum 7: Theorem 7's reward and cohort against a plain search of the problem it is said to solve."""

from __future__ import annotations

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import make_game
from fedpcs.theory.sampling_ratio import CappedCohort, RatioPlan, multiplier_of, paper_ratio

Case = tuple[float, float, float, int]
# Slope G, offset H, cap B, round t; the default game has N = 100, γ = 0.5, a = 10 000.
GAME = make_game()
CASES: tuple[Case, ...] = (
    (1.0, 0.0, 300.0, 0),
    (1.0, 4.0, 300.0, 5),
    (0.5, 6.0, 500.0, 10),
    (2.0, 10.0, 700.0, 20),
    (0.1, 12.0, 700.0, 25),
)


def cost(num_drawn: FloatArray | int, reward: FloatArray | float, case: Case) -> FloatArray:
    """Return K (v/ρ + (1−γ) R ρ) for identical clients on ρ = G R + H."""
    slope, offset, _, t = case
    # Notation (Theorem 7): v = γa/(t+1) is the paper's upsilon.
    γ, ρ = GAME.accuracy_priority, slope * np.asarray(reward) + offset
    v = γ * GAME.accuracy_scale / (t + 1)
    return np.asarray(num_drawn * (v / ρ + (1.0 - γ) * reward * ρ))


def search(case: Case, sizes: FloatArray) -> tuple[float, int, float] | None:
    """Return (cost, K, R) of the best K in `sizes` and R in [0, R_max] with K ρ ≤ B; None if there is none."""
    slope, offset, cap, _ = case
    size, reward = np.meshgrid(sizes, np.linspace(1e-9, GAME.reward_max, 20_001), indexing="ij")
    is_feasible = size * (slope * reward + offset) <= cap
    costs = np.where(is_feasible, cost(size, reward, case), np.inf)
    best = int(np.argmin(costs))
    return (float(costs.flat[best]), int(size.flat[best]), float(reward.flat[best])) if is_feasible.any() else None


def printed(case: Case) -> tuple[RatioPlan, float]:
    """Return Theorem 7's answer, and the multiplier of the cap there."""
    slope, offset, cap, t = case
    weight = GAME.accuracy_priority * GAME.accuracy_scale / (t + 1)
    problem = CappedCohort(slope, offset, weight, 1.0 - GAME.accuracy_priority, cap, GAME.num_clients)
    answer = paper_ratio(problem)
    return answer, multiplier_of(problem, answer.budget)


def describe(found: tuple[float, int, float] | None) -> str:
    """Return "cost (R, K)" of a search."""
    return "none fits" if found is None else f"{found[0]:.0f} ({found[2]:.2f}, {found[1]})"


def main() -> None:
    """Print one row per case."""
    rows = []
    for case in CASES:
        answer, multiplier = printed(case)
        theirs = (float(cost(answer.cohort_size, answer.reward, case)), answer.cohort_size, answer.reward)
        rows.append(
            [
                ", ".join(f"{value:g}" for value in case),
                describe(theirs),
                f"{multiplier:.2f}",
                describe(search(case, np.array([float(answer.cohort_size)]))),
                describe(search(case, np.arange(1.0, GAME.num_clients + 1.0))),
            ]
        )
    print(table(["G, H, B, t", "Theorem 7: cost (R, K)", "multiplier", "same K, best R", "best K and R"], rows))


if __name__ == "__main__":
    main()
