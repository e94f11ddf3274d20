"""What an attack says about a claim of privacy: from scores of canaries to lower bounds on ε.

An auditor runs a mechanism many times on one of two neighbouring inputs, with its canary in or out, and gives every run
a score, high when it believes the canary was in. A mechanism that keeps its claim leaves few ways to be right.

- Clopper–Pearson, assuming nothing: (ε, δ) means TPR ≤ e^ε FPR + δ and TNR ≤ e^ε FNR + δ at every threshold. The
  threshold is the k-th highest score of the held-out, k fixed beforehand. The chance of a held-out score strictly above
  it is then at most Beta(k, n − k + 1), whatever their law, and the held-in scores know nothing of it: no canary is
  spent on choosing. Two k are used, the best for a claim just kept and the best for one badly broken, each in both
  directions; the four share the failure probability.
- Gaussian: releases with Gaussian noise have the trade-off of telling N(0, 1) from N(μ, 1), μ = √(2ρ) (Dong, Roth and
  Su 2019, arXiv 1905.02383). No test is then right more often than Φ(μ/2), so the share of right guesses at a threshold
  fixed beforehand bounds μ from below. Guesses on canaries of unequal difficulty are covered: a sum of independent
  trials exceeds its mean no more often than a binomial of the same mean (Hoeffding 1956, Theorem 4). As a bound on ε it
  assumes a Gaussian trade-off; as evidence against a claim of Gaussian noise it assumes nothing more than the claim.

An audit can contradict a claim and cannot prove one. A sound mechanism passes its own ε at confidence 95 % in one audit
of twenty, so the verdict asks for more: `false_alarm`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from scipy.special import ndtr, ndtri

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.privacy.events import Family
from fedpcs.privacy.noise_law import FALSE_ALARM, Check, checked_false_alarm

FALSE_POSITIVE_RATES = (0.01, 0.001)
# Of a bound's failure probability: the false positives, few and uncertain, get the most.
_FALSE_POSITIVE_SHARE = 0.9
# Hoeffding's comparison needs a tail below 1/4.
_LEAST_CONFIDENCE = 0.8


@dataclass(frozen=True)
class Claim:
    """What a mechanism says of itself: all its releases together are Gaussian with this ρ.

    Attributes:
        rho: zCDP budget of all releases an auditor sees.
        delta: The δ at which ε is quoted.
        family: Law of the noise: discrete Gaussian noise is quoted at the tight ε.
    """

    rho: Rho
    delta: float
    family: Family = Family.GAUSSIAN

    def __post_init__(self) -> None:
        if not isinstance(self.rho, Rho):
            raise InvalidInput(f"rho must be a Rho, got {self.rho!r}. Make one with Rho.of(0.1).")
        to_epsilon(self.rho, self.delta, "exact")

    @property
    def epsilon(self) -> float:
        """The ε that this noise is quoted at."""
        return to_epsilon(self.rho, self.delta, "exact" if self.family is Family.GAUSSIAN else "tight")

    @property
    def distance(self) -> float:
        """μ = √(2ρ): how far apart, in standard deviations, two neighbours' releases may be."""
        return math.sqrt(2.0 * float(self.rho))

    @property
    def auc(self) -> float:
        """Φ(μ/√2), the area under the best attack's ROC curve."""
        return float(ndtr(self.distance / math.sqrt(2.0)))

    def true_positive_rate(self, false_positive_rate: ArrayLike) -> FloatArray:
        """Φ(μ + Φ⁻¹(f)), the most that any attack with this false positive rate can find."""
        rates = np.asarray(false_positive_rate)
        is_real = rates.dtype != np.bool_ and np.issubdtype(rates.dtype, np.number) and np.isrealobj(rates)
        if not (is_real and ((rates >= 0.0) & (rates <= 1.0)).all()):
            raise InvalidInput(f"false_positive_rate must be in [0, 1], got {false_positive_rate!r}.")
        return np.asarray(ndtr(self.distance + ndtri(rates.astype(np.float64))))


@dataclass(frozen=True)
class AuditBounds:
    """Lower bounds on ε, each wrong with probability at most 1 − confidence, rounded down.

    Attributes:
        confidence: How sure each is.
        clopper_pearson: Assumes nothing of the mechanism.
        gaussian: Assumes a Gaussian trade-off.
        ceiling: The most that so few canaries can show, the Gaussian bound of an attack that is always right.
    """

    confidence: float
    clopper_pearson: float
    gaussian: float
    ceiling: float


