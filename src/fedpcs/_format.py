r"""Numbers in words: the one place that decides how a number is shown, on every surface.

Files keep the whole number; terminal, pages and figures show what these functions make of it. What is privacy spent,
ρ and ε, is rounded up and what may be spent is rounded down: a number that is shown never promises more than is true.

Example:
    >>> share(0.8443), points(-0.0251), amount(5631.4), rounded_up(0.10201), duration(300.0)
    ('84.4\xa0%', '−2.5', '5,631', '0.103', '5 min')
"""

from __future__ import annotations

import math
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
    """Return what was spent, ρ or ε, with three digits that matter and never less than it is: the private side.

    Guarantees:
        What is shown is at least `value` less a billionth of it, and less than 1.1 % above it.

    Example:
        >>> rounded_up(0.10201), rounded_up(0.1 + 0.2), rounded_up(2.0), rounded_up(1234.5), rounded_up(0.0)
        ('0.103', '0.300', '2.00', '1,240', '0')
        >>> rounded_up(3.001e-7), rounded_up(float("inf"))
        ('3.01·10⁻⁷', '∞')
    """
    return _three_digits(value, ROUND_CEILING, 1 - _SLACK)


def rounded_down(value: float) -> str:
    """Return what may be spent with three digits that matter, never more than it is: the private side of a limit.

    Example:
        >>> rounded_down(0.67499), rounded_down(0.3)
        ('0.674', '0.300')
    """
    return _three_digits(value, ROUND_FLOOR, 1 + _SLACK)


def least_middle_greatest(values: Sequence[float]) -> str:
    """Return what clients spent: the least, the one in the middle, the greatest.

    Example:
        >>> least_middle_greatest((0.101, 0.2, 0.3001))
        '0.101 / 0.200 / 0.301'
    """
    return " / ".join(rounded_up(value) for value in values)


def amount(value: float) -> str:
    """Return a number, such as of money, as a person would write it: three digits that matter, thousands with commas.

    Example:
        >>> amount(5631.4), amount(6.3761), amount(0.0), amount(1_037_197_875)
        ('5,631', '6.38', '0', '1,037.2 million')
    """
    if abs(value) >= _LARGE:
        return f"{value / 1e6:,.1f} million".replace("-", "−")
    if abs(value) >= 100.0:
        return f"{value:,.0f}".replace("-", "−")
    return _plain(value, _DIGITS)


def amount_and_spread(values: Sequence[float]) -> str:
    r"""Return the mean of amounts ± their standard deviation, to the same decimals; of one, itself.

    Example:
        >>> amount_and_spread([5600.0, 5700.0]), amount_and_spread([6.0, 6.76]), amount_and_spread([1.0])
        ('5,650\xa0±\xa071', '6.38\xa0±\xa00.54', '1')
    """
    middle = amount(statistics.fmean(values))
    if len(values) == 1:
        return middle
    deviation = statistics.stdev(values)
    if middle.endswith("million"):
        return f"{middle.removesuffix(' million')}{_PLUS_MINUS}{deviation / 1e6:,.1f} million"
    if not middle.replace(",", "").replace(".", "").lstrip("−").isdigit():
        return f"{middle}{_PLUS_MINUS}{amount(deviation)}"
    return f"{middle}{_PLUS_MINUS}{deviation:,.{len(middle.partition('.')[2])}f}"


def share(value: float) -> str:
    r"""Return a share in per cent to a tenth, such as an accuracy, never parted from its sign.

    Example:
        >>> share(0.8443), share(-0.0123)
        ('84.4\xa0%', '−1.2\xa0%')
    """
    return f"{_tenths(value)}{_SPACE}%"


def share_and_spread(mean: float, deviation: float | None) -> str:
    r"""Return a mean of shares, such as accuracies over seeds, ± its standard deviation if it has one.

    Example:
        >>> share_and_spread(0.85, 0.0707), share_and_spread(0.5, None)
        ('85.0\xa0±\xa07.1\xa0%', '50.0\xa0%')
    """
    if deviation is None:
        return share(mean)
    return f"{_tenths(mean)}{_PLUS_MINUS}{_tenths(deviation)}{_SPACE}%"


