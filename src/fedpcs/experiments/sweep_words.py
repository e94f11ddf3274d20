"""How pages write accuracies and their differences: per cent with a spread, points with an interval."""

from __future__ import annotations

import math

from fedpcs.experiments.paired import PairedDifference
from fedpcs.experiments.sweep_groups import Series, against, has_common_seed, summary
from fedpcs.experiments.sweep_points import Bar

_SPACE = "\N{NO-BREAK SPACE}"


def against_words(reference: Series, series: Series) -> str:
    """Return the difference of two series in words, if they have a seed in common."""
    if not has_common_seed(reference, series):
        return "no seed in common"
    return difference_words(against(reference, series))


def accuracy_words(series: Series, reference: Series | None) -> str:
    """Return a series' accuracy with its spread, and its seeds where they are not those it is compared over."""
    words = spread_words(*summary(series))
    if reference is None or series.seeds == reference.seeds:
        return words
    return f"{words} (seeds {', '.join(map(str, series.seeds))})"


def difference_words(found: PairedDifference) -> str:
    r"""Return a difference of accuracies in points with its interval.

    Example:
        >>> difference_words(PairedDifference(0.021, 0.004, 0.038, 3))
        '+2.1 (+0.4 to +3.8)'
    """
    if not math.isfinite(found.low):
        return f"{_signed(found.mean)} (one seed)"
    return f"{_signed(found.mean)} ({_signed(found.low)} to {_signed(found.high)})"


def bar_words(bar: Bar) -> str:
    """Return a bar of a figure as `difference_words` writes it."""
    return difference_words(PairedDifference(bar.mean, bar.low, bar.high, 0))


def spread_words(mean: float, std: float | None) -> str:
    r"""Return an accuracy in per cent with its spread.

    Example:
        >>> spread_words(0.8443, 0.0018), spread_words(0.5, None)
        ('84.43\xa0±\xa00.18\xa0%', '50.00\xa0%')
    """
    if std is None:
        return f"{100.0 * mean:.2f}{_SPACE}%"
    return f"{100.0 * mean:.2f}{_SPACE}±{_SPACE}{100.0 * std:.2f}{_SPACE}%"


def points(share: float) -> str:
    r"""Return an accuracy in per cent.

    Example:
        >>> points(0.8443)
        '84.4\xa0%'
    """
    return f"{100.0 * share:.1f}{_SPACE}%"


def _signed(share: float) -> str:
    return f"{100.0 * share:+.1f}".replace("-", "−")
