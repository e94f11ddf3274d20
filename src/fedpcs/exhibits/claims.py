"""The paper's claims, and how a few seeds judge them: yes or no only where their interval does, else "cannot say"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _format
from fedpcs.report.page import Finding, Verdict
from fedpcs.studies.paired import PairedDifference, paired_difference

Judged = tuple[Verdict, str]
CANNOT_SAY: Verdict = "cannot say"


def whole(results: Any) -> Iterable[Any]:
    """Return all results as the one place where a claim is judged."""
    return (results,)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and its judge.

    Attributes:
        sentence: The claim, or what writes it for a place.
        judge: Returns the verdict on a place and what was found there; None where it has not the numbers for it.
        places: Splits results into the places where the claim is judged, such as settings.
    """

    sentence: str | Callable[[Any], str]
    judge: Callable[[Any], Judged | None]
    places: Callable[[Any], Iterable[Any]] = whole

    def findings(self, results: Any) -> Iterable[Finding]:
        """Judge the claim at every place."""
        for place in self.places(results):
            judged = self.judge(place)
            if judged is not None:
                sentence = self.sentence if isinstance(self.sentence, str) else self.sentence(place)
                yield Finding(sentence, judged[1], judged[0])


def mean_interval(values: ArrayLike) -> PairedDifference:
    """Return the mean over seeds with its interval: the difference from zero."""
    known = np.asarray(values, dtype=np.float64)
    return paired_difference(known, np.zeros(known.shape))


def on_sign(difference: PairedDifference) -> Verdict:
    """Return whether something is larger than something else: surely, surely not, or not to be told.

    Example:
        >>> on_sign(PairedDifference(3.0, 1.0, 5.0, 3)), on_sign(PairedDifference(3.0, -1.0, 7.0, 3))
        ('agrees', 'cannot say')
    """
    if difference.low > 0.0:
        return "agrees"
    return "differs" if difference.high < 0.0 else CANNOT_SAY


def on_all_signs(differences: Sequence[PairedDifference]) -> Verdict:
    """Return whether all differences are surely above zero, some ("in part"), or some surely below."""
    signs = [on_sign(one) for one in differences]
    if "agrees" in signs:
        return "agrees" if set(signs) == {"agrees"} else "in part"
    return "differs" if "differs" in signs else CANNOT_SAY


def on_level(values: ArrayLike, level: float) -> Verdict:
    """Return whether the mean over seeds reaches a level."""
    reached = np.asarray(values, dtype=np.float64)
    return on_sign(paired_difference(reached, np.full(reached.shape, level)))


def on_grade(values: ArrayLike, full: float, partial: float) -> Verdict:
    """Return whether the mean over seeds reaches a level; in part, if surely not that but a lower one."""
    verdict = on_level(values, full)
    return "in part" if verdict == "differs" and on_level(values, partial) == "agrees" else verdict


def unless(is_spoiled: bool, verdict: Verdict) -> Verdict:
    """Return a verdict, but that what is spoiled agrees in part only."""
    return "in part" if is_spoiled and verdict == "agrees" else verdict


def on_lead(leads: Sequence[PairedDifference], best: PairedDifference, claimed: float) -> Verdict:
    """Return whether all rivals are behind, and the best of them by as much as claimed; in part, if not surely so."""
    if all(lead.is_above for lead in leads):
        return "agrees" if best.low >= claimed else "in part"
    return "differs" if any(lead.high < claimed for lead in leads) else CANNOT_SAY


def on_count(num_for: int, num_against: int, num_all: int) -> Verdict:
    """Return whether a claim holds everywhere, somewhere ("in part"), or is only spoken against."""
    if num_for:
        return "agrees" if num_for == num_all else "in part"
    return "differs" if num_against else CANNOT_SAY


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
    return "differs" if gained.high <= 0.0 <= paid.low else CANNOT_SAY


def interval(found: PairedDifference, write: Callable[[float], str] = _format.amount, unit: str = "") -> str:
    r"""Return a paired difference with its interval.

    Example:
        >>> interval(PairedDifference(-3.0, -5.0, -1.0, 3))
        '−3 (95\xa0% interval −5 to −1, 3 pairs)'
    """
    if found.num_pairs == 1:
        return f"{write(found.mean)}{unit} (one pair, no interval)"
    reach = f"95\N{NO-BREAK SPACE}% interval {write(found.low)} to {write(found.high)}, {found.num_pairs} pairs"
    return f"{write(found.mean)}{unit} ({reach})"


def points(found: PairedDifference) -> str:
    """Return a paired difference of shares in percentage points."""
    return interval(found, _format.points, " points")
