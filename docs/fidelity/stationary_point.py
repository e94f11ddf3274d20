"""Erratum 2: Theorem 1's point need not be a best response, its α leaves [0, 1], Algorithm 1 stops too early."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import Game, Terms, best_response, costate, individuals, make_game, mean_field
from fedpcs.game.payoffs import client_utility, profile_from_retention, selection_probability

REWARDS = (1.0, 5.0, 10.0, 20.0)
# The client of the default game that loses most by stopping at a stationary point under reward 1.
CLIENT = 62


@dataclass(frozen=True)
class StationaryClient:
    """A client at a stationary point of its own problem, and at its best response.

    Attributes:
        residual: How far the retention is from what Theorem 1 asks for on its own path.
        stationary_utility: What the stationary point earns.
        best_utility: What the exact response earns against the same announcement.
    """

    residual: float
    stationary_utility: float
    best_utility: float


def announcement(game: Game, reward: float) -> Terms:
    """Return the terms of the exact equilibrium under a constant reward."""
    path = game.reward_path(reward)
    return game.terms(path, mean_field.settle(game, path).profile.mean_budget)


def stop_at_stationary_point(game: Game, terms: Terms, client: int, num_sweeps: int = 400) -> StationaryClient:
    """Sweep the corrected Theorem 1 for one client from retention 0, damped by 0.1, φ held fixed."""
    aversion = float(game.population.privacy_aversion[client])
    budget = float(game.population.initial_budget[client])
    alone = individuals([aversion], [budget])
    retention = np.zeros((terms.last_round + 1, 1))
    for _ in range(num_sweeps):
        path = profile_from_retention(alone, retention, terms.mean_budget)
        asked = costate.stationary_retention(path, alone.privacy_aversion, terms, printed=False, backward=True)
        residual = float(np.abs(asked - retention).max())
        retention = retention + 0.1 * (asked - retention)
    stationary = profile_from_retention(alone, retention, terms.mean_budget)
    best = best_response(terms, aversion, budget)

    def utility(budgets: FloatArray, retentions: FloatArray) -> float:
        return float(client_utility(budgets, retentions, alone.privacy_aversion, terms)[0])

    return StationaryClient(
        residual,
        utility(stationary.budget, retention),
        utility(best.budget[:, None], best.retention[:, None]),
    )


def unclipped_retention(game: Game, reward: float, *, printed: bool) -> FloatArray:
    """Return the optimal correction factor of Theorem 1 on the exact equilibrium's path, not clipped: (T, clients)."""
    path, aversion = game.reward_path(reward), game.population.privacy_aversion
    profile = mean_field.settle(game, path).profile
    terms = game.terms(path, profile.mean_budget)
    stage = costate.stage_derivative(profile, aversion, terms, printed=printed)
    chance = selection_probability(profile.budget, terms)
    asked = np.empty((path.size - 1, aversion.size))
    onward = stage[-1]
    for t in range(path.size - 2, -1, -1):
        gap = profile.budget[t] - profile.mean_budget[t]
        asked[t] = onward * gap / (2.0 * (1.0 - aversion) * chance[t])
        onward = profile.retention[t] * onward + stage[t]
    return asked


def share_outside(asked: FloatArray, slack: float = 0.01) -> float:
    """Return the share of retentions outside [0, 1] by more than `slack`."""
    return float(((asked < -slack) | (asked > 1.0 + slack)).mean())


def signed_stop(game: Game, reward: float, tolerance: float = 1e-3) -> tuple[int, float]:
    """Return the first sweep at which φ_m − φ_{m−1} ≤ tolerance in every round, and max |φ_m − φ_{m−1}| there."""
    history = mean_field.settle(game, game.reward_path(reward), "paper").history
    change = np.diff(history, axis=0)
    sweep = int(np.flatnonzero(change.max(axis=1) <= tolerance)[0])
    return sweep + 1, float(np.abs(change[sweep]).max())


def main() -> None:
    """Print the client, then the range of α and the early stop for each reward."""
    game = make_game()
    found = stop_at_stationary_point(game, announcement(game, 1.0), CLIENT)
    loss = 1.0 - found.stationary_utility / found.best_utility
    print(
        f"Client {CLIENT} (ψ = {game.population.privacy_aversion[CLIENT]:.3f}, "
        f"ρ⁰ = {game.population.initial_budget[CLIENT]:.3f}), reward 1: stationary to {found.residual:.0e}, "
        f"utility {found.stationary_utility:.2f}; best response {found.best_utility:.2f}; {100 * loss:.0f} % lost.\n"
    )
    rows = []
    for reward in REWARDS:
        corrected, printed = (unclipped_retention(game, reward, printed=flag) for flag in (False, True))
        sweep, change = signed_stop(game, reward)
        rows.append(
            [
                f"{reward:g}",
                f"{100.0 * share_outside(corrected):.0f} %",
                f"{100.0 * share_outside(printed):.0f} %",
                str(sweep),
                f"{change:.2f}",
            ]
        )
    header = ["reward", "corrected α outside [0, 1]", "printed α outside", "signed test stops at sweep"]
    print(table([*header, "largest change of φ there"], rows))


if __name__ == "__main__":
    main()