@dataclass(frozen=True)
class AuditResult:
    """What an audit found.

    Attributes:
        claim: What was tested.
        num_canaries: Held in, and as many held out.
        bounds: At the confidence asked for.
        verdict_bounds: At the confidence a verdict needs.
        auc: Area under the attack's ROC curve.
        true_positive_rates: At each of FALSE_POSITIVE_RATES.
        roc: (2, points) false and true positive rates, from (0, 0) to (1, 1).
        checks: Of the mechanism's parts, if any were made.
    """

    claim: Claim
    num_canaries: int
    bounds: AuditBounds
    verdict_bounds: AuditBounds
    auc: float
    true_positive_rates: tuple[float, ...]
    roc: FloatArray
    checks: tuple[Check, ...] = ()

    @property
    def is_attack_contradicting(self) -> bool:
        """Whether the canaries alone refute the claim."""
        return max(self.verdict_bounds.clopper_pearson, self.verdict_bounds.gaussian) > self.claim.epsilon

    @property
    def is_contradicted(self) -> bool:
        """Whether a bound passes the claimed ε beyond chance, or a check failed."""
        return self.is_attack_contradicting or not all(check.is_passed for check in self.checks)


def audit_scores(
    held_in: ArrayLike,
    held_out: ArrayLike,
    claim: Claim,
    *,
    confidence: float = 0.95,
    threshold: float = 0.0,
    false_alarm: float = FALSE_ALARM,
    checks: tuple[Check, ...] = (),
) -> AuditResult:
    """Return what the scores of canaries say about a claim.

    Args:
        held_in: (canaries,) scores of runs with the canary; ±inf allowed.
        held_out: (canaries,) scores of runs without.
        claim: What is tested.
        confidence: Of the bounds that are reported.
        threshold: Above it the auditor guesses "in". Fixed before the scores are seen: the Gaussian bound rests on it.
        false_alarm: How often a sound mechanism may be contradicted by these scores.
        checks: Made elsewhere, to go with the result.

    Guarantees:
        With probability `confidence`, each reported bound is at most the mechanism's true ε.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> found = audit_scores(rng.normal(1, 1, 1000), rng.normal(-1, 1, 1000), Claim(Rho.of(2), 1e-5))
        >>> f"{found.bounds.gaussian:.1f} of {found.claim.epsilon:.1f}, {found.is_contradicted}"
        '9.1 of 10.0, False'
    """
    inside, outside = _checked_scores(held_in, held_out)
    _validate.number("threshold", threshold, remedy="Scores centred on 0 want 0.")
    chance = checked_false_alarm(false_alarm)
    return AuditResult(
        claim,
        inside.size,
        lower_bounds(inside, outside, claim, confidence=confidence, threshold=threshold),
        # Two bounds, each allowed half.
        lower_bounds(inside, outside, claim, confidence=1.0 - 0.5 * chance, threshold=threshold),
        area_under_curve(inside, outside),
        tuple(true_positive_rate(inside, outside, rate) for rate in FALSE_POSITIVE_RATES),
        roc_curve(inside, outside),
        checks,
    )


def lower_bounds(
    held_in: FloatArray, held_out: FloatArray, claim: Claim, *, confidence: float = 0.95, threshold: float = 0.0
) -> AuditBounds:
    """Return lower bounds on ε at the claim's δ. The claim decides how canaries are used, never what is concluded."""
    failure = 1.0 - checked_confidence(confidence)
    ranks = registered_ranks(claim, held_in.size, failure)
    pairs = ((held_in, held_out), (-held_out, -held_in))
    each = failure / (len(ranks) * len(pairs))
    assumption_free = max(_rate_bound(*pair, rank, claim.delta, each) for pair in pairs for rank in ranks)
    num_right = int((held_in > threshold).sum() + (held_out <= threshold).sum())
    num_guesses = held_in.size + held_out.size
    gaussian, ceiling = (_gaussian_bound(k, num_guesses, claim.delta, failure) for k in (num_right, num_guesses))
    return AuditBounds(float(confidence), assumption_free, gaussian, ceiling)


