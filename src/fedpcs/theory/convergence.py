"""Theorem 5: how far the loss is from its least after T rounds, and how large gradients are on average.

Rate. Progress (see `progress`) and ‖∇F‖² ≥ 2μ(F − F*) give a recursion of the gap, gap(t+1) ≤ q_t gap(t) + e_t, with
q_t = 1 − 2μ·descent_t + what grows with the gap. Unrolled, what happens in round t is shrunk by all rounds *after* it:
gap(T) ≤ Π q_t gap(0) + Σ_t e_t Π_{s>t} q_s. The paper shrinks it by as many factors as there are rounds before it.

Error. Progress, summed over rounds and divided by Σ_t descent_t.
"""

from __future__ import annotations

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.theory.bound import Bound, Premise
from fedpcs.theory.federation import Constants, Federation, check_constants, known
from fedpcs.theory.progress import descent_rate, paper_premises, paper_round, step_premises
from fedpcs.theory.sampling_error import splits_of, step_error, tightest


def valid_rate(federation: Federation, constants: Constants) -> Bound:
    """Bound E F(w(t)) − F* for t = 0…T; terms are (rounds + 1,)."""
    check_constants(constants, federation)
    return tightest(_rate(federation, constants, split) for split in splits_of(constants))


def _rate(federation: Federation, constants: Constants, split: float) -> Bound:
    factor, added = _recursion(federation, constants, split)
    premises = (
        *step_premises(federation, constants),
        Premise("a Polyak–Łojasiewicz constant above zero", constants.pl > 0.0),
        Premise(
            f"the gap shrinks in every round (its factor is at most {factor.max():.4g})", bool((factor < 1.0).all())
        ),
    )
    return Bound("valid", unrolled(known(constants, "initial_gap"), factor, added), premises)


def valid_error(federation: Federation, constants: Constants) -> Bound:
    """Bound the mean of E‖∇F(w(t))‖² over the first t rounds, t = 1…T, each round weighted by its descent.

    With a constant step size that is the plain mean. No convexity is needed if clients' gradients are bounded.
    """
    check_constants(constants, federation)
    return tightest(_error(federation, constants, split) for split in splits_of(constants))


def _error(federation: Federation, constants: Constants, split: float) -> Bound:
    error, η, β = step_error(federation, constants, split), federation.step_size, constants.smoothness
    factor, added = _recursion(federation, constants, split)
    gap = np.sum(list(unrolled(known(constants, "initial_gap"), factor, added).values()), axis=0)[:-1]
    grown = dict(added)
    grown["sampling"] = added["sampling"] + β * η**2 / 2.0 * error.sampling.slope * gap
    grown["drift"] = added["drift"] + η / 2.0 * error.drift.slope * gap
    total = np.cumsum(descent_rate(federation, constants))
    terms = {"start": known(constants, "initial_gap") / total}
    terms |= {name: np.cumsum(value) / total for name, value in grown.items()}
    return Bound("valid", terms, step_premises(federation, constants))


def paper_rate(federation: Federation, constants: Constants) -> Bound:
    """Theorem 5's rate as printed, Eq. (convergence_rate): round t is shrunk t times, not T − 1 − t times."""
    shrink = 1.0 - constants.pl * federation.step_size * constants.alignment
    powers = np.concatenate(([1.0], np.cumprod(shrink)))
    terms = {"start": powers * known(constants, "initial_gap")}
    for name, value in paper_round(federation, constants).items():
        terms[name] = np.concatenate(([0.0], np.cumsum(powers[:-1] * value)))
    return Bound("paper", terms, paper_premises(federation, constants))


def paper_error(federation: Federation, constants: Constants) -> Bound:
    """Theorem 5's error as printed, Eq. (convergence_error): what rounds add lacks its factor 2/(ηκ).

    The printed minibatch term stands within a bracket that is multiplied by βη/2, and has been so once before.
    """
    η, β, κ = federation.step_size, constants.smoothness, constants.alignment
    count = np.arange(1.0, federation.num_rounds + 1)
    terms = {"start": 2.0 * known(constants, "initial_gap") / (η * κ * count)}
    for name, value in paper_round(federation, constants).items():
        printed = value * (β * η / 2.0) if name == "minibatch" else value
        terms[name] = np.cumsum(printed) / count
    return Bound("paper", terms, paper_premises(federation, constants))


def unrolled(start: float, factor: FloatArray, added: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """Return each term of y(t+1) = factor_t y(t) + Σ added_t over t = 0…T, y(0) = start."""
    terms = {"start": start * np.concatenate(([1.0], np.cumprod(factor)))}
    for name, value in added.items():
        path = np.zeros(factor.size + 1)
        for t in range(factor.size):
            path[t + 1] = factor[t] * path[t] + value[t]
        terms[name] = path
    return terms


def _recursion(federation: Federation, constants: Constants, split: float) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return q and the parts of e of gap(t+1) ≤ q_t gap(t) + e_t."""
    error, η, β = step_error(federation, constants, split), federation.step_size, constants.smoothness
    half = β * η**2 / 2.0
    factor = 1.0 - 2.0 * constants.pl * descent_rate(federation, constants)
    factor = factor + half * error.sampling.slope + η / 2.0 * error.drift.slope
    return np.asarray(factor), {
        "sampling": half * error.sampling.floor,
        "noise": constants.noise_curvature * η**2 / 2.0 * error.noise,
        "minibatch": half * error.minibatch,
        "drift": η / 2.0 * error.drift.floor,
    }
