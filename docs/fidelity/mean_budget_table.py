"""Mean budgets φ(t) of the default game beside reference values of an independent implementation."""

from __future__ import annotations

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import make_game, mean_field

ROUNDS = (0, 1, 2, 5, 10, 30)
REFERENCE = {
    1.0: (6.376, 5.225, 4.635, 3.979, 3.777, 3.762),
    5.0: (6.376, 6.382, 6.386, 6.373, 6.358, 6.363),
    10.0: (6.376, 7.318, 7.798, 8.273, 8.361, 8.367),
    20.0: (6.376, 7.924, 8.798, 10.039, 10.783, 11.493),
}


def mean_budgets(reward: float) -> FloatArray:
    """Return φ at `ROUNDS` in equilibrium under a constant reward."""
    game = make_game()
    mean = mean_field.settle(game, game.reward_path(reward)).profile.mean_budget
    return np.asarray(mean[list(ROUNDS)])


def main() -> None:
    """Print reference and measured values side by side."""
    rows = []
    for reward, reference in REFERENCE.items():
        found = mean_budgets(reward)
        gap = np.abs(found - reference).max()
        pairs = (f"{r:.3f} → {f:.3f}" for r, f in zip(reference, found, strict=True))
        rows.append([f"{reward:g}", *pairs, f"{gap:.3f}"])
    print(table(["reward", *(f"φ({t})" for t in ROUNDS), "largest difference"], rows))


if __name__ == "__main__":
    main()
