"""Errata 3 and 4: what the accuracy term weighs, and which constant reward it makes worth paying."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import Game, accuracy_scale_from_constants, make_game, mean_field
from fedpcs.game.payoffs import server_cost

# 60 000 samples in all, as in Fashion-MNIST.
TOTAL_SAMPLES = 60_000
REWARDS = (0.0, 0.001, 0.01, 0.1, 0.25, 0.5, *np.arange(1.0, 10.5, 0.5).tolist())


def budgets_by_reward(game: Game) -> dict[float, FloatArray]:
    """Return equilibrium budgets for each constant reward; they do not depend on `accuracy_scale`."""
    return {reward: mean_field.settle(game, game.reward_path(reward)).profile.budget for reward in REWARDS}


def best_constant(game: Game, budgets: dict[float, FloatArray]) -> float:
    """Return the constant reward of least server cost among those given."""
    return min(budgets, key=lambda reward: float(server_cost(budgets[reward], game.reward_path(reward), game).sum()))


def main() -> None:
    """Print the cheapest constant reward for several sizes of the constant."""
    game = make_game()
    budgets = budgets_by_reward(game)
    restored = accuracy_scale_from_constants(
        smoothness=10.0, pl_constant=0.01, dimension=1_663_370, clip_norm=15.0, total_samples=TOTAL_SAMPLES
    )
    scales = {
        "printed: 1/(ΣD)²": 1.0 / TOTAL_SAMPLES**2,
        "1": 1.0,
        "10": 10.0,
        "100": 100.0,
        "1000": 1000.0,
        "β = 10, μ = 0.01, d = 1 663 370, W = 15": restored,
    }
    rows = []
    for name, scale in scales.items():
        reward = best_constant(replace(game, accuracy_scale=scale), budgets)
        rows.append([name, f"{scale:.3g}", f"{reward:g}"])
    print(table(["constant", "value", "cheapest constant reward"], rows))


if __name__ == "__main__":
    main()
