"""Several seeds: a mean with its spread, and the interval of a paired difference (Student 1908).

Two trials with the same seed share a split and a start, so the differences within seeds are averaged. What all seeds
share, such as a population, no interval over seeds covers.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy import stats

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.trial.records import Spread

SPENT_MEANING = (
    "least / median / greatest client ever charged; over seeds the least, the mean of the medians and the greatest; "
    "rounded up"
)


@dataclass(frozen=True)
class PairedDifference:
    """The mean of a − b over pairs, and the ends of its t-interval: infinite for a single pair."""

    mean: float
    low: float
    high: float
    num_pairs: int

    @property
    def is_above(self) -> bool:
        """Whether a lies above b: the interval is all above zero."""
        return self.low > 0.0

    @property
    def is_below(self) -> bool:
        """Whether a lies below b: the interval is all below zero."""
        return self.high < 0.0


def mean_and_std(values: ArrayLike) -> tuple[float, float | None]:
    """Return the mean and the sample standard deviation; None for one value, which has no spread.

    Example:
        >>> mean_and_std([1.0, 3.0])
        (2.0, 1.4142135623730951)
    """
    sample = _validate.vector("values", values, remedy="Give one number per seed.")
    return float(sample.mean()), float(sample.std(ddof=1)) if sample.size > 1 else None


def spent_over_seeds(spreads: Sequence[Spread]) -> tuple[float, float, float]:
    """Return what clients spent, ρ or ε: the least over all seeds, the mean of the seeds' medians, the greatest."""
    least, greatest = min(one.minimum for one in spreads), max(one.maximum for one in spreads)
    return least, statistics.fmean(one.median for one in spreads), greatest


def joint_confidence(num_intervals: int) -> float:
    """Return the confidence that each of some intervals needs for all to hold together with 95 % (Bonferroni)."""
    return 1.0 - 0.05 / num_intervals


def paired_difference(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, *, resolution: float = 0.0
) -> PairedDifference:
    """Return the mean of a − b over seeds and its t-interval.

    Args:
        a: One number per seed.
        b: The other trial's numbers, for the same seeds in the same order.
        confidence: How often such intervals cover the mean, strictly between 0 and 1.
        resolution: Least standard deviation that is believed. Numbers counted in steps may agree by chance.

    Example:
        >>> found = paired_difference([3.0, 5.0, 7.0], [1.0, 2.0, 3.0])
        >>> found.mean, round(found.low, 3), round(found.high, 3), found.is_above
        (3.0, 0.516, 5.484, True)
    """
    first = _validate.vector("a", a, remedy="Give one number per seed.")
    second = _validate.vector("b", b, length=first.size, remedy="Pairs need the same seeds in the same order.")
    level = _validate.number("confidence", confidence, low=0.0, high=1.0)
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"confidence must lie strictly between 0 and 1, got {confidence!r}. Use 0.95.")
    mean, std = mean_and_std(first - second)
    if std is None:
        return PairedDifference(mean, -math.inf, math.inf, 1)
    reach = float(stats.t.ppf(0.5 + 0.5 * level, first.size - 1)) * max(std, resolution) / math.sqrt(first.size)
    return PairedDifference(mean, mean - reach, mean + reach, int(first.size))
