"""Slow, plain twins of the solver's parts, written from the definitions with no code in common."""

from itertools import pairwise

import numpy as np


def utility(budget, retention, aversion, terms):
    """One client's utility, term by term."""
    total = 0.0
    for t in range(len(budget)):
        cohort, clients = terms.cohort_size[t], terms.num_clients
        chance = cohort / clients
        if terms.selection == "budget-aware":
            chance = 1 - (1 - min(1.0, budget[t] / (clients * terms.mean_budget[t]))) ** cohort
        total += chance * (budget[t] * terms.reward[t] - aversion * budget[t] ** 2 - (1 - aversion) * retention[t] ** 2)
    return total


def path(retention, start, terms):
    """Budgets that follow from retentions."""
    budget = [start]
    for t in range(terms.last_round):
        mean = terms.mean_budget[t]
        budget.append((1 - retention[t]) * mean + retention[t] * budget[-1])
    return np.array(budget)


def brute_force(start, aversion, terms, num_actions=21):
    """Best utility over every sequence of retentions on a grid: exponential, for two or three rounds."""
    actions = np.linspace(0.0, 1.0, num_actions)
    best = -np.inf
    for choice in np.ndindex(*(num_actions,) * terms.last_round):
        retention = np.append(actions[list(choice)], 0.0)
        best = max(best, utility(path(retention, start, terms), retention, aversion, terms))
    return best


def improve(retention, start, aversion, terms, steps=(0.1, 0.01, 0.001, 1e-4)):
    """Climb from a path of retentions, one coordinate at a time, until no step helps."""
    retention = np.array(retention, dtype=float)
    value = utility(path(retention, start, terms), retention, aversion, terms)
    for step in steps:
        moved = True
        while moved:
            moved = False
            for t in range(terms.last_round):
                for change in (step, -step):
                    trial = retention.copy()
                    trial[t] = min(1.0, max(0.0, trial[t] + change))
                    other = utility(path(trial, start, terms), trial, aversion, terms)
                    if other > value + 1e-12:
                        retention, value, moved = trial, other, True
    return value


def is_between(low_high, value):
    """Whether value lies between two numbers given in either order."""
    return min(low_high) - 1e-12 <= value <= max(low_high) + 1e-12


def moves_towards_mean(budget, mean):
    """Whether every next budget lies between the current one and the mean."""
    return all(is_between((now, mean[t]), later) for t, (now, later) in enumerate(pairwise(budget)))


def algorithm_1(game, reward, num_sweeps, *, backward=False):
    """Algorithm 1 of the paper in plain loops, rewards held; its outer loop read as over all t at once.

    As printed, the loop of line 5 goes over t = 0…T−1. `backward` has it go over t = T−1…0. α is cut to [0, 1]: the
    paper says that it lies in (0, 1). ρ/(Nφ) is cut at 1. Initial factors are those asked of clients who play α = 0.

    Returns:
        φ before the first sweep and after each; ρ of the last sweep and the α it was played with, by round and client.
    """
    T, K = game.last_round, [float(k) for k in game.cohort_size]
    R = [float(r) for r in reward]
    ψ = [float(p) for p in game.population.privacy_aversion]
    start = [float(b) for b in game.population.initial_budget]
    N = len(ψ)
    φ = [sum(start) / N] * (T + 1)
    α = [[0.0] * N for _ in range(T + 1)]
    ρ = budgets_of(start, α, φ)
    update_factors(α, ρ, φ, R, ψ, K, backward)
    history = [φ]
    for _ in range(num_sweeps):
        played = [list(row) for row in α]
        ρ = budgets_of(start, played, φ)  # lines 3 and 4
        update_factors(α, ρ, φ, R, ψ, K, backward)  # lines 5 to 9, R as given
        φ = [sum(ρ[t]) / N for t in range(T + 1)]  # lines 10 and 11
        history.append(φ)
    return np.array(history), np.array(ρ), np.array(played)


def budgets_of(start, α, φ):
    """ρ_i^{t+1} = (1 − α_i^t) φ(t) + α_i^t ρ_i^t."""
    ρ = [list(start)]
    for t in range(len(φ) - 1):
        ρ.append([(1 - α[t][i]) * φ[t] + α[t][i] * ρ[t][i] for i in range(len(start))])
    return ρ


def update_factors(α, ρ, φ, R, ψ, K, backward):
    """Lines 5 to 9 without R: replace α_i^t by Theorem 1's, one round after the other, in place."""
    N, T = len(ψ), len(φ) - 1
    before = [list(row) for row in α]
    for t in reversed(range(T)) if backward else range(T):
        for i in range(N):
            x = min(1.0, ρ[t][i] / (N * φ[t]))
            λ = weight_of_later_rounds(t, i, α, before, ρ, φ, R, ψ, K)
            asked = (ρ[t][i] - φ[t]) * λ / (2 * (1 - ψ[i]) * (1 - (1 - x) ** K[t]))
            α[t][i] = min(1.0, max(0.0, asked))
    α[T] = [0.0] * N


def weight_of_later_rounds(t, i, α, before, ρ, φ, R, ψ, K):
    """The bracket of Theorem 1: Σ_{j=t+2}^T [S(j) Π_{r=t+1}^{j−1} α^r] + S(t+1), S with the α of the sweep before."""
    T = len(φ) - 1
    total = 0.0
    for j in range(t + 1, T + 1):
        product = 1.0
        for r in range(t + 1, j):
            product *= α[r][i]
        total += printed_stage(ρ[j][i], before[j][i], φ[j], R[j], ψ[i], K[j], len(ψ)) * product
    return total


def printed_stage(ρ, α, φ, R, ψ, K, N):
    """S = Q R + M as in Theorem 1."""
    x = min(1.0, ρ / (N * φ))
    missed = (1 - x) ** (K - 1) if x < 1 else 0.0
    Q = 1 - (1 - x) ** K + missed * K * ρ / (N * φ)
    M = -2 * ψ * ρ * (1 - (1 - x) ** K) - missed * (ψ * ρ**2 + (1 - ψ) * α**2)
    return Q * R + M
