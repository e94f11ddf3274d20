"""ρ-zCDP and (ε, δ): three conversions, each rounded to the private side.

- `standard`: ε = ρ + 2√(ρ ln(1/δ)). Bun and Steinke 2016, Proposition 1.3. Valid, loose, and what papers quote.
- `tight`: what any ρ-zCDP implies: min over α > 1 of ε(α) = αρ + (ln(1/δ) − ln α)/(α − 1) + ln(1 − 1/α).
  Canonne, Kamath and Steinke 2020, arXiv 2004.00010, Proposition 12.
- `exact`: the ε of the Gaussian mechanism, valid when every release adds Gaussian noise: together they are one Gaussian
  with μ = √(2ρ), and δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ). Balle and Wang 2018, arXiv 1805.06530, Theorem 8.

exact ≤ tight ≤ standard always (in floats, up to the last digit where ρ > 10¹⁵). An ε or δ comes out rounded up and a
ρ rounded down: an ε by a few parts in 10¹² or what 10⁻¹¹ of δ is worth, a δ by parts in 10¹¹, a ρ in 10¹⁰.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri_exp

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho

Method = Literal["exact", "tight", "standard"]
METHODS: tuple[Method, ...] = ("exact", "tight", "standard")

# Every ε is raised, and every ρ lowered, by more than rounding can have cost.
_EPSILON_SLACK = 1e-12
_RHO_SLACK = 1e-10
_LOG_DELTA_SLACK = 1e-11
_MOST = 1e300
_LEAST = 1e-300
_RHO_REMEDY = "A zCDP budget is at least 0; beyond 1e300 nothing is protected."
_EPSILON_REMEDY = "With ε = 0 nothing may be released; beyond 1e300 nothing is protected."
_DELTA_REMEDY = "Take it well below one over the number of people, such as 1e-5."
# Below this μ the difference of two Mills ratios is taken as an integral, which loses no digits.
_SMALL_MU = 0.1
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
# Gauss–Legendre on [0, 1], five points: error below 1e-16 relative for μ ≤ 1/10.
_NODES = (0.04691007703066802, 0.23076534494715845, 0.5, 0.7692346550528415, 0.9530899229693320)
_WEIGHTS = (0.11846344252809454, 0.23931433524968324, 0.28444444444444444, 0.23931433524968324, 0.11846344252809454)


def to_epsilon(rho: Rho | float, delta: float, method: Method = "tight") -> float:
    """Return an ε such that ρ-zCDP implies (ε, δ)-differential privacy.

    Args:
        rho: zCDP budget, zero or above.
        delta: Strictly between 0 and 1.
        method: "exact" only if every release added Gaussian noise; "tight" for any ρ-zCDP; "standard" as papers do.

    Raises:
        InvalidInput: An argument is NaN, out of range or not a number.

    Guarantees:
        Never below the true value: the result is rounded up.

    Example:
        >>> [round(to_epsilon(0.5, 1e-5, method), 5) for method in METHODS]
        [4.37718, 4.72839, 5.29853]
    """
    budget, log_delta = _checked_rho(rho), math.log(_checked_delta(delta))
    _validate.choice("method", method, METHODS)
    if budget == 0.0:
        return 0.0
    return _EPSILON_OF[method](budget, log_delta)


def to_rho(epsilon: float, delta: float, method: Method = "tight") -> float:
    """Return a ρ whose (ε, δ) does not exceed the one given: the inverse of `to_epsilon`, rounded down.

    Spend it as `Rho.at_most(rho)`, which rounds down too.

    Raises:
        InvalidInput: An argument is NaN, out of range or not a number; ε = 0 would allow no release.

    Example:
        >>> to_rho(to_epsilon(0.1, 1e-5), 1e-5) <= 0.1
        True
    """
    target = _validate.number("epsilon", epsilon, low=0.0, high=_MOST, remedy=_EPSILON_REMEDY)
    if target == 0.0:
        raise InvalidInput(f"epsilon must be above 0, got {epsilon!r}. {_EPSILON_REMEDY}")
    log_delta = math.log(_checked_delta(delta))
    _validate.choice("method", method, METHODS)
    # standard ≥ tight ≥ exact, so its inverse, in closed form, is where the others' search begins.
    root = target / (math.sqrt(target - log_delta) + math.sqrt(-log_delta))
    low = high = max(_lowered(root * root), _LEAST)
    epsilon_of = _EPSILON_OF[method]
    if not epsilon_of(low, log_delta) <= target:
        return 0.0  # so small that floats hold it with too few digits
    if method == "standard":
        return low
    while epsilon_of(high, log_delta) <= target:
        low, high = high, 2.0 * high
    return _lowered(
        math.exp(_root(lambda v: epsilon_of(math.exp(v), log_delta) - target, math.log(low), math.log(high)))
    )


def to_delta(rho: Rho | float, epsilon: float, method: Method = "tight") -> float:
    """Return a δ such that ρ-zCDP implies (ε, δ)-differential privacy, rounded up and at most 1.

    Example:
        >>> f"{to_delta(0.5, 4.37718, 'exact'):.3g}"
        '1e-05'
    """
    budget = _checked_rho(rho)
    target = _validate.number("epsilon", epsilon, low=0.0)
    _validate.choice("method", method, METHODS)
    if budget == 0.0:
        return 0.0
    if method == "exact":
        mu = math.sqrt(2.0 * budget)
        # δ falls as x rises: x is lowered by more than its two terms lost. Past x = 39 no float holds δ.
        x = (1.0 - 1e-15) * (target / mu) - (1.0 + 1e-15) * (0.5 * mu)
        log_delta = _gaussian_log_delta(min(x, 100.0), mu)
    elif method == "standard":
        excess = max(target - budget, 0.0)
        log_delta = -excess * (excess / (4.0 * budget))
    else:
        log_delta = _tight_log_delta(budget, target)
    # The next float up, so that a δ too small for floats never reads as 0, which would promise pure privacy.
    return math.nextafter(math.exp(min(log_delta + _LOG_DELTA_SLACK, 0.0)), 1.0)


def _standard_epsilon(rho: float, log_delta: float) -> float:
    epsilon = rho + 2.0 * math.sqrt(rho) * math.sqrt(-log_delta)
    return _raised(epsilon, epsilon)


def _tight_epsilon(rho: float, log_delta: float) -> float:
    # With u = α − 1 and L = ln(1/δ):  ε = (1 + u)ρ + (L − ln(1 + u))/u − ln(1 + 1/u),  dε/du = ρ − (L − ln(1 + u))/u².
    # The minimum is the one root of the rising function ρu² + ln(1 + u) − L. Any u gives a valid ε, so an inexact root
    # costs tightness and never privacy.
    big_l = -log_delta
    low = 2.0 * big_l / (1.0 + math.sqrt(1.0 + 4.0 * rho * big_l))  # from ln(1 + u) ≤ u
    high = min(math.sqrt(big_l) / math.sqrt(rho), math.expm1(min(big_l, 700.0)))
    log_rho = math.log(rho)
    log_u = _root(
        lambda v: math.exp(log_rho + 2.0 * v) + math.log1p(math.exp(v)) - big_l, math.log(low), math.log(high)
    )
    u = math.exp(log_u)
    terms = (1.0 + u) * rho, (big_l - math.log1p(u)) / u, -math.log1p(1.0 / u)
    return _raised(math.fsum(terms), sum(map(abs, terms)))


def _tight_log_delta(rho: float, epsilon: float) -> float:
    # ln δ = u((1 + u)ρ − ε) + u ln(u) − (1 + u) ln(1 + u), convex in u; its slope (1 + 2u)ρ − ε − ln(1 + 1/u) rises.
    def slope(v: float) -> float:
        return (1.0 + 2.0 * math.exp(v)) * rho - epsilon - math.log1p(math.exp(-v))

    # Any u gives a valid δ, so ends that floats can hold cost nothing but tightness where δ is 0 or 1 to every float.
    u = math.exp(_root(slope, -690.0, min(math.log(epsilon + 1.0) - math.log(rho) + 1.0, 690.0)))
    cost = (1.0 + u) * rho
    return u * (cost - epsilon + 1e-15 * (cost + epsilon)) - u * math.log1p(1.0 / u) - math.log1p(u)


def _exact_epsilon(rho: float, log_delta: float) -> float:
    # With x = ε/μ − μ/2, δ falls as x rises and is at most Φ(−x): a bracket, and ε = μx + ρ.
    mu = math.sqrt(2.0 * rho)
    target = log_delta - _LOG_DELTA_SLACK
    low, high = -0.5 * mu, -float(ndtri_exp(target))
    if high <= low or _gaussian_log_delta(low, mu) <= target:
        return 0.0
    x = _root(lambda v: _gaussian_log_delta(v, mu) - target, low, high)
    return _raised(mu * x + rho, mu * abs(x) + rho)


def _gaussian_log_delta(x: float, mu: float) -> float:
    # Notation: M(x) = Φ(−x)/φ(x), Mills' ratio; dM/dx = xM − 1. Since φ(x) = e^ε φ(x + μ),
    # δ = Φ(−x) − e^ε Φ(−x − μ) = φ(x) (M(x) − M(x + μ)), which neither overflows nor underflows.
    log_density = -0.5 * x * x - _LOG_SQRT_2PI
    if x < 0.0 and mu >= _SMALL_MU:
        return math.log(float(ndtr(-x)) - math.exp(log_density) * _mills(x + mu))
    if mu >= _SMALL_MU:
        gap = _mills(x) - _mills(x + mu)
    else:  # the difference as an integral of −dM/dx: no cancellation
        slopes = (1.0 - t * _mills(t) for t in (x + mu * node for node in _NODES))
        gap = mu * math.fsum(w * h for w, h in zip(_WEIGHTS, slopes, strict=True))
    return log_density + math.log(gap)


def _mills(x: float) -> float:
    return math.sqrt(0.5 * math.pi) * float(erfcx(x / math.sqrt(2.0)))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of a monotone function; an end where rounding hides the change of sign is the root."""
    at_low, at_high = function(low), function(high)
    if at_low * at_high >= 0.0:
        return low if abs(at_low) <= abs(at_high) else high
    return float(brentq(function, low, high, xtol=1e-15, rtol=1e-15, maxiter=2000))


def _raised(epsilon: float, magnitude: float) -> float:
    """Round an ε to the private side: up, by more than its terms of this magnitude can have lost."""
    return max(epsilon + 1e-15 * magnitude + _EPSILON_SLACK * abs(epsilon), 0.0)


def _lowered(rho: float) -> float:
    """Round a ρ to the private side: down, by more than `to_epsilon` rounds up."""
    return rho * (1.0 - _RHO_SLACK)


def _checked_rho(rho: Rho | float) -> float:
    return _validate.number("rho", float(rho) if isinstance(rho, Rho) else rho, low=0.0, high=_MOST, remedy=_RHO_REMEDY)


def _checked_delta(delta: float) -> float:
    number = _validate.number("delta", delta, low=0.0, high=1.0, remedy=_DELTA_REMEDY)
    if not 0.0 < number < 1.0:
        raise InvalidInput(f"delta must be strictly between 0 and 1, got {delta!r}. {_DELTA_REMEDY}")
    return number


_EPSILON_OF: dict[Method, Callable[[float, float], float]] = {
    "exact": _exact_epsilon,
    "tight": _tight_epsilon,
    "standard": _standard_epsilon,
}
