"""What a few seeds may say of a claim: yes or no only where their interval does, and otherwise that they cannot say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fedpcs.report.page import Verdict
from fedpcs.studies.paired import PairedDifference, paired_difference
from fedpcs.studies.points import Bar


def on_sign(difference: PairedDifference | Bar) -> Verdict:
    """Return whether something is larger than something else: surely, surely not, or not to be told.

    Example:
        >>> on_sign(PairedDifference(3.0, 1.0, 5.0, 3)), on_sign(PairedDifference(3.0, -1.0, 7.0, 3))
        ('agrees', 'cannot say')
    """
    if difference.low > 0.0:
        return "agrees"
    return "differs" if difference.high < 0.0 else "cannot say"


def on_level(values: ArrayLike, level: float) -> Verdict:
    """Return whether the mean of what seeds came to reaches a level."""
    reached = np.asarray(values, dtype=np.float64)
    return on_sign(paired_difference(reached, np.full(reached.shape, level)))


def on_grade(values: ArrayLike, full: float, partial: float) -> Verdict:
    """Return whether the mean of what seeds came to reaches a level; in part, if surely not that but a lower one."""
    verdict = on_level(values, full)
    return "in part" if verdict == "differs" and on_level(values, partial) == "agrees" else verdict


def on_lead(leads: Sequence[PairedDifference], best: PairedDifference, claimed: float) -> Verdict:
    """Return whether all rivals are left behind, and the best of them by as much as claimed; in part, if not surely so.

    Args:
        leads: Over each rival, intervals that hold together.
        best: Over the best of them.
        claimed: How large that lead should be.
    """
    if all(lead.is_above for lead in leads):
        return "agrees" if best.low >= claimed else "in part"
    return "differs" if any(lead.high < claimed for lead in leads) else "cannot say"


def on_bargain(gained: PairedDifference, paid: PairedDifference) -> Verdict:
    """Return whether more is had for no more, or no less for less: surely, surely not, or not to be told.

    Two intervals that are all above zero, or all below, are more of both or less of both: in part. Otherwise both must
    speak, since an interval across zero is not known to be zero: with more had, and perhaps more paid, nothing is said.

    Example:
        >>> more, perhaps = PairedDifference(2.0, 1.0, 3.0, 3), PairedDifference(1.0, -0.1, 2.1, 3)
        >>> on_bargain(more, perhaps), on_bargain(more, more)
        ('cannot say', 'in part')
    """
    if (gained.is_above and paid.is_above) or (gained.is_below and paid.is_below):
        return "in part"
    if gained.low >= 0.0 >= paid.high and (gained.is_above or paid.is_below):
        return "agrees"
    return "differs" if gained.high <= 0.0 <= paid.low else "cannot say"
