"""What each side earns and pays: a client's utility over the run, the server's cost round by round.

Client i, given announced rewards R_t and mean budgets φ(t), earns

    Σ_t P_i^t · (ρ_i^t R_t − ψ_i (ρ_i^t)² − (1−ψ_i)(α_i^t)²),     ρ^{t+1} = (1−α^t) φ(t) + α^t ρ^t,

with P = 1 − (1 − x)^K and x = min(1, ρ/(Nφ)) when the draw favours budgets, P = K/N when it ignores them.
The server pays, in expectation over the draw,

    U_t = Σ_i π_i^t [ γ a / ((t+1) ρ_i^t) + (1−γ) R_t ρ_i^t ],

where π_i is the probability that i is in the cohort: min(1, c·ρ_i) adding up to K, or K/N.
The paper divides by t, which is zero in the first round; we divide by t + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs import _validate
from fedpcs._inclusion import inclusion_probability
from fedpcs._validate import FloatArray
from fedpcs.game.population import Population
from fedpcs.game.rules import Game, Terms


@dataclass(frozen=True)
class Profile:
    """What every client does, and the mean it adds up to.

    Attributes:
        budget: (rounds, types) ρ.
        retention: (rounds, types) α in [0, 1]; zero in the last round.
        mean_budget: (rounds,) φ, the weighted mean of `budget`.
    """

    budget: FloatArray
    retention: FloatArray
    mean_budget: FloatArray


def profile_from_retention(
    population: Population, retention: FloatArray, announced: FloatArray | None = None
) -> Profile:
    """Play (rounds, types) retentions against the mean field they create themselves, or against an announced one."""
    budget, mean = np.empty_like(retention), np.empty(retention.shape[0])
    budget[0] = population.initial_budget
    for t in range(mean.size):
        mean[t] = population.weight @ budget[t]
        if t + 1 < mean.size:
            facing = mean[t] if announced is None else announced[t]
            budget[t + 1] = facing + retention[t] * (budget[t] - facing)
    return Profile(budget, retention, mean)


def selection_probability(budget: FloatArray, terms: Terms) -> FloatArray:
    """Return P, the chance of being drawn, for a (rounds, types) array of budgets."""
    return chance_of(budget, terms.mean_budget[:, None], terms.cohort_size[:, None], terms)


def chance_of(budget: FloatArray, mean: FloatArray | float, cohort: FloatArray | float, terms: Terms) -> FloatArray:
    """Return P for budgets that face a mean and a cohort size, broadcast against them."""
    if not terms.is_budget_aware:
        return np.broadcast_to(np.asarray(cohort / terms.num_clients), budget.shape)
    share = np.minimum(1.0, budget / (terms.num_clients * mean))
    # 1 − (1−x)^K without cancellation when x is tiny; log1p(−1) = −inf gives P = 1 as it should.
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(cohort * np.log1p(-share)))


def selection_slope(budget: FloatArray, terms: Terms) -> FloatArray:
    """Return dP/dρ = (K/(Nφ))(1−x)^{K−1}, zero once a client is certain to be drawn: (rounds, types)."""
    if not terms.is_budget_aware:
        return np.zeros_like(budget)
    cohort, total = terms.cohort_size[:, None], terms.num_clients * terms.mean_budget[:, None]
    missed = (1.0 - np.minimum(1.0, budget / total)) ** (cohort - 1.0)
    return np.where(budget < total, cohort / total * missed, 0.0)


def client_utility(budget: FloatArray, retention: FloatArray, privacy_aversion: FloatArray, terms: Terms) -> FloatArray:
    """Return each type's utility over the whole run: (types,) from (rounds, types) paths."""
    net = budget * terms.reward[:, None] - privacy_aversion * budget**2
    net -= (1.0 - privacy_aversion) * retention**2
    return np.asarray((selection_probability(budget, terms) * net).sum(axis=0))


def cohort_inclusion(budget: FloatArray, cohort_size: float, game: Game) -> FloatArray:
    """Return π, one client's chance of being in a cohort of `cohort_size`, for one round's (types,) budgets."""
    if game.selection == "budget-blind":
        return np.full_like(budget, cohort_size / game.num_clients)
    return inclusion_probability(budget, cohort_size, game.population.client_count)


def server_cost(budget: FloatArray, reward: FloatArray, game: Game) -> FloatArray:
    """Return U_t, the server's expected cost in each round: (rounds,)."""
    priority = game.accuracy_priority
    count = game.population.client_count
    cost = np.empty(budget.shape[0])
    for t, row in enumerate(budget):
        each = priority * game.accuracy_scale / ((t + 1) * row) + (1.0 - priority) * reward[t] * row
        cost[t] = count @ (cohort_inclusion(row, float(game.cohort_size[t]), game) * each)
    return cost


def accuracy_scale_from_constants(
    *, smoothness: float, pl_constant: float, dimension: int, clip_norm: float, total_samples: int
) -> float:
    """Return a = β d W² / (μ² (Σ|D_i|)²), the constant the paper drops from its accuracy term.

    Proposition 2 bounds the loss by β/(2μ²t)·(V² + 2dW² Σ θ_i²/(|D_i|²ρ_i)), and θ_i/|D_i| is 1/Σ|D_j| for every
    client. Without the constant the term is about 1e-10 and the best reward is zero.

    Example:
        >>> accuracy_scale_from_constants(
        ...     smoothness=10.0, pl_constant=0.01, dimension=1_663_370, clip_norm=15.0, total_samples=60_000)
        10396.0625
    """
    beta = _validate.positive("smoothness", smoothness)
    mu = _validate.positive("pl_constant", pl_constant)
    norm = _validate.positive("clip_norm", clip_norm)
    size = _validate.integer("dimension", dimension, low=1)
    samples = _validate.integer("total_samples", total_samples, low=1)
    return beta * size * norm**2 / (mu**2 * samples**2)
