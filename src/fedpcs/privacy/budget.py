"""ρ, the budget of zero-concentrated differential privacy, as a number that adds up exactly.

A mechanism is ρ-zCDP if for every pair of neighbouring inputs and every α > 1 the Rényi divergence of order α between
its outputs is at most αρ (Bun and Steinke 2016, arXiv 1605.02065, Definition 1.1). Releases compose by adding their ρ,
so a total is only as sound as the sum. Floats do not add exactly, and 0.1 + 0.2 > 0.3 would refuse a client who is
within its limit; ρ is therefore a whole number of billionths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from fedpcs import _validate
from fedpcs.errors import InvalidInput

NANOS_PER_UNIT = 10**9
# Below this, billionths have 15 digits or fewer, and no two such numbers are the same float.
_SHORT = 1e6
# What an SQLite integer can hold, so that a total in the ledger can never wrap around.
MOST_NANOS = 2**63 - 1
_REMEDY = "A zCDP budget is at least 0."


@dataclass(frozen=True, order=True)
class Rho:
    """A zCDP budget, in billionths. Sums, differences and whole multiples are exact.

    Attributes:
        nanos: ρ · 10⁹, a whole number, zero or above.

    Example:
        >>> Rho.of(0.1) + Rho.of(0.2) == Rho.of(0.3)
        True
        >>> float(3 * Rho.of(0.1))
        0.3
    """

    nanos: int

    def __post_init__(self) -> None:
        if type(self.nanos) is int and 0 <= self.nanos <= MOST_NANOS:
            return
        # As Python's own int: a NumPy one wraps around, and a wrapped sum reads as budget left.
        object.__setattr__(self, "nanos", _validate.integer("nanos", self.nanos, low=0, high=MOST_NANOS))

    @classmethod
    def of(cls, value: Any) -> Rho:
        """Return a number as a budget: read as it is written in decimals, rounded up to the next billionth.

        Rounding up is the private side: what is charged is never below what was asked for. `Rho.of(0.1)` is one
        tenth, not the float just above it.

        Raises:
            InvalidInput: Not a number, negative, NaN, or beyond 9.2e9.
        """
        if type(value) is float and 0.0 <= value < _SHORT:
            return cls(_rounded_up(value))
        return value if isinstance(value, Rho) else cls(math.ceil(billionths("rho", value, _REMEDY)))

    @classmethod
    def at_most(cls, value: Any) -> Rho:
        """Return the largest budget that is not above a number: for limits, and for the ρ that an ε allows.

        Example:
            >>> Rho.at_most(1 / 3).nanos, Rho.of(1 / 3).nanos
            (333333333, 333333334)
        """
        return value if isinstance(value, Rho) else cls(math.floor(billionths("rho", value, _REMEDY)))

    def __float__(self) -> float:
        """Return the float nearest to ρ; conversions add far more than its half ulp on the private side."""
        return self.nanos / NANOS_PER_UNIT

    def __add__(self, other: Rho) -> Rho:
        if not isinstance(other, Rho):
            return NotImplemented
        return Rho(self.nanos + other.nanos)

    def __sub__(self, other: Rho) -> Rho:
        if not isinstance(other, Rho):
            return NotImplemented
        if other > self:
            raise InvalidInput(f"cannot take {other} from {self}: a budget is at least 0. Compare them first.")
        return Rho(self.nanos - other.nanos)

    def __mul__(self, count: int) -> Rho:
        return Rho(self.nanos * _validate.integer("count", count, low=0))

    __rmul__ = __mul__

    def __floordiv__(self, parts: int) -> Rho:
        """Return one of `parts` equal shares, rounded down so that together they never exceed the whole."""
        return Rho(self.nanos // _validate.integer("parts", parts, low=1))

    def __str__(self) -> str:
        return f"ρ = {float(self):.10g}"


def _rounded_up(value: float) -> int:
    """Return a short float in billionths, rounded up as `billionths` would, ten times as fast."""
    nearest = round(value * NANOS_PER_UNIT)
    # If 15 digits read back as the same float, they are what the caller wrote.
    if nearest / NANOS_PER_UNIT == value:
        return nearest
    # If not, no billionth lies between the float and the decimal it was written as: both round up alike.
    numerator, denominator = value.as_integer_ratio()
    return -(-numerator * NANOS_PER_UNIT // denominator)


def billionths(name: str, value: Any, remedy: str = "") -> Fraction:
    """Return a number of zero or above in billionths, exactly as it is written in decimals."""
    number = _validate.number(name, value, low=0.0, high=MOST_NANOS // NANOS_PER_UNIT, remedy=remedy)
    # repr is the shortest decimal that reads back as the same float: the number the caller wrote.
    exact = Fraction(value) if isinstance(value, int | Fraction) else Fraction(repr(number))
    return max(exact, Fraction(0)) * NANOS_PER_UNIT


def total(budgets: Iterable[Rho]) -> Rho:
    """Return the exact sum; nothing spent is zero.

    Example:
        >>> float(total([Rho.of(0.1)] * 10))
        1.0
    """
    return Rho(sum(Rho.of(budget).nanos for budget in budgets))
