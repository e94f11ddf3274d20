"""Where the loss went, round by round: what each step gained, what took it back, and the bound on both.

A step Δ = w(t) − w(t+1) has three parts: what clients agree on (signal), what they differ by (spread: the error of the
draw) and noise, each of the last two zero on average. To second order, with H the Hessian at w(t),

    E F(w(t+1)) − F(w(t)) = −E ∇F·Δ + ½ E ΔᵀHΔ,       ½ E[noiseᵀ H noise] = ½ (tr H/d) ‖noise‖²,

because noise is isotropic and independent: it meets the mean of H's eigenvalues, not the largest. For any F, not only a
quadratic one, E F(w + noise) ≤ F(w) + ½ (sup tr H/d) ‖noise‖²: differentiate by the noise's variance, the heat equation
gives ½ tr H. So one round's change is bounded by Proposition 3's valid form with its own numbers in it:

    −∇F·Δ + ½ β (‖signal‖² + ‖spread‖²) + ½ (tr H/d) ‖noise‖²,        β the largest eigenvalue of H.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.theory.bound import Bound, Premise

ERRORS = ("noise", "sampling", "overshoot", "drift")
# More of a step than this that second order does not explain, and the bound has no leg to stand on.
_MOST_UNEXPLAINED = 0.25


@dataclass(frozen=True)
class WatchedRounds:
    """What was measured of each round; (rounds,) each.

    Attributes:
        loss: F(w(t)) before the round, on training records.
        change: F(w(t+1)) − F(w(t)).
        gain: ∇F(w(t))·Δ.
        bent: ΔᵀHΔ.
        top_curvature: β, at w(t).
        mean_curvature: tr H/d, at w(t).
        signal: Norm of what clients' updates have in common.
        spread: Norm of the draw's error in the step.
        noise: Norm of the noise in the step.
        client_spread: Root mean squared distance of a client's update from what they have in common.
        gradient_norm: ‖∇F(w(t))‖.
    """

    loss: FloatArray
    change: FloatArray
    gain: FloatArray
    bent: FloatArray
    top_curvature: FloatArray
    mean_curvature: FloatArray
    signal: FloatArray
    spread: FloatArray
    noise: FloatArray
    client_spread: FloatArray
    gradient_norm: FloatArray


def progress_bound(rounds: WatchedRounds) -> Bound:
    """Bound each round's change of the loss by what was measured in it; terms are (rounds,)."""
    β, mean = np.maximum(rounds.top_curvature, 0.0), np.maximum(rounds.mean_curvature, 0.0)
    astray = _astray(rounds)
    rest = float(np.abs(account(rounds)["rest"]).sum() / max(np.abs(rounds.gain).sum(), 1e-300))
    return Bound(
        "valid",
        {
            "descent": -rounds.gain,
            "overshoot": β / 2.0 * rounds.signal**2 * (1.0 - astray),
            "drift": β / 2.0 * rounds.signal**2 * astray,
            "sampling": β / 2.0 * rounds.spread**2,
            "noise": mean / 2.0 * rounds.noise**2,
        },
        (
            Premise(
                f"second order explains the steps (all but {rest:.0%} of what they gain)", rest <= _MOST_UNEXPLAINED
            ),
        ),
    )


def account(rounds: WatchedRounds) -> dict[str, FloatArray]:
    """Say where each round's change of the loss came from; entries add up to it. (rounds,) each.

    `noise` is what noise costs on average; the rest of the step's bending is divided between the signal and `sampling`,
    by the squares of their norms. Of the signal's, `overshoot` is what it has along the gradient, `drift` what it has
    across it: where local steps, or clipping, lead clients together. `rest` is what second order does not explain.
    """
    bending = rounds.bent / 2.0
    noise = rounds.mean_curvature / 2.0 * rounds.noise**2
    left, whole = bending - noise, rounds.signal**2 + rounds.spread**2
    share = np.divide(rounds.spread**2, whole, out=np.zeros_like(whole), where=whole > 0.0)
    return {
        "descent": -rounds.gain,
        "overshoot": left * (1.0 - share) * (1.0 - _astray(rounds)),
        "drift": left * (1.0 - share) * _astray(rounds),
        "sampling": left * share,
        "noise": noise,
        "rest": rounds.change + rounds.gain - bending,
    }


def _astray(rounds: WatchedRounds) -> FloatArray:
    """(rounds,) share of the signal's squared norm that is not along the gradient."""
    along = np.divide(
        rounds.gain, rounds.gradient_norm, out=np.zeros_like(rounds.gain), where=rounds.gradient_norm > 0.0
    )
    share = np.divide(along, rounds.signal, out=np.ones_like(along), where=rounds.signal > 0.0)
    return np.asarray(1.0 - np.clip(share, -1.0, 1.0) ** 2)


def with_momentum(norms: FloatArray, momentum: float, *, is_random: bool) -> FloatArray:
    """Return norms of a part of steps that keep a share of the step before: squares add up if it is random.

    Example:
        >>> with_momentum(np.array([3.0, 4.0]), 1.0, is_random=True).tolist()
        [3.0, 5.0]
        >>> with_momentum(np.array([3.0, 4.0]), 0.5, is_random=False).tolist()
        [3.0, 5.5]
    """
    kept, found = 0.0, []
    for norm in norms:
        kept = float(np.hypot(momentum * kept, norm)) if is_random else momentum * kept + float(norm)
        found.append(kept)
    return np.array(found)