def registered_ranks(claim: Claim, num_canaries: int, failure: float) -> tuple[int, ...]:
    """Return the ranks k of held-out scores that will be thresholds: the best if the claim is just kept, and 1."""
    ranks = np.arange(1, max(num_canaries // 2, 1) + 1)
    found = np.floor(num_canaries * claim.true_positive_rate((ranks - 0.5) / num_canaries))
    low = _rate_low(found, num_canaries, (1.0 - _FALSE_POSITIVE_SHARE) * failure / 4)
    high = stats.beta.isf(_FALSE_POSITIVE_SHARE * failure / 4, ranks, num_canaries - ranks + 1)
    return tuple({1, int(ranks[np.argmax((low - claim.delta) / high)])})


def area_under_curve(held_in: FloatArray, held_out: FloatArray) -> float:
    """Return how often a held-in score exceeds a held-out one, ties counting half."""
    ranks = stats.rankdata(np.concatenate((held_in, held_out)))[: held_in.size]
    return float((ranks.sum() - 0.5 * held_in.size * (held_in.size + 1.0)) / (held_in.size * held_out.size))


def true_positive_rate(held_in: FloatArray, held_out: FloatArray, false_positive_rate: float) -> float:
    """Return the share of held-in scores above a threshold that at most this share of the held-out exceeds."""
    num_false = math.floor(false_positive_rate * held_out.size)
    return float((held_in > np.sort(held_out)[::-1][num_false]).mean())


def roc_curve(held_in: FloatArray, held_out: FloatArray) -> FloatArray:
    """Return (2, points): false and true positive rates at every threshold, rising from (0, 0) to (1, 1)."""
    thresholds = np.unique(np.concatenate((held_in, held_out)))[::-1]
    rates = [
        1.0 - np.searchsorted(np.sort(scores), thresholds, side="left") / scores.size for scores in (held_out, held_in)
    ]
    return np.hstack((np.zeros((2, 1)), np.array(rates)))


def _rate_bound(positives: FloatArray, negatives: FloatArray, rank: int, delta: float, failure: float) -> float:
    # (TPR − δ)/FPR ≤ e^ε. Strictly above the k-th highest: ties then only lower the bound.
    threshold = np.sort(negatives)[negatives.size - rank]
    found = np.array([(positives > threshold).sum()], dtype=np.float64)
    low = float(_rate_low(found, positives.size, (1.0 - _FALSE_POSITIVE_SHARE) * failure)[0])
    high = float(stats.beta.isf(_FALSE_POSITIVE_SHARE * failure, rank, negatives.size - rank + 1))
    return _rounded_down(math.log((low - delta) / high)) if low > delta else 0.0


def _gaussian_bound(num_right: int, num_guesses: int, delta: float, failure: float) -> float:
    accuracy = float(_rate_low(np.array([num_right], dtype=np.float64), num_guesses, failure)[0])
    distance = 2.0 * max(float(ndtri(accuracy)), 0.0)  # accuracy ≤ Φ(μ/2)
    return _rounded_down(to_epsilon(0.5 * distance**2, delta, "exact"))


def _rate_low(counts: FloatArray, total: int, failure: float) -> FloatArray:
    """Return Clopper and Pearson's lower bound on a rate of which `counts` of `total` were seen."""
    low = stats.beta.ppf(failure, np.maximum(counts, 1.0), total - np.maximum(counts, 1.0) + 1.0)
    return np.asarray(np.where(counts > 0.0, low, 0.0))


def _rounded_down(epsilon: float) -> float:
    """Return an ε surely not above the true one: a billionth less, far more than conversions round up."""
    return max(epsilon * (1.0 - 1e-9) - 1e-9, 0.0)


def _checked_scores(held_in: ArrayLike, held_out: ArrayLike) -> tuple[FloatArray, FloatArray]:
    inside, outside = (_as_scores(name, scores) for name, scores in (("held_in", held_in), ("held_out", held_out)))
    if inside.size != outside.size:
        raise InvalidInput(
            f"held_in and held_out must be equally many, got {inside.size} and {outside.size}. "
            "The Gaussian bound guesses between two even chances."
        )
    return inside, outside


def _as_scores(name: str, scores: ArrayLike) -> FloatArray:
    raw = np.asarray(scores)
    if raw.dtype == np.bool_ or not (np.issubdtype(raw.dtype, np.number) and np.isrealobj(raw)):
        raise InvalidInput(f"{name} must be a list of numbers, got dtype {raw.dtype}.")
    array = np.array(raw, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"{name} must be a flat list of scores, got shape {array.shape}.")
    if np.isnan(array).any():
        index = int(np.flatnonzero(np.isnan(array))[0])
        raise InvalidInput(f"{name}[{index}] must be a number or ±inf, got nan. A score must say which way it leans.")
    return array


def checked_confidence(confidence: float) -> float:
    """Return a confidence that the bounds can be had at."""
    number = _validate.number("confidence", confidence, low=_LEAST_CONFIDENCE, high=1.0, remedy="Take 0.95.")
    if not number < 1.0:
        raise InvalidInput(f"confidence must be below 1, got {confidence!r}. Take 0.95.")
    return number
