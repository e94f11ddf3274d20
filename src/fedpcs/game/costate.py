"""The paper's best response (Theorem 1): a stationary point from the discrete maximum principle.

Notation: λ costate, S stage derivative. For a client on the path (ρ, α),

    λ(T) = S(T),   λ(t) = α^t λ(t+1) + S(t),   α^t = λ(t+1)(ρ^t − φ(t)) / (2(1−ψ)P^t).

Differentiating the stage payoff gives S = P'·(ρR − ψρ² − (1−ψ)α²) + P·(R − 2ψρ) with P' = (K/(Nφ))(1−x)^{K−1}.
The paper's M_i^t loses the factor K/(Nφ) in front of −(ψρ² + (1−ψ)α²); `printed=True` keeps that slip, so the two can
be compared. Either way α is clipped to [0, 1], which the paper requires and its formula does not ensure. A stationary
point need not be a maximum: that is what `fedpcs.game.exact` is for.

λ(t+1) needs the factors of later rounds. Algorithm 1 loops over t = 0…T−1, so when α^t is computed those are still the
factors of the sweep before. Going backward from the last round, as one would with a costate, makes them new ones.
"""

from __future__ import annotations

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game.payoffs import Profile, selection_probability, selection_slope
from fedpcs.game.rules import Terms


def stage_derivative(profile: Profile, aversion: FloatArray, terms: Terms, *, printed: bool) -> FloatArray:
    """Return S(t) = ∂/∂ρ of the stage payoff, as it is or as the paper prints it: (rounds, types)."""
    ρ, α, ψ = profile.budget, profile.retention, aversion
    R = terms.reward[:, None]
    P = selection_probability(ρ, terms)
    if not terms.is_budget_aware:
        return np.asarray(P * (R - 2.0 * ψ * ρ))
    K, Nφ = terms.cohort_size[:, None], terms.num_clients * terms.mean_budget[:, None]
    slope = selection_slope(ρ, terms)
    # Theorem 1: Q R + M, with Q = P + ρP'. Printed, the last term of M has (1−x)^{K−1} where P' belongs.
    Q = P + ρ * slope
    M = -2.0 * ψ * ρ * P - (slope * Nφ / K if printed else slope) * (ψ * ρ**2 + (1.0 - ψ) * α**2)
    return np.asarray(Q * R + M)


def stationary_retention(
    profile: Profile, aversion: FloatArray, terms: Terms, *, printed: bool, backward: bool
) -> FloatArray:
    """Return the retention Theorem 1 asks for on the current path, clipped to [0, 1]: (rounds, types).

    Args:
        profile: The current path: budgets, and the retentions of the sweep before.
        aversion: (types,) ψ.
        terms: What is announced.
        printed: Whether S is the paper's, slip included.
        backward: Whether λ is built from the retentions just computed for later rounds, or from those of `profile`.
    """
    stage = stage_derivative(profile, aversion, terms, printed=printed)
    chance = selection_probability(profile.budget, terms)
    retention = np.zeros_like(profile.retention)
    costate = stage[-1]
    for t in range(terms.last_round - 1, -1, -1):
        gap = profile.budget[t] - terms.mean_budget[t]
        retention[t] = (costate * gap / (2.0 * (1.0 - aversion) * chance[t])).clip(0.0, 1.0)
        costate = (retention if backward else profile.retention)[t] * costate + stage[t]
    return retention
