"""What a server can tell about a client's noise: the norm of a release bounds the noise that can be in it.

A client is paid by the budget it claims. It gains by claiming a large one and adding more noise than it says, and it
harms itself by adding less. A release y = x + n with ‖x‖ ≤ W and n ~ N(0, σ²I_d) has ‖y‖²/σ² noncentral χ² with d
degrees of freedom and noncentrality at most W²/σ²; an honest release falls below the α/2 quantile of the central law,
or above the 1 − α/2 quantile of the noncentral one, with probability at most α. Steps of a local training depend on
one another's noise; then only |‖y‖ − ‖n‖| ≤ W is used.

The test sees the amount of noise, not its quality: it cannot tell Gaussian noise from any vector of the same length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fedpcs import _validate
from fedpcs.errors import InvalidInput


@dataclass(frozen=True)
class NoiseClaim:
    """What an honest release of a client looks like, from public numbers.

    Attributes:
        noise_stddev: σ of the noise the claimed budget calls for.
        signal_bound: W, what the norm without noise is at most.
        is_adaptive: Noise went in at several steps, each depending on the one before.
    """

    noise_stddev: float
    signal_bound: float
    is_adaptive: bool = False

    def __post_init__(self) -> None:
        _validate.positive("noise_stddev", self.noise_stddev)
        _validate.number("signal_bound", self.signal_bound, low=0.0)


@dataclass(frozen=True)
class NoiseVerdict:
    """Whether a release can have come from its claim.

    Attributes:
        is_plausible: An honest release is found implausible with probability at most `false_alarm`.
        reason: A sentence for the log.
        norm: ‖y‖.
        lowest: Least norm an honest release would have.
        highest: Greatest norm an honest release would have.
        stddev_bounds: Least and greatest noise the client can have added, at the same confidence.
    """

    is_plausible: bool
    reason: str
    norm: float
    lowest: float
    highest: float
    stddev_bounds: tuple[float, float]


def check_noise(release: ArrayLike, claim: NoiseClaim, *, false_alarm: float = 1e-6) -> NoiseVerdict:
    """Say whether a received release can hold the noise its client claims.

    Args:
        release: The update as received, any shape.
        claim: What it should be.
        false_alarm: α, how often an honest client may be flagged.

    Example:
        >>> claim = NoiseClaim(noise_stddev=1.0, signal_bound=1.0)
        >>> check_noise(np.zeros(1000), claim).reason
        'too little noise: norm 0, an honest one is at least 28.2'
    """
    if not 0.0 < _validate.number("false_alarm", false_alarm, low=0.0, high=1.0) < 1.0:
        raise InvalidInput(f"false_alarm must be strictly between 0 and 1, got {false_alarm!r}. Take 1e-6.")
    received = np.asarray(release, dtype=np.float64).ravel()
    if received.size == 0:
        raise InvalidInput("release must hold at least one parameter, got none.")
    norm = float(np.linalg.norm(received))
    if not math.isfinite(norm):
        return NoiseVerdict(False, "not finite", norm, math.nan, math.nan, (math.nan, math.nan))
    least, most = _noise_norms(received.size, false_alarm)
    lowest, highest = _honest_norms(received.size, claim, false_alarm)
    bounds = (max(norm - claim.signal_bound, 0.0) / most, (norm + claim.signal_bound) / least)
    if norm < lowest:
        reason = f"too little noise: norm {norm:.3g}, an honest one is at least {lowest:.3g}"
    elif norm > highest:
        reason = f"too much noise, or not clipped: norm {norm:.3g}, an honest one is at most {highest:.3g}"
    else:
        reason = "plausible"
    return NoiseVerdict(lowest <= norm <= highest, reason, norm, lowest, highest, bounds)


def _noise_norms(num_parameters: int, false_alarm: float) -> tuple[float, float]:
    """Return what ‖n‖/σ lies between but for `false_alarm`."""
    law = stats.chi2(num_parameters)
    return math.sqrt(float(law.ppf(0.5 * false_alarm))), math.sqrt(float(law.isf(0.5 * false_alarm)))


def _honest_norms(num_parameters: int, claim: NoiseClaim, false_alarm: float) -> tuple[float, float]:
    least, most = _noise_norms(num_parameters, false_alarm)
    if claim.is_adaptive:
        return max(claim.noise_stddev * least - claim.signal_bound, 0.0), claim.noise_stddev * most + claim.signal_bound
    noncentrality = (claim.signal_bound / claim.noise_stddev) ** 2
    highest = (
        float(stats.ncx2(num_parameters, noncentrality).isf(0.5 * false_alarm)) if noncentrality > 0.0 else most**2
    )
    # Far from the centre SciPy's noncentral law can fail; the triangle inequality always holds, and is wider.
    widest = most + math.sqrt(noncentrality)
    return claim.noise_stddev * least, claim.noise_stddev * (
        math.sqrt(highest) if 0.0 < highest < widest**2 else widest
    )
