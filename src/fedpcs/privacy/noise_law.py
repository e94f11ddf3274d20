"""Whether releases carry the noise they claim: releases less what went in should be independent standard normals.

Canaries see how much noise hides them, and nothing else. Noise that is drawn once and used twice hides each release as
well as it should, and the difference of the two hides nothing; a parameter without noise is lost among a thousand with.
So the noise is taken out and looked at, by someone who knows what went in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

FALSE_ALARM = 1e-6
_NUM_CHECKS = 5


@dataclass(frozen=True)
class Check:
    """A test of the mechanism's parts, beside the attack on the whole.

    Attributes:
        name: What was tested.
        is_passed: A sound mechanism fails with a probability fixed beforehand.
        words: What was seen and what is allowed.
    """

    name: str
    is_passed: bool
    words: str


def check_noise_law(residuals: FloatArray, *, false_alarm: float = FALSE_ALARM) -> tuple[Check, ...]:
    """Test that releases less what went in are independent standard normals: canaries cannot see reused noise.

    Args:
        residuals: (releases, parameters) release minus its known input, divided by the σ claimed.
        false_alarm: How often sound noise may fail any of the checks.
    """
    if residuals.ndim != 2 or min(residuals.shape) < 2 or not np.isfinite(residuals).all():
        raise InvalidInput(f"residuals must be finite, (releases, parameters), 2 × 2 or more, got {residuals.shape}.")
    chance = checked_false_alarm(false_alarm) / _NUM_CHECKS
    scale = _scale_check("noise scale", np.array([np.mean(residuals**2)]), residuals.size, chance)
    by_coordinate = _scale_check("noise in each parameter", np.mean(residuals**2, axis=0), len(residuals), chance)
    return (
        scale,
        by_coordinate,
        _shape_check("noise shape", residuals.ravel(), chance),
        _correlation_check("noise across releases", residuals, chance),
        _correlation_check("noise across parameters", residuals.T, chance),
    )


def _scale_check(name: str, mean_squares: FloatArray, num_draws: int, chance: float) -> Check:
    tail = 0.5 * chance / mean_squares.size
    low, high = (
        math.sqrt(float(q) / num_draws) for q in (stats.chi2.ppf(tail, num_draws), stats.chi2.isf(tail, num_draws))
    )
    least, most = math.sqrt(mean_squares.min()), math.sqrt(mean_squares.max())
    seen = f"{least:.4f}" if mean_squares.size == 1 else f"{least:.4f} to {most:.4f}"
    return Check(name, low <= least and most <= high, f"{seen} of the σ claimed, allowed {low:.4f} to {high:.4f}")


def _shape_check(name: str, draws: FloatArray, chance: float) -> Check:
    gap, p_value = map(float, stats.kstest(draws, "norm", method="asymp"))
    return Check(name, p_value > chance, f"distribution within {gap:.1e} of normal, p = {p_value:.2g}")


def _correlation_check(name: str, rows: FloatArray, chance: float) -> Check:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0.0)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, 0.0)
    most = float(np.abs(cosines).max())
    # The squared cosine of two independent Gaussian vectors is Beta(1/2, (d − 1)/2).
    num_pairs = 0.5 * len(rows) * (len(rows) - 1)
    limit = math.sqrt(float(stats.beta.isf(chance / num_pairs, 0.5, 0.5 * (rows.shape[1] - 1))))
    return Check(name, most <= limit, f"largest correlation {most:.3f}, allowed {limit:.3f}")


def checked_false_alarm(false_alarm: float) -> float:
    """Return a probability small enough to be called a false alarm, and large enough for a float to tell from 0."""
    remedy = "Take 1e-6."
    number = _validate.positive("false_alarm", false_alarm, remedy=remedy)
    return _validate.number("false_alarm", number, low=1e-15, high=0.2, remedy=remedy)
