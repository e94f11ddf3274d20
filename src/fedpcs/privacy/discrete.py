"""The discrete Gaussian, drawn exactly: P(k) ∝ exp(−k²/(2s²)) over the whole numbers, s a whole number.

Rejection from a two-sided geometric law, as Canonne, Kamath and Steinke 2020 (arXiv 2004.00010, Algorithm 3), with
both of its parts taken from exponential variables E = −ln U:

    |k| = ⌊s·E₁⌋                     has P(|k| = x) ∝ exp(−x/s); the sign is fair, and −0 is thrown away
    keep k if E₂ > (|k| − s)²/(2s²)     which has the probability exp(−(|k| − s)²/(2s²))

A uniform U is a stream of random bits of which the first 64 are read. They fix E up to a known error. Where that leaves
⌊s·E⌋ or the comparison open, more bits are read and the logarithm is taken in decimal arithmetic, correctly rounded,
as long as it takes. Floats decide only what they can prove, and the law is exact.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from fedpcs import _validate
from fedpcs._validate import FloatArray

Words = Callable[[int], NDArray[np.uint64]]

# Rounding U to a float moves ln U by 2⁻⁵³, np.log errs by at most four ulps, products by one: 2⁻⁴⁸ is ample.
_LOG_ERROR = 2.0**-48
_ACCEPTED_SHARE = math.sqrt(0.5 * math.pi) * math.exp(-0.5)  # for large s


def discrete_gaussian(words: Words, scale: int, size: int) -> NDArray[np.int64]:
    """Return independent draws of the discrete Gaussian.

    Args:
        words: Gives that many independent uniform 64-bit words.
        scale: s, a whole number up to 2²⁴. The variance is s² up to a term of order exp(−2π²s²).
        size: How many.

    Guarantees:
        The law is exact if the words are uniform and independent.
    """
    _validate.integer("scale", scale, low=1, high=2**24)
    kept = np.empty(_validate.integer("size", size, low=0), dtype=np.int64)
    num_kept = 0
    while num_kept < size:
        num_tried = int((size - num_kept) / _ACCEPTED_SHARE * 1.02) + 16
        fresh = _accepted(words, scale, num_tried)[: size - num_kept]
        kept[num_kept : num_kept + fresh.size] = fresh
        num_kept += fresh.size
    return kept


def _accepted(words: Words, scale: int, num_tried: int) -> NDArray[np.int64]:
    magnitude = _floor_scaled_exponential(words, scale, num_tried)
    distance = magnitude - scale
    # (|k| − s)² < 2⁶³: an exponential read from 64 bits stays below 2⁶ unless it is refined, and then by e^−64.
    is_kept = _exceeds(words, distance.astype(np.float64) ** 2 / (2.0 * scale * scale), distance, scale)
    is_negative = words(num_tried) >> np.uint64(63) == 1
    is_kept &= ~(is_negative & (magnitude == 0))
    return np.where(is_negative, -magnitude, magnitude)[is_kept]


def _floor_scaled_exponential(words: Words, scale: int, size: int) -> NDArray[np.int64]:
    raw = words(size)
    value, error = _exponential(raw)
    low, high = np.floor((value - error) * scale), np.floor((value + error) * scale)
    for index in np.flatnonzero(low != high):
        low[index] = _Refined(int(raw[index]), words).floor_of(scale)
    return low.astype(np.int64)


def _exceeds(words: Words, threshold: FloatArray, distance: NDArray[np.int64], scale: int) -> NDArray[np.bool_]:
    raw = words(threshold.size)
    value, error = _exponential(raw)
    error += _LOG_ERROR * threshold
    result = value > threshold
    for index in np.flatnonzero(np.abs(value - threshold) <= error):
        result[index] = _Refined(int(raw[index]), words).exceeds(int(distance[index]) ** 2, 2 * scale * scale)
    return result


def _exponential(raw: NDArray[np.uint64]) -> tuple[FloatArray, FloatArray]:
    """Return −ln U and how far it can be from the truth, for U within half a unit of the middle of its 64 bits."""
    uniform = (raw.astype(np.float64) + 0.5) * 2.0**-64
    value = -np.log(uniform)
    # The unread bits move U by at most 2⁻⁶⁵ either way, so ln U by at most 2⁻⁶⁴/U; if all that was read is zero, E has
    # no upper end.
    unread = np.where(raw == 0, np.inf, 2.0**-64 / uniform)
    return value, _LOG_ERROR * (1.0 + np.abs(value)) + unread


class _Refined:
    """An exponential variable known to as many bits as a question needs."""

    def __init__(self, word: int, words: Words) -> None:
        self._bits, self._num_bits, self._words = word, 64, words

    def floor_of(self, scale: int) -> int:
        """Return ⌊scale · E⌋."""
        while True:
            low, high = self._interval()
            if high is not None and int(low * scale) == int(high * scale):
                return int(low * scale)
            self._read_more()

    def exceeds(self, numerator: int, denominator: int) -> bool:
        """Return whether E > numerator/denominator."""
        while True:
            low, high = self._interval()
            if low * denominator > numerator:
                return True
            if high is not None and high * denominator < numerator:
                return False
            self._read_more()

    def _read_more(self) -> None:
        self._bits = (self._bits << 64) | int(self._words(1)[0])
        self._num_bits += 64

    def _interval(self) -> tuple[Fraction, Fraction | None]:
        """Return numbers below and above E = −ln U, U between two neighbouring fractions of `num_bits` bits."""
        digits = self._num_bits // 3 + 40
        context = decimal.Context(prec=digits)
        whole = decimal.Decimal(1 << self._num_bits)
        low, high = (
            None if bits == 0 else context.subtract(context.ln(whole), context.ln(decimal.Decimal(bits)))
            for bits in (self._bits + 1, self._bits)
        )
        # Each logarithm is correctly rounded: off by less than one in its last digit, of which there are `digits`.
        # From here on fractions: decimals would round again, to whatever precision the caller's context has.
        slack = Fraction(1, 10 ** (digits - 6))
        assert low is not None
        return max(Fraction(low) - slack, Fraction(0)), None if high is None else Fraction(high) + slack
