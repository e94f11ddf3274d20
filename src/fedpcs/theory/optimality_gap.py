"""Theorem 4: how far the model is from the best one after T rounds.

Strongly convex. A step along the true gradient shrinks the distance, ‖w − η∇F(w) − w*‖ ≤ (1 − ηψ)‖w − w*‖ for
η ≤ 2/(ψ + β) (Nesterov, Theorem 2.1.15's estimate), and what the aggregate errs by is added:

    E‖w(t+1) − w*‖² ≤ (1 − ηψ)²‖w(t) − w*‖² + η²·variance,

or, if its mean is off by b, (1 − ηψ)‖w(t) − w*‖² + (η/ψ)‖b‖² + η²·variance by Young's inequality. Variance that grows
with the gap is passed on by F − F* ≤ (β/2)‖w − w*‖².

Not convex. Nothing then draws w towards w*, and all that can be said is how far it can have gone: by Minkowski's
inequality √E‖w(T) − w*‖² ≤ ‖w(0) − w*‖ + Σ_t η_t √E‖g(t)‖².
"""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs.theory.bound import Bound, Premise
from fedpcs.theory.convergence import unrolled
from fedpcs.theory.federation import Constants, Federation, check_constants, known
from fedpcs.theory.progress import largest_gradient, local_premises
from fedpcs.theory.sampling_error import splits_of, step_error, tightest


def valid_distance(federation: Federation, constants: Constants) -> Bound:
    """Bound E‖w(t) − w*‖² for t = 0…T of a strongly convex F; terms are (rounds + 1,)."""
    check_constants(constants, federation)
    return tightest(_distance(federation, constants, split) for split in splits_of(constants))


def _distance(federation: Federation, constants: Constants, split: float) -> Bound:
    error, η = step_error(federation, constants, split), federation.step_size
    β, ψ, one_step = constants.smoothness, constants.strong_convexity, federation.local_steps == 1
    growth = η**2 * error.sampling.slope
    drift = np.zeros_like(η)
    if not one_step and ψ > 0.0:
        growth, drift = growth + η / ψ * error.drift.slope, η / ψ * error.drift.floor
    factor = (1.0 - η * ψ) ** (2 if one_step else 1) + β / 2.0 * growth
    added = {
        "sampling": η**2 * error.sampling.floor,
        "noise": η**2 * error.noise,
        "minibatch": η**2 * error.minibatch,
        "drift": drift,
    }
    largest = float(η.max())
    premises = (
        Premise("strongly convex", ψ > 0.0),
        Premise(f"step size at most 2/(ψ + β) = {2 / (ψ + β):.3g} (it is {largest:.3g})", largest <= 2.0 / (ψ + β)),
        *local_premises(federation, constants),
        Premise(
            f"the distance shrinks in every round (its factor is at most {factor.max():.4g})", bool((factor < 1).all())
        ),
    )
    return Bound("valid", unrolled(known(constants, "initial_distance") ** 2, factor, added), premises)


def valid_distance_not_convex(federation: Federation, constants: Constants) -> Bound:
    """Bound E‖w(t) − w*‖² for t = 0…T of any smooth F with bounded gradients; terms are (rounds + 1,).

    What is more than the start is divided among the gradient, the draw and the noise by their parts in E‖g‖².
    """
    check_constants(constants, federation)
    largest_gradient(constants)  # or say that it is missing
    assert constants.gradient_bound is not None
    error, η = step_error(federation, constants, 1.0), federation.step_size
    gradient = np.full_like(η, float(federation.data_weight @ constants.gradient_bound) ** 2)
    parts = {"gradient": gradient, "sampling": error.sampling.floor, "noise": error.noise}
    parts["minibatch"] = error.minibatch
    moved = η * np.sqrt(np.sum(list(parts.values()), axis=0))
    start = known(constants, "initial_distance")
    total = (start + np.concatenate(([0.0], np.cumsum(moved)))) ** 2
    shares = {name: np.concatenate(([0.0], np.cumsum(η**2 * value))) for name, value in parts.items()}
    whole = np.sum(list(shares.values()), axis=0)
    terms = {"start": np.full_like(total, start**2)}
    terms |= {
        name: (total - start**2) * np.divide(value, whole, out=np.zeros_like(value), where=whole > 0.0)
        for name, value in shares.items()
    }
    return Bound("valid", terms, local_premises(federation, constants))


