"""Accuracies and their differences as text: per cent with a spread, points with an interval."""

from __future__ import annotations

import math

from fedpcs import _format
from fedpcs.studies.groups import Series, summary
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import Bar


def accuracy_text(series: Series, reference: Series | None) -> str:
    """Return a series' accuracy with its spread, and its seeds where they are not those it is compared over."""
    words = _format.share_and_spread(*summary(series))
    if reference is None or series.seeds == reference.seeds:
        return words
    return f"{words} (seeds {', '.join(map(str, series.seeds))})"


def difference_text(found: PairedDifference) -> str:
    r"""Return a difference of accuracies in points with its interval.

    Example:
        >>> difference_text(PairedDifference(0.021, 0.004, 0.038, 3))
        '+2.1 (+0.4 to +3.8)'
    """
    if not math.isfinite(found.low):
        return f"{_format.points(found.mean)} (one seed)"
    return f"{_format.points(found.mean)} ({_format.points(found.low)} to {_format.points(found.high)})"


def bar_text(bar: Bar) -> str:
    """Return a bar of a figure as `difference_text` writes it."""
    return difference_text(PairedDifference(bar.mean, bar.low, bar.high, 0))
