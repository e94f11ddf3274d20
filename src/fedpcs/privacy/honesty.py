"""What a server can tell about a client's noise: the norm of a release bounds the noise that can be in it.

A client is paid by the budget it claims. It gains by claiming a large one and adding more noise than it says, and it
harms itself by adding less. A release y = x + n with ‖x‖ ≤ W and n ~ N(0, σ²I_d) has ‖y‖²/σ² noncentral χ² with d
degrees of freedom and noncentrality at most W²/σ²; an honest release falls below the α/2 quantile of the central law,
or above the 1 − α/2 quantile of the noncentral one, with probability at most α. For the latter a bound is taken that is
proved and quick, and for 650 parameters or more less than 3 % above it. Steps of a local training depend on one
another's noise; then only |‖y‖ − ‖n‖| ≤ W is used.

The test sees the amount of noise, not its quality: it cannot tell Gaussian noise from any vector of the same length.

References:
    L. Birgé 2001, An alternative point of view on Lepski's method, Lemma 8.1: tails of the noncentral χ² law.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from scipy.special import gammainccinv, gammaincinv

from fedpcs import _validate
from fedpcs.errors import InvalidInput

_MOST_SHARE = 1e150


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
        if not isinstance(self.is_adaptive, bool):
            raise InvalidInput(f"is_adaptive must be True or False, got {self.is_adaptive!r}.")


def honest_norms(num_parameters: int, claim: NoiseClaim, false_alarm: float) -> tuple[float, float]:
    """Return the least and the greatest norm of an honest release, wrong with probability at most `false_alarm`.

    Args:
        num_parameters: d.
        claim: What the release should be.
        false_alarm: α, how often an honest client may be flagged.

    Example:
        >>> [round(norm, 1) for norm in honest_norms(1000, NoiseClaim(noise_stddev=1.0, signal_bound=1.0), 1e-6)]
        [28.2, 35.7]
    """
    if not 0.0 < _validate.number("false_alarm", false_alarm, low=0.0, high=1.0) < 1.0:
        raise InvalidInput(f"false_alarm must be strictly between 0 and 1, got {false_alarm!r}. Take 1e-6.")
    least, most = _noise_norms(num_parameters, false_alarm)
    stddev, bound = claim.noise_stddev, claim.signal_bound
    widest = stddev * most + bound
    if claim.is_adaptive:
        return max(stddev * least - bound, 0.0), widest
    share = bound / stddev
    if not share < _MOST_SHARE:  # squares would overflow, and nothing is gained
        return stddev * least, widest
    t, λ = math.log(2.0 / false_alarm), share * share
    highest = num_parameters + λ + 2.0 * math.sqrt((num_parameters + 2.0 * λ) * t) + 2.0 * t
    return stddev * least, min(stddev * math.sqrt(highest), widest)


@functools.lru_cache(maxsize=64)
def _noise_norms(num_parameters: int, false_alarm: float) -> tuple[float, float]:
    """Return what ‖n‖/σ lies between but for `false_alarm`."""
    half, tail = 0.5 * num_parameters, 0.5 * false_alarm  # quantiles of χ² are twice those of the gamma law of d/2
    return math.sqrt(2.0 * float(gammaincinv(half, tail))), math.sqrt(2.0 * float(gammainccinv(half, tail)))
