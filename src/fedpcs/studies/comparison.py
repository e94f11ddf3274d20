"""Two samplers side by side: three paired differences over seeds, and which of them are sure.

Trials with the same seed i, which came to a_i and b_i, share the partition, the first model and the test records.

    accuracy                  d_i = a_i − b_i         given as the mean of d, in points
    ε of the median client    d_i = ln(a_i / b_i)     given as exp(mean of d) − 1, in per cent
    pay                       d_i = ln(a_i / b_i)     likewise

The interval is mean ± t · max(s, r) / √n, s being the standard deviation of d. r is the least one that is believed,
since counted numbers may agree by chance: one test record, one payment, one place in the order of clients. A sampler
compared with k others has intervals of 1 − 0.05/k confidence, so that those of one measure hold together with 95 %
(Bonferroni). They are not widened for there being three measures: each is a question of its own.

A difference is sure where its interval leaves zero out. What no interval shows is not claimed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.studies.paired import joint_confidence, paired_difference
from fedpcs.trial.records import TrialResult

Measure = Literal["accuracy", "epsilon", "paid"]
Verdict = Literal["higher", "lower", "equal", "cannot be told apart", "one seed"]
MEASURES: tuple[Measure, ...] = ("accuracy", "epsilon", "paid")
HEADINGS: dict[Measure, str] = {"accuracy": "accuracy", "epsilon": "ε of the median client", "paid": "pay"}
MEANINGS: dict[Measure, str] = {
    "accuracy": "how much higher the first one's is, in points: mean over pairs of trials with the same seed, and the "
    "ends of its t-interval. Without a sign it is sure: the interval has no zero in it. Intervals speak of other "
    "seeds, not of other test records or other clients",
    "epsilon": "how much more the median client spends, in per cent: geometric mean of the pairs' ratios, likewise",
    "paid": "how much more clients are paid in all, in per cent, likewise",
}
TOGETHER = (
    "The intervals of one column and setting hold together with 95 % confidence. They are not widened for the three "
    "measures, nor for the number of settings."
)
_SUBJECT, _BASELINE = "fedpcs", "random"
_SPACE = "\N{NO-BREAK SPACE}"
# Why there is no ratio: both are nothing, one is, or either is with some seed.
_NO_RATIO: dict[Measure, tuple[str, str, str]] = {
    "epsilon": ("no client spends any ε", "only {} spends ε", "with some seeds no ε is spent"),
    "paid": ("no client is paid", "only {} pays", "with some seeds nothing is paid"),
}


@dataclass(frozen=True)
class Difference:
    """How much higher one sampler is than another in one measure.

    Attributes:
        measure: In what.
        mean: Over seeds: a share of test records for accuracy, else the ratio less one.
        low: Lower end of the interval; with one seed as low as can be.
        high: Upper end; with one seed ∞.
        is_equal: Whether both came to the same with every seed.
        num_seeds: Done with both.
    """

    measure: Measure
    mean: float
    low: float
    high: float
    is_equal: bool
    num_seeds: int

    @property
    def verdict(self) -> Verdict:
        """What the seeds show."""
        if self.num_seeds == 1:
            return "one seed"
        if self.is_equal:
            return "equal"
        if self.low > 0.0:
            return "higher"
        return "lower" if self.high < 0.0 else "cannot be told apart"

    @property
    def is_sure(self) -> bool:
        """Whether one of both is higher for sure."""
        return self.verdict in ("lower", "higher")

    @property
    def size(self) -> str:
        """By how much, without a sign."""
        return self._with_unit(_format.size(self.mean))

    @property
    def interval(self) -> str:
        """The ends of the interval, without signs where the difference is sure."""
        ends = sorted((abs(self.low), abs(self.high))) if self.is_sure else (self.low, self.high)
        low, high = map(_format.size if self.is_sure else _format.points, ends)
        return f"({low} to {high})" if self.measure == "accuracy" else f"({low} to {self._with_unit(high)})"

    @property
    def text(self) -> str:
        """The difference with its interval."""
        if self.verdict == "equal":
            return "equal"
        if self.is_sure:
            less, more = ("lower", "higher") if self.measure == "accuracy" else ("less", "more")
            return f"{self.size} {more if self.verdict == 'higher' else less} {self.interval}"
        signed = self._with_unit(_format.points(self.mean))
        return f"{signed}, one seed" if self.verdict == "one seed" else f"{signed} {self.interval}"

    def _with_unit(self, number: str) -> str:
        return f"{number}{_SPACE}{'points' if self.measure == 'accuracy' else '%'}"


@dataclass(frozen=True)
class Comparison:
    """One sampler beside another.

    Attributes:
        sampler: The one described.
        other: With whom it is compared.
        differences: Those that can be computed, in the order of `MEASURES`; none without a common seed.
        left_out: Why the others cannot.
        num_seeds: Done with both.
    """

    sampler: str
    other: str
    differences: tuple[Difference, ...]
    left_out: Mapping[Measure, str]
    num_seeds: int

    def of(self, measure: Measure) -> Difference | None:
        """Return one difference, if there is one."""
        return next((one for one in self.differences if one.measure == measure), None)

    def text(self, measure: Measure) -> str:
        """Return one difference in words, or why there is none."""
        found = self.of(measure)
        return self.left_out[measure] if found is None else found.text

    def is_sure(self, measure: Measure) -> bool:
        """Return whether a difference is sure; not if it is left out."""
        found = self.of(measure)
        return found is not None and found.is_sure

    @property
    def sure_first(self) -> list[Measure]:
        """All measures, those with a sure difference first."""
        return sorted(MEASURES, key=lambda measure: not self.is_sure(measure))

    @property
    def numbers(self) -> dict[str, Any]:
        """Everything as numbers, for JSON; None where there is no number."""
        found: dict[str, Any] = {"sampler": self.sampler, "other": self.other, "seeds": self.num_seeds}
        for measure in MEASURES:
            one = self.of(measure)
            low, high = (None, None) if one is None or one.num_seeds == 1 else (one.low, one.high)
            high = high if high is not None and math.isfinite(high) else None
            found[measure] = one and {"mean": one.mean, "low": low, "high": high, "verdict": one.verdict}
        return {**found, "left_out": dict(self.left_out)}


def compare_each(results: Mapping[str, Sequence[TrialResult]]) -> list[Comparison]:
    """Compare one sampler with each of the others: FedPCS if it takes part, else the first that is not random sampling.

    Args:
        results: Of finished trials, by sampler; one of which nothing is done counts among those compared.
    """
    if len(results) < 2:
        return []
    first = min(results, key=lambda name: (name != _SUBJECT, name == _BASELINE))
    others = [name for name in results if name != first]
    return [compare(first, results[first], name, results[name], len(others)) for name in others]


def compare(
    sampler: str, mine: Sequence[TrialResult], other: str, theirs: Sequence[TrialResult], num_compared: int = 1
) -> Comparison:
    """Return the three differences of one sampler to another, over the seeds done with both.

    Args:
        sampler: The one described.
        mine: Results of its finished trials.
        other: With whom it is compared.
        theirs: Results of the other's.
        num_compared: So many comparisons hold together with 95 % confidence.
    """
    by_seed = {one.seed: one for one in theirs}
    pairs = [(one, by_seed[one.seed]) for one in mine if one.seed in by_seed]
    if not pairs:
        return Comparison(sampler, other, (), dict.fromkeys(MEASURES, "no seed in common"), 0)
    found: list[Difference] = []
    left_out: dict[Measure, str] = {}
    for measure in MEASURES:
        a, b = (np.array([_VALUE[measure](one) for one in side]) for side in zip(*pairs, strict=True))
        if measure != "accuracy" and not (np.all(a > 0.0) and np.all(b > 0.0)):
            named = [name for name, values in ((sampler, a), (other, b)) if np.any(values > 0.0)]
            left_out[measure] = _NO_RATIO[measure][len(named)].format(*named)
            continue
        resolution = max(_STEP[measure](one) for pair in pairs for one in pair)
        found.append(_difference(measure, a, b, joint_confidence(num_compared), resolution))
    return Comparison(sampler, other, tuple(found), left_out, len(pairs))


def _difference(measure: Measure, a: FloatArray, b: FloatArray, confidence: float, resolution: float) -> Difference:
    is_ratio = measure != "accuracy"
    first, second = (np.log(a), np.log(b)) if is_ratio else (a, b)
    found = paired_difference(first, second, confidence, resolution=resolution)
    ends = found.mean, found.low, found.high
    with np.errstate(over="ignore"):  # two seeds may allow for any ratio
        mean, low, high = map(float, np.expm1(ends) if is_ratio else ends)
    is_equal = bool(np.allclose(a, b, rtol=_format.ROUNDING, atol=0.0))
    return Difference(measure, mean, low, high, is_equal, found.num_pairs)


def _place(result: TrialResult) -> float:
    """Return by what share the median client's ε moves from one place in the order to the next, in the denser half."""
    spent, num_gaps = result.spent.epsilon, max(result.spent.num_clients - 1, 1)
    width = min(spent.maximum - spent.median, spent.median - spent.minimum)
    return 2.0 * width / (num_gaps * spent.median)


def _payment(result: TrialResult) -> float:
    """Return one payment's share of all; where the draws were not kept, a share that is surely not smaller."""
    return 1.0 / (sum(result.times_drawn or ()) or max(result.rounds, result.spent.num_clients, 1))


_VALUE: dict[Measure, Callable[[TrialResult], float]] = {
    "accuracy": lambda one: one.accuracy,
    "epsilon": lambda one: one.spent.epsilon.median,
    "paid": lambda one: one.paid,
}
_STEP: dict[Measure, Callable[[TrialResult], float]] = {
    "accuracy": lambda one: 1.0 / one.num_test,
    "epsilon": _place,
    "paid": _payment,
}
