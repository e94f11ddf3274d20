"""Proposition 3: how much the loss changes in one round, at most.

F is β-smooth and the aggregate g has mean ∇F(w) + b, so that

    E F(w − η g) − F(w) ≤ −η ∇F·(∇F + b) + (βη²/2)(‖∇F + b‖² + variance).

With b = 0 this is −η(1 − βη/2)‖∇F‖² + (βη²/2)·variance. Otherwise, for η ≤ 1/β, replace βη² by η in front of
‖∇F + b‖² and complete the square: −(η/2)‖∇F‖² + (η/2)‖b‖² + (βη²/2)·variance.

Noise that is Gaussian, isotropic and independent of all else does better than that: by the heat equation
E F(w + n) = F(w) + ½ ∫ E tr H(w + n_s) ds over its variance s, so that its part has (tr H/d) for β.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.theory.bound import Bound, Premise
from fedpcs.theory.federation import Constants, Federation, check_constants
from fedpcs.theory.sampling_error import splits_of, step_error, tightest


def valid_progress(
    federation: Federation, constants: Constants, *, gradient_norm: ArrayLike, gap: ArrayLike | None = None
) -> Bound:
    """Bound E F(w(t+1)) − F(w(t)) for every round.

    Args:
        federation: How rounds are run.
        constants: Of the losses.
        gradient_norm: (rounds,) ‖∇F(w(t))‖.
        gap: (rounds,) F(w(t)) − F*; needed where clients' gradients are bounded by it.
    """
    check_constants(constants, federation)
    steepness = _validate.vector("gradient_norm", gradient_norm, length=federation.num_rounds, low=0.0) ** 2
    return tightest(_progress(federation, constants, split, steepness, gap) for split in splits_of(constants))


def _progress(
    federation: Federation, constants: Constants, split: float, steepness: FloatArray, gap: ArrayLike | None
) -> Bound:
    error, η, β = step_error(federation, constants, split), federation.step_size, constants.smoothness
    distance = _gap(gap, error.sampling.slope + error.drift.slope, federation.num_rounds)
    half = β * η**2 / 2.0
    return Bound(
        "valid",
        {
            "descent": -descent_rate(federation, constants) * steepness,
            "sampling": half * (error.sampling.slope * distance + error.sampling.floor),
            "noise": constants.noise_curvature * η**2 / 2.0 * error.noise,
            "minibatch": half * error.minibatch,
            "drift": η / 2.0 * (error.drift.slope * distance + error.drift.floor),
        },
        step_premises(federation, constants),
    )


def descent_rate(federation: Federation, constants: Constants) -> FloatArray:
    """(rounds,) what ‖∇F‖² is multiplied by: η(1 − βη/2) if clients take one step, else η/2."""
    η = federation.step_size
    return η * (1.0 - constants.smoothness * η / 2.0) if federation.local_steps == 1 else η / 2.0


def step_premises(federation: Federation, constants: Constants) -> tuple[Premise, ...]:
    """What all valid bounds on the loss take for granted of the step size and of local training."""
    largest = float(federation.step_size.max()) * constants.smoothness
    if federation.local_steps == 1:
        return (Premise(f"step size × smoothness below 2 (it is {largest:.3g})", largest < 2.0),)
    return (
        Premise(f"step size × smoothness at most 1, with more than one local step (it is {largest:.3g})", largest <= 1),
        *local_premises(federation, constants),
    )


def local_premises(federation: Federation, constants: Constants) -> tuple[Premise, ...]:
    """What is taken for granted of more than one local step; nothing of one."""
    if federation.local_steps == 1:
        return ()
    varied = constants.gradient_variance is not None and bool(constants.gradient_variance.any())
    curved = constants.smoothness if constants.client_smoothness is None else float(constants.client_smoothness.max())
    longest = float(federation.step_size.max()) / federation.local_steps * curved
    is_short = constants.gradient_bound is not None or longest <= 2.0
    return (
        Premise("local steps use all of a client's records", not varied),
        Premise(f"local step × its client's smoothness at most 2 (it is {longest:.3g})", is_short),
    )


def paper_progress(federation: Federation, constants: Constants, *, gradient_norm: ArrayLike) -> Bound:
    """Proposition 3 as printed, Eq. (difference): β/2 of the sampling variance has η for η².

    Its proof multiplies M_V + κ_G² by N in one line and drops N in the next; the printed condition is right all the
    same, because θ is a convex combination and Jensen's inequality needs no N there.
    """
    steepness = _validate.vector("gradient_norm", gradient_norm, length=federation.num_rounds, low=0.0) ** 2
    η, κ = federation.step_size, constants.alignment
    return Bound(
        "paper",
        {"descent": -η * κ / 2.0 * steepness, **paper_round(federation, constants)},
        paper_premises(federation, constants),
    )


def paper_round(federation: Federation, constants: Constants) -> dict[str, FloatArray]:
    """What the printed Proposition 3 adds in a round: (rounds,) each."""
    θ, η, β = federation.data_weight, federation.step_size, constants.smoothness
    count = np.where(θ > 0.0, federation.expected_count, 1.0)
    power, bound = federation.noise_power, largest_gradient(constants)
    minibatch = 0.0 if constants.gradient_variance is None else float(constants.gradient_variance.max())
    return {
        "sampling": β * η / 2.0 * (θ**2 / count).sum(axis=1) * bound**2,
        "noise": β * η / 2.0 * ((θ**2 / count * power).sum(axis=1) + η * (θ**2 * power).sum(axis=1)),
        "minibatch": β * η**2 / 2.0 * federation.num_clients * minibatch,
    }


def paper_premises(federation: Federation, constants: Constants) -> tuple[Premise, ...]:
    """What the paper takes for granted in Proposition 3 and Theorem 5."""
    κ, spread = constants.alignment, constants.relative_variance + constants.alignment_bound**2
    most, largest = κ / (constants.smoothness * spread), float(federation.step_size.max())
    is_short = largest <= most * (1.0 + 1e-12)
    return (
        Premise(f"step size at most κ/(β(M_V + κ_G²)) = {most:.3g} (it is {largest:.3g})", is_short),
        Premise("drawn with replacement", federation.design == "with-replacement"),
        Premise("one local step", federation.local_steps == 1),
    )


def largest_gradient(constants: Constants) -> float:
    """Return D, which printed bounds have for all clients.

    Raises:
        InvalidInput: It is not known.
    """
    if constants.gradient_bound is None:
        raise InvalidInput("gradient_bound is missing: printed bounds suppose that clients' gradients are bounded.")
    return float(constants.gradient_bound.max())


def _gap(gap: ArrayLike | None, slope: FloatArray, num_rounds: int) -> FloatArray:
    if gap is not None:
        return _validate.vector("gap", gap, length=num_rounds, low=0.0)
    if slope.any():
        raise InvalidInput("gap is missing: without gradient_bound, clients' gradients are bounded by it.")
    return np.zeros(num_rounds)
