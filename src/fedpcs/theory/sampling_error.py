"""How far one round's aggregate is from the full gradient: by the draw, by the noise, and by local steps.

Given w, the aggregate g = Σ_i m_i θ_i/c_i (ḡ_i + n_i) has mean Σ_i θ_i ḡ_i, and around it

    E‖g − E g‖² ≤ Σ_i s_i θ_i² ‖ḡ_i‖² + Σ_i r_i θ_i² (noise power_i + M_i),     r_i = E[m_i²]/c_i²,

with s_i of the design. With replacement, counts are multinomial: s_i = 1/c_i (what is dropped is ‖E g‖²/K) and
r_i = 1/c_i + 1 − 1/K. Poisson: s_i = (1 − π_i)/π_i. Of fixed size, without replacement and with no two draws
positively correlated: the rows of the draws' covariance matrix sum to zero, so that each row's entries off the diagonal
add up to the diagonal one, and Gershgorin's circles give s_i = 2 (1 − π_i)/π_i. Both have r_i = 1/π_i.

Clients' gradients are bounded in one of two ways, whichever is known: by D_i; or, for convex F_i, by how far training
is from its end, because ‖∇F_i(w) − ∇F_i(w*)‖² ≤ 2β_i (F_i(w) − F_i(w*) − ∇F_i(w*)·(w − w*)), whose weighted sum is the
gap:

    Σ_i a_i ‖∇F_i(w)‖² ≤ 2(1 + s) max_i(a_i β_i/θ_i) (F(w) − F*) + (1 + 1/s) Σ_i a_i ‖∇F_i(w*)‖².

Any split s > 0 will do, so that a few are tried and the tightest bound is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.theory.bound import Bound
from fedpcs.theory.federation import Constants, Federation

_SPLITS = (0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class Growth:
    """A bound on something that grows with the gap: slope · (F(w) − F*) + floor; (rounds,) each."""

    slope: FloatArray
    floor: FloatArray


@dataclass(frozen=True)
class StepError:
    """How far a round's aggregate may be from the gradient.

    Attributes:
        sampling: Variance that the draw brings.
        noise: (rounds,) variance that clients' noise brings.
        minibatch: (rounds,) variance that clients' own stochastic gradients bring.
        drift: Squared distance of the aggregate's mean from the gradient: nothing, if clients take one step.
    """

    sampling: Growth
    noise: FloatArray
    minibatch: FloatArray
    drift: Growth


def splits_of(constants: Constants) -> tuple[float, ...]:
    """Return the splits worth trying: none matters if clients' gradients are bounded, or vanish together."""
    optimum = constants.gradient_at_optimum
    if constants.gradient_bound is not None or optimum is None:
        return (1.0,)
    return _SPLITS if optimum.any() else (0.0,)


def tightest(bounds: Iterable[Bound]) -> Bound:
    """Return the bound that is lowest in the last round; of equals, the first."""
    return min(bounds, key=lambda bound: float(bound.value[-1]))


def step_error(federation: Federation, constants: Constants, split: float) -> StepError:
    """Return the parts of one round's error, for every round; `split` is s above.

    Raises:
        InvalidInput: Neither are clients' gradients bounded, nor are they convex with known smoothness.
    """
    spread, repeats = weight_moments(federation)
    θ, η, H = federation.data_weight, federation.step_size, federation.local_steps
    variance = np.zeros_like(θ) if constants.gradient_variance is None else constants.gradient_variance
    β = np.full(θ.size, constants.smoothness) if constants.client_smoothness is None else constants.client_smoothness
    # A client is at most h·η/H·‖∇F_i(w)‖ from where it began after h steps: gradients do not grow along them.
    bias = (β * η[:, None] * (H - 1) / (2 * H)) ** 2
    return StepError(
        sampling=gradient_growth(spread * θ**2, federation, constants, split),
        noise=(repeats * θ**2 * federation.noise_power).sum(axis=1),
        minibatch=(repeats * θ**2 * variance).sum(axis=1),
        drift=gradient_growth(bias * θ, federation, constants, split),
    )


def weight_moments(federation: Federation) -> tuple[FloatArray, FloatArray]:
    """Return s and r of every round and client; (rounds, clients) each."""
    count = np.where(federation.data_weight > 0.0, federation.expected_count, 1.0)
    if federation.design == "with-replacement":
        return 1.0 / count, 1.0 / count + 1.0 - 1.0 / federation.cohort_size[:, None]
    factor = 1.0 if federation.design == "poisson" else 2.0
    return factor * np.maximum(1.0 - count, 0.0) / count, 1.0 / count


def gradient_growth(share: FloatArray, federation: Federation, constants: Constants, split: float) -> Growth:
    """Bound Σ_i share_i ‖∇F_i(w)‖²; share is (rounds, clients)."""
    if constants.gradient_bound is not None:
        return Growth(np.zeros(share.shape[0]), share @ constants.gradient_bound**2)
    curvature, optimum = constants.client_smoothness, constants.gradient_at_optimum
    if curvature is None or optimum is None:
        raise InvalidInput(
            "gradient_bound is missing, and so is gradient_at_optimum or client_smoothness. Give the first, or both "
            "others if clients' losses are convex."
        )
    θ = federation.data_weight
    slope = np.where(θ > 0.0, share * curvature / np.where(θ > 0.0, θ, 1.0), 0.0).max(axis=1)
    floor = (1.0 + 1.0 / split) * (share @ optimum**2) if optimum.any() else np.zeros(share.shape[0])
    return Growth(2.0 * (1.0 + split) * slope, floor)
