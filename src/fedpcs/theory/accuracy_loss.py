"""Proposition 2: the loss of accuracy after t rounds whose step sizes fall as 1/(μ(t + 1)).

With E‖g(t)‖² ≤ G_t², smoothness and the Polyak–Łojasiewicz inequality give, for the gap y after s steps of size 1/(μs),
y(s+1) ≤ (1 − 2/s) y(s) + c G_s²/s² with c = β/(2μ²). Multiply by s(s − 1) and sum: after T ≥ 2 steps

    gap(T) ≤ c/(T(T − 1)) Σ_{s=1}^{T} (1 − 1/s) G_s².

Every round's noise counts alike, however long ago it was. The paper has the constant c/T right (it follows from the
above if all G_s are the same), but puts the *last* round's noise in place of all rounds', and full participation.
"""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.theory.bound import Bound, Premise
from fedpcs.theory.federation import Constants, Federation, check_constants
from fedpcs.theory.sampling_error import step_error


def valid_accuracy_loss(federation: Federation, constants: Constants, *, gradient_norm_bound: float) -> Bound:
    """Bound E F(w(t)) − F* for t = 2…T; terms are (rounds − 1,).

    Args:
        federation: How rounds are run, with steps of 1/(μ(t + 1)).
        constants: Of the losses; clients' gradients are bounded.
        gradient_norm_bound: V with ‖∇F(w(t))‖ ≤ V.
    """
    check_constants(constants, federation)
    scale = _scale(constants)
    error = step_error(federation, constants, 1.0)
    if error.sampling.slope.any():
        raise InvalidInput("gradient_bound is missing: this bound supposes that clients' gradients are bounded.")
    steps = np.arange(1, federation.num_rounds + 1)
    gradient = _validate.number("gradient_norm_bound", gradient_norm_bound, low=0.0) ** 2
    parts = {"gradient": np.full(steps.size, gradient), "sampling": error.sampling.floor}
    parts["noise"] = constants.noise_curvature / constants.smoothness * error.noise
    parts["minibatch"] = error.minibatch
    weight = 1.0 - 1.0 / steps
    terms = {name: (np.cumsum(weight * value) * scale)[1:] for name, value in parts.items()}
    terms = {name: value / (steps * (steps - 1.0))[1:] for name, value in terms.items()}
    return Bound(
        "valid", terms, (_steps(federation, constants), Premise("one local step", federation.local_steps == 1))
    )


def paper_accuracy_loss(federation: Federation, constants: Constants, *, gradient_norm_bound: float) -> Bound:
    """Proposition 2 as printed, Eq. (accuracy_loss), for t = 2…T: as if all took part, with the last round's noise."""
    scale = _scale(constants)
    steps = np.arange(2, federation.num_rounds + 1)
    noise = (federation.data_weight**2 * federation.noise_power).sum(axis=1)[1:]
    gradient = np.full(steps.size, _validate.number("gradient_norm_bound", gradient_norm_bound, low=0.0) ** 2)
    is_steady = bool((federation.noise_power == federation.noise_power[0]).all())
    premises = (
        _steps(federation, constants),
        Premise("everyone takes part in every round", bool((federation.expected_count >= 1.0).all())),
        Premise("noise does not change from round to round", is_steady),
    )
    return Bound("paper", {"gradient": scale * gradient / steps, "noise": scale * noise / steps}, premises)


def falling_steps(constants: Constants, num_rounds: int) -> FloatArray:
    """(rounds,) the step sizes of this proposition, 1/(μ(t + 1))."""
    return np.asarray(1.0 / (_validate.positive("pl", constants.pl) * np.arange(1.0, num_rounds + 1)))


def _scale(constants: Constants) -> float:
    return constants.smoothness / (2.0 * _validate.positive("pl", constants.pl) ** 2)


def _steps(federation: Federation, constants: Constants) -> Premise:
    wanted = falling_steps(constants, federation.num_rounds)
    return Premise("step sizes of 1/(μ(t + 1))", bool(np.allclose(federation.step_size, wanted, rtol=1e-9)))
