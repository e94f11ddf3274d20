"""The leader's half of the certificate: could the server have announced something cheaper?

A reward path is set against constant rewards, the per-round policy, and perturbations of itself (other levels,
tilts, bumps of several widths), each judged by the equilibrium it brings about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game import mean_field
from fedpcs.game.payoffs import server_cost
from fedpcs.game.per_round import per_round
from fedpcs.game.rules import Game


@dataclass(frozen=True)
class ServerCheck:
    """Total costs, all under exact responses.

    Attributes:
        announced: Of the path at hand.
        best_constant: Of the cheapest constant reward tried.
        best_constant_reward: Which one that is.
        per_round: Of the paper's per-round policy.
        best_perturbation: Of the cheapest perturbation tried.
        improvement: Largest relative saving any of them offers; zero if none does.
    """

    announced: float
    best_constant: float
    best_constant_reward: float
    per_round: float
    best_perturbation: float
    improvement: float


def check_server(game: Game, path: FloatArray, *, num_constants: int = 25) -> ServerCheck:
    """Compare `path` with what else the server could announce."""

    def cost(rewards: FloatArray) -> float:
        outcome = mean_field.settle(game, rewards.clip(0.0, game.reward_max))
        return float(server_cost(outcome.profile.budget, rewards.clip(0.0, game.reward_max), game).sum())

    announced = cost(path)
    ceiling = min(game.reward_max, 3.0 * max(float(path.max()), 0.01 * game.reward_max))
    constants = np.linspace(0.0, ceiling, num_constants)
    constant_costs = [cost(np.full(path.size, reward)) for reward in constants]
    best = int(np.argmin(constant_costs))
    lemma = cost(per_round(game).path)
    perturbed = min(cost(other) for other in perturbations(path))
    saving = 1.0 - min(constant_costs[best], lemma, perturbed) / announced
    return ServerCheck(announced, constant_costs[best], float(constants[best]), lemma, perturbed, max(0.0, saving))


def perturbations(path: FloatArray, size: float = 0.1) -> list[FloatArray]:
    """Return paths near `path`: scaled, tilted, and bumped by ±`size` of the mean level at several widths."""
    rounds = np.arange(path.size)
    tilt = np.linspace(1.0, -1.0, path.size)
    others = [path * (1.0 + size), path * (1.0 - size), path * (1.0 + size * tilt), path * (1.0 - size * tilt)]
    for width in sorted({max(1, path.size // 3), max(1, path.size // 8)}, reverse=True):
        for centre in range(width // 2, path.size, 2 * width):
            hat = np.maximum(0.0, 1.0 - np.abs(rounds - centre) / width)
            others += [path + sign * size * float(path.mean()) * hat for sign in (1.0, -1.0)]
    return others
