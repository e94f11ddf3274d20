"""The rule of least mean-squared error, and the one number it has to estimate.

Suppose client j's update is u_j = μ + a deviation of mean square δ² (its *drift*, summed over coordinates),
independent between clients, and a drawn client's release adds noise of known power v_i = d·σ_i². Whatever the cohort S,
the error of Σ_S w_i ũ_i against ḡ = Σ θ_j u_j has mean square

    ‖μ‖²(Σ_S w − 1)² + Σ_S [(w_i − θ_i)² δ² + w_i² v_i] + Σ_{j∉S} θ_j² δ².

Nothing is known of μ, so Σ_S w = 1; then the least error is at

    w_i = (θ_i δ² + λ)/(δ² + v_i),    λ = (1 − Σ θ_i δ²/(δ² + v_i)) / Σ 1/(δ² + v_i).

Without noise a drawn client speaks for itself (θ_i) and for an equal share of those who were not drawn; as noise grows
its weight falls like 1/v_i. Inclusion probabilities do not enter: the rule is as good as its premise that neither being
drawn nor having little noise says anything about a client's update. Where budgets and data go together it does not
hold.

If clients with more data agree better, as means over more records do, give each its own δ_i².

References:
    R. M. Royall, Biometrika 57 (1970): prediction from a sample. R. C. Paule, J. Mandel, J. Res. NBS 87 (1982):
    `estimate_drift`.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

_ROUNDING = 1e-12
# Powers beyond this are no noise that anybody added; sums of those below are floats.
_MOST = 1e300
_BISECTIONS = 200


def precision_weights(
    data_weight: FloatArray, noise_power: FloatArray, drift: float | FloatArray, likeness: FloatArray | None = None
) -> FloatArray:
    """Return the weights of least mean-squared error among those that add up to one.

    Args:
        data_weight: (cohort,) θ_i, as shares of all clients: they need not add up to one.
        noise_power: (cohort,) v_i = d·σ_i², at least zero.
        drift: δ², at least zero; one number for all, or (cohort,) if some clients differ more than others.
        likeness: (cohort,) above zero: in what proportion each speaks for the clients not heard, apart from its
            precision; alike if absent. After drop-outs, one over the chance of answering.

    Example:
        >>> precision_weights(np.array([0.2, 0.2]), np.array([0.0, 0.0]), 1.0).tolist()
        [0.5, 0.5]
        >>> precision_weights(np.array([0.2, 0.2]), np.array([0.0, 3.0]), 1.0).round(3).tolist()
        [0.8, 0.2]
    """
    θ = _validate.vector("data_weight", data_weight, low=0.0)
    v = _validate.vector("noise_power", noise_power, length=θ.size, low=0.0, high=_MOST)
    δ2 = np.full(θ.size, _validate.number("drift", drift, low=0.0, high=_MOST)) if isinstance(drift, Real) else drift
    δ2 = _validate.vector("drift", δ2, length=θ.size, low=0.0, high=_MOST)
    r = np.ones(θ.size) if likeness is None else _validate.vector("likeness", likeness, length=θ.size, low=0.0)
    total = δ2 + v
    is_sure = total == 0.0
    if is_sure.any():
        # The limit as drift vanishes: those without noise speak for themselves and, alike, for all others.
        return np.where(is_sure, θ + (1.0 - θ[is_sure].sum()) * r / r[is_sure].sum(), 0.0)
    smallest = float(total.min())
    λ = max(0.0, 1.0 - float(θ @ (δ2 / total))) / float(r @ (smallest / total))  # in units of the smallest
    return np.asarray(θ * (δ2 / total) + λ * r * (smallest / total))


def estimate_drift(updates: ArrayLike, noise_power: ArrayLike) -> float:
    """Return δ², the clients' spread, from updates that carry their noise.

    The spread explains what the noise does not: δ² solves Σ ‖ũ_i − ū‖²/(δ² + v_i) = n − 1, with ū the mean weighted by
    1/(δ² + v_i). Noisy clients count little, so one drowned update does not hide the others. Releases alone go in, so
    the estimate costs no privacy.

    Args:
        updates: (cohort, parameters) as they arrived.
        noise_power: (cohort,) v_i = d·σ_i².

    Returns:
        δ², zero if the noise explains all the spread there is. A single update shows none.
    """
    v = _validate.vector("noise_power", noise_power, low=0.0)
    n = v.size
    rows = _validate.matrix("updates", updates, num_rows=n, remedy="One row for each entry of noise_power.")
    if n == 1:
        return 0.0
    # Distances from any weighted mean follow from products of rows, so updates are read once. Rows are taken from the
    # mean of the quieter half, or a loud one would swallow the others' digits.
    centred = rows - rows[v <= np.median(v)].mean(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        gram = centred @ centred.T
    if not np.isfinite(gram).all():
        raise InvalidInput("updates must have squared norms that are floats, got larger ones. Clip them first.")

    def excess(δ2: float) -> float:
        a = 1.0 / (δ2 + v)
        return float(a @ gram.diagonal() - a @ gram @ a / a.sum() - (n - 1))

    spread = gram.diagonal()[gram.diagonal() > 0.0]
    if spread.size == 0:
        return 0.0
    low, high = _ROUNDING * float(spread.min()), float(spread.sum())
    if excess(low) <= 0.0:
        return 0.0
    while excess(high) > 0.0:
        high *= 2.0
    for _ in range(_BISECTIONS):  # the excess falls with δ²
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
        if high - low <= 1e-9 * high:
            break
    return 0.5 * (low + high)