def paper_distance(
    federation: Federation, constants: Constants, *, budget_bounds: tuple[float, float], noise_at_lowest: float
) -> Bound:
    """Theorem 4 for convex F as printed, Eq. (optimal_gap_convexity).

    The term that shrinks the distance has a minus sign, and yet 1/(K x) at its *upper* bound,
    [(N − 1)ρ_H + ρ_L]/(K ρ_L): the wider budgets may lie apart, the faster it claims to converge.

    Args:
        federation: How rounds are run; one step size and cohort size for all.
        constants: Of the losses.
        budget_bounds: ρ_L and ρ_H.
        noise_at_lowest: 2dW²/(ρ_L (Σ|D_i|)²): θ_i² times the noise power of a client with the lowest budget.
    """
    gain, η = _paper_gain(federation, budget_bounds), float(federation.step_size[0])
    β, bound = constants.smoothness, largest_gradient(constants)
    shrink = 1.0 - constants.strong_convexity * η * gain
    size = float(federation.cohort_size[0])
    twice = (η * gain) ** 2 + β * (η * gain) ** 3
    added = {"sampling": twice * bound**2, "noise": twice * size * noise_at_lowest, "drift": β * bound**2 * η**3 * gain}
    powers = np.power(shrink, np.arange(federation.num_rounds + 1, dtype=np.float64))
    sums = np.concatenate(([0.0], np.cumsum(powers[:-1])))
    terms = {"start": powers * known(constants, "initial_distance") ** 2}
    terms |= {name: value * sums for name, value in added.items()}
    return Bound("paper", terms, _paper_premises(federation, constants, shrink))


def paper_distance_not_convex(
    federation: Federation,
    constants: Constants,
    *,
    budget_bounds: tuple[float, float],
    noise_at_lowest: float,
    subgradient_norm: float,
) -> Bound:
    """Theorem 4 for F that is not convex as printed, Eq. (optimal_gap_non_convexity).

    Its assumption, one g with F(w) − F(w') ≥ g·(w − w') for *all* pairs, makes F affine: swap w and w'. Arguments are
    those of `paper_distance`, and ‖g‖.
    """
    gain, η = _paper_gain(federation, budget_bounds), float(federation.step_size[0])
    steepness = _validate.number("subgradient_norm", subgradient_norm, low=0.0)
    β, bound, size = constants.smoothness, largest_gradient(constants), float(federation.cohort_size[0])
    T = np.arange(federation.num_rounds + 1, dtype=np.float64)
    twice = (η * gain) ** 2 + β * (η * gain) ** 3
    return Bound(
        "paper",
        {
            "start": (1.0 + 2.0 * T * η * steepness * gain) * known(constants, "initial_distance") ** 2,
            "gradient": T * (T - 1.0) * (η * gain) ** 2 * steepness * bound,
            "sampling": T * twice * bound**2,
            "noise": T * twice * size * noise_at_lowest,
            "drift": T * β * bound**2 * η**3 * gain,
        },
        (Premise("no client is drawn twice", federation.design != "with-replacement"),),
    )


def paper_reach(federation: Federation, constants: Constants, *, budget_bounds: tuple[float, float]) -> Bound:
    """Proposition 5 as printed: E‖w(t) − w*‖ ≤ ‖w(0) − w*‖ + tηD[(N − 1)ρ_H + ρ_L]/(K ρ_L). It leaves out the noise."""
    gain, η = _paper_gain(federation, budget_bounds), float(federation.step_size[0])
    rounds = np.arange(federation.num_rounds + 1, dtype=np.float64)
    start = np.full(rounds.size, known(constants, "initial_distance"))
    terms = {"start": start, "gradient": rounds * η * largest_gradient(constants) * gain}
    return Bound("paper", terms, (Premise("one local step", federation.local_steps == 1),))


def valid_reach(federation: Federation, constants: Constants) -> Bound:
    """Bound E‖w(t) − w*‖ for t = 0…T of any smooth F with bounded gradients: the root of the squared distance's."""
    squared = valid_distance_not_convex(federation, constants)
    total = squared.value
    root = np.sqrt(total)
    share = np.divide(root, total, out=np.zeros_like(total), where=total > 0.0)
    return Bound("valid", {name: share * value for name, value in squared.terms.items()}, squared.premises)


def _paper_gain(federation: Federation, budget_bounds: tuple[float, float]) -> float:
    """Return [(N − 1)ρ_H + ρ_L]/(K ρ_L)."""
    low = _validate.positive("budget_bounds[0]", budget_bounds[0])
    high = _validate.number("budget_bounds[1]", budget_bounds[1], low=low)
    size = float(federation.cohort_size[0])
    return ((federation.num_clients - 1) * high + low) / (size * low)


def _paper_premises(federation: Federation, constants: Constants, shrink: float) -> tuple[Premise, ...]:
    return (
        Premise("strongly convex", constants.strong_convexity > 0.0),
        Premise("one local step", federation.local_steps == 1),
        Premise(f"what is claimed to shrink the distance is not below zero (it is {shrink:.3g})", shrink >= 0.0),
    )