def mean_and_spread(shares: Sequence[float]) -> str:
    r"""Return the mean over seeds of shares, with their sample standard deviation, as `share_and_spread` does.

    Example:
        >>> mean_and_spread([0.8, 0.9]), mean_and_spread([0.5])
        ('85.0\xa0±\xa07.1\xa0%', '50.0\xa0%')
    """
    return share_and_spread(statistics.fmean(shares), statistics.stdev(shares) if len(shares) > 1 else None)


def with_spread(values: Sequence[float], write: Callable[[float], str]) -> str:
    r"""Return the mean of numbers ± their standard deviation, both as `write` has them; of one, itself.

    Example:
        >>> with_spread([0.5, 0.6, 0.7], two_decimals)
        '0.60\xa0±\xa00.10'
    """
    middle = write(statistics.fmean(values))
    return middle if len(values) == 1 else f"{middle}{_PLUS_MINUS}{write(statistics.stdev(values))}"


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Example:
        >>> points(-0.0251), points(0.5), points(0.0)
        ('−2.5', '+50.0', '±0.0')
    """
    found = f"{100.0 * difference:+.1f}"
    return "±0.0" if found in ("+0.0", "-0.0") else found.replace("-", "−")


def size(difference: float) -> str:
    """Return the size of a difference of shares, or of a ratio to one, in points or per cent, without a sign or unit.

    It has one decimal, or two digits that matter where that would be zero: what is sure is not shown as nothing.

    Example:
        >>> size(-0.3172), size(12.345), size(0.00012)
        ('31.7', '1,234.5', '0.012')
    """
    scaled = abs(100.0 * difference)
    return f"{scaled:,.1f}" if scaled >= _HALF_A_TENTH or scaled == 0.0 else _plain(scaled, 2)


def percent(value: float) -> str:
    r"""Return a share in per cent with two digits that matter, however small it is, never parted from its sign.

    Example:
        >>> percent(0.473), percent(0.0000031), percent(3e-9), percent(1.5)
        ('47\xa0%', '0.00031\xa0%', '3·10⁻⁷\xa0%', '150\xa0%')
    """
    scaled = 100.0 * value
    number = f"{scaled:,.0f}" if scaled >= 99.5 else _plain(scaled, 2)
    return f"{number}{_SPACE}%"


def gain(value: float) -> str:
    r"""Return what deviating gains, in per cent; what rounding alone explains is nothing.

    Example:
        >>> gain(3e-16), gain(0.5)
        ('nothing', '50\xa0%')
    """
    return percent(value) if value > ROUNDING else "nothing"


def setting(value: float) -> str:
    """Return a number that somebody chose, such as a key of a file, as it was written.

    Example:
        >>> setting(0.2), setting(3.0), setting(250_000)
        ('0.2', '3', '250,000')
    """
    return f"{value:,.7g}".replace("-", "−")


def two_decimals(value: float) -> str:
    """Return a number with two decimals, such as a correlation.

    Example:
        >>> two_decimals(-0.456)
        '−0.46'
    """
    return f"{value:z.2f}".replace("-", "−")


def loss(value: float) -> str:
    """Return a loss, such as a cross-entropy, with three decimals.

    Example:
        >>> loss(2.47561)
        '2.476'
    """
    return f"{value:,.3f}"


def duration(seconds: float) -> str:
    """Return a length of time as a person would say it.

    Example:
        >>> duration(0.0123), duration(42.0), duration(300.0), duration(9000.0)
        ('0.012 s', '42 s', '5 min', '2.5 h')
    """
    if seconds < 10.0:
        return f"{seconds:.2g} s"
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 5400.0 else f"{seconds / 3600.0:.1f} h"


def _tenths(value: float) -> str:
    return f"{100.0 * value:z.1f}".replace("-", "−")


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
