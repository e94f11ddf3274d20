"""Erratum 6: what reward policies cost the server over a run, and what they pay when.

Two costs on the default game with γ = 0.5: the equal-weight one, Σ_t mean_i[γa/((t+1)ρ) + (1−γ)R_t ρ], for which an
independent implementation published values, and the server cost of fedpcs, in which clients count by their
probability of being in the cohort (`fedpcs.game.payoffs.server_cost`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import Game, make_game, mean_field
from fedpcs.game.equilibrium import plan_rewards
from fedpcs.game.payoffs import server_cost

SCALES = (1_000.0, 10_000.0)
POLICIES = ("no reward", "per-round", "best constant", "commitment")
# Equal-weight totals of the independent implementation, in the order of POLICIES.
REFERENCE = {1_000.0: (1416, 1053, 772, 770), 10_000.0: (14157, 7014, 5631, 5598)}
CONSTANTS = np.arange(0.5, 9.01, 0.25)


@dataclass(frozen=True)
class Outcome:
    """A reward path and the equilibrium budgets under it."""

    path: FloatArray
    budget: FloatArray


def play(game: Game, path: FloatArray) -> Outcome:
    """Return the equilibrium under `path`; it does not depend on `accuracy_scale`."""
    return Outcome(path, mean_field.settle(game, path).profile.budget)


def equal_weight_cost(outcome: Outcome, game: Game) -> float:
    """Return the total in which every client counts alike."""
    rounds = np.arange(1, outcome.path.size + 1)[:, None]
    priority = game.accuracy_priority
    each = priority * game.accuracy_scale / (rounds * outcome.budget)
    each += (1.0 - priority) * outcome.path[:, None] * outcome.budget
    return float((each @ game.population.weight).sum())


def total_cost(outcome: Outcome, game: Game) -> float:
    """Return the server cost of fedpcs over the run."""
    return float(server_cost(outcome.budget, outcome.path, game).sum())


def main() -> None:
    """Print costs, then the rewards that the policies announce."""
    base = make_game()
    idle = play(base, base.reward_path(0.0))
    constants = [play(base, base.reward_path(float(reward))) for reward in CONSTANTS]
    costs, paths = [], []
    for scale in SCALES:
        game = make_game(accuracy_scale=scale)
        planned = {policy: play(game, plan_rewards(game, policy).path) for policy in ("per-round", "commitment")}
        for policy, reference in zip(POLICIES, REFERENCE[scale], strict=True):
            fixed = constants if policy == "best constant" else [planned.get(policy, idle)]
            equal = min(fixed, key=lambda outcome: equal_weight_cost(outcome, game))
            ours = min(fixed, key=lambda outcome: total_cost(outcome, game))
            note = f" (R = {equal.path[0]:g}; {ours.path[0]:g})" if policy == "best constant" else ""
            costs.append(
                [
                    f"{scale:g}",
                    policy + note,
                    f"{reference} → {equal_weight_cost(equal, game):.0f}",
                    f"{total_cost(ours, game):.0f}",
                ]
            )
        for policy, outcome in planned.items():
            shown = (f"{outcome.path[t]:.2f}" for t in (0, 1, 2, 5, 10, 20, 30))
            paths.append([f"{scale:g}", policy, *shown, f"{int((outcome.path > 0.0).sum())} of 31"])
    print(table(["scale", "policy", "equal-weight cost", "server cost"], costs))
    print()
    print(table(["scale", "policy", *(f"R_{t}" for t in (0, 1, 2, 5, 10, 20, 30)), "rounds paid"], paths))


if __name__ == "__main__":
    main()
