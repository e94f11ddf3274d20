r"""Numbers as text: the one place that decides how a number is shown, on every surface.

Files keep the whole number; terminal, pages and figures show what these functions make of it. What was spent of ρ and ε
is rounded up and what may be spent is rounded down: a number that is shown never promises more than is true. A no-break
space stands before each unit.

Example:
    >>> share(0.8443), points(-0.0251), amount(5631.4), rounded_up(0.10201), duration(300.0)
    ('84.4\xa0%', '−2.5', '5,631', '0.103', '5 min')
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

# Relative gains below this are what rounding leaves.
ROUNDING = 1e-12

_SPACE = "\N{NO-BREAK SPACE}"
_PLUS_MINUS = f"{_SPACE}±{_SPACE}"
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LARGE = 10_000_000.0
_DIGITS = 3
_HALF_A_TENTH = 0.05
# A number that floats have pushed past a digit by less than this share of itself is still that digit.
_SLACK = Decimal("1e-9")


def rounded_up(value: float) -> str:
    """Return what was spent, ρ or ε, with three digits that matter.

    Guarantees:
        What is shown is at least `value` less a billionth of it, and less than 1.1 % above it.
    """
    return _three_digits(value, ROUND_CEILING, 1 - _SLACK)


def rounded_down(value: float) -> str:
    """Return what may be spent, or a lower bound, with three digits that matter: never more than it is."""
    return _three_digits(value, ROUND_FLOOR, 1 + _SLACK)


def least_middle_greatest(values: Sequence[float]) -> str:
    """Return what clients spent: the least, the one in the middle, the greatest."""
    return " / ".join(map(rounded_up, values))


def amount(value: float) -> str:
    """Return a number, such as of money, as a person would write it: three digits that matter, commas at thousands."""
    if abs(value) >= _LARGE:
        return f"{_fixed(value / 1e6, 1)} million"
    return _fixed(value, 0) if abs(value) >= 100.0 else _plain(value, _DIGITS)


def amount_and_spread(values: Sequence[float]) -> str:
    """Return the mean of amounts ± their standard deviation, to the same decimals; of one, itself."""
    middle = amount(statistics.fmean(values))
    if len(values) == 1:
        return middle
    deviation, number = statistics.stdev(values), middle.removesuffix(" million")
    if number != middle:
        return f"{number}{_PLUS_MINUS}{_fixed(deviation / 1e6, 1)} million"
    is_plain = re.fullmatch(r"−?[\d,]+(\.\d+)?", middle)
    return f"{middle}{_PLUS_MINUS}{_fixed(deviation, len(middle.partition('.')[2])) if is_plain else amount(deviation)}"


def share(value: float) -> str:
    """Return a share in per cent to a tenth, such as an accuracy."""
    return share_and_spread(value, None)


def share_and_spread(mean: float, deviation: float | None) -> str:
    """Return a mean of shares, such as accuracies over seeds, ± its standard deviation if it has one."""
    spread = "" if deviation is None else f"{_PLUS_MINUS}{_fixed(100.0 * deviation, 1)}"
    return f"{_fixed(100.0 * mean, 1)}{spread}{_SPACE}%"


def mean_and_spread(shares: Sequence[float]) -> str:
    """Return the mean over seeds of shares, with their sample standard deviation."""
    return share_and_spread(statistics.fmean(shares), statistics.stdev(shares) if len(shares) > 1 else None)


def with_spread(values: Sequence[float], write: Callable[[float], str]) -> str:
    """Return the mean of numbers ± their standard deviation, both as `write` has them; of one, itself."""
    middle = write(statistics.fmean(values))
    return middle if len(values) == 1 else f"{middle}{_PLUS_MINUS}{write(statistics.stdev(values))}"


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign and without a unit."""
    found = _fixed(100.0 * difference, 1)
    return f"±{found}" if found == "0.0" else found if found.startswith("−") else f"+{found}"


def size(difference: float) -> str:
    """Return the size of a difference of shares, or of a ratio to one, in points or per cent, without a sign or unit.

    It has one decimal, or two digits that matter where that would be zero: what is sure is not shown as nothing.
    """
    scaled = abs(100.0 * difference)
    return _fixed(scaled, 1) if scaled >= _HALF_A_TENTH or scaled == 0.0 else _plain(scaled, 2)


def percent(value: float) -> str:
    """Return a share in per cent with two digits that matter, however small it is."""
    scaled = 100.0 * value
    return f"{_fixed(scaled, 0) if scaled >= 99.5 else _plain(scaled, 2)}{_SPACE}%"


def gain(value: float) -> str:
    """Return what deviating gains, in per cent; what rounding alone explains is nothing."""
    return percent(value) if value > ROUNDING else "nothing"


def setting(value: float) -> str:
    """Return a number that somebody chose, such as a key of a file, as it was written."""
    return f"{value:,.7g}".replace("-", "−")


def two_decimals(value: float) -> str:
    """Return a number with two decimals, such as a correlation."""
    return _fixed(value, 2)


def three_decimals(value: float) -> str:
    """Return a number with three decimals, such as a loss."""
    return _fixed(value, 3)


def duration(seconds: float) -> str:
    """Return a length of time as a person would say it."""
    if seconds < 10.0:
        return f"{seconds:.2g} s"
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _fixed(value: float, decimals: int) -> str:
    return f"{value:z,.{decimals}f}".replace("-", "−")


def _three_digits(value: float, rounding: str, slack: Decimal) -> str:
    if not math.isfinite(value) or value == 0.0:
        return "0" if value == 0.0 else "∞" if value > 0.0 else str(value)
    shown = Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(repr(float(value))) * slack)
    mantissa, exponent = shown.scaleb(-shown.adjusted()), shown.adjusted()
    return f"{shown:,f}" if exponent >= -4 else f"{mantissa:f}·10{str(exponent).translate(_SUPERSCRIPT)}"


def _plain(value: float, digits: int) -> str:
    """Return a number without an e: Python writes one only for exponents below −4."""
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    mantissa = mantissa.replace("-", "−")
    if not exponent:
        return mantissa
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPT)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"
