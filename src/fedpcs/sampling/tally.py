"""What every round reports of its draw: how even the weights are, and whether clients come up as often as designed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.draw import Draw
from fedpcs.sampling.view import IntArray


@dataclass(frozen=True)
class Tally:
    """Counts over the rounds so far. Frozen: `count` returns the next one.

    Attributes:
        designed: (clients,) Σ π_i over the rounds that had inclusion probabilities.
        variance: (clients,) Σ π_i(1 − π_i) over the same rounds.
        realised: (clients,) how often each client was drawn in the same rounds.
        drawn: (clients,) how often each client was drawn in all rounds.
        heard: (clients,) how often its update arrived.
    """

    designed: FloatArray
    variance: FloatArray
    realised: FloatArray
    drawn: FloatArray
    heard: FloatArray


@dataclass(frozen=True)
class RoundReport:
    """One round's draw and weights in a few numbers.

    Attributes:
        cohort_size: How many clients were drawn.
        num_heard: How many of them answered.
        expected_cohort_size: Σ π_i; None if the sampler has no inclusion probabilities.
        effective_sample_size: (Σw)²/Σw²: how many equally weighted clients would do as well.
        largest_weight: max w_i.
        weight_sum: Σ w_i: one on average under an unbiased rule.
        inclusion_gap: Largest difference so far, over clients, between how often one was drawn and how often it should
            have been, as a share of the rounds; None without inclusion probabilities.
        inclusion_score: Root mean square of (drawn − designed)/standard deviation over clients: near one if the draws
            follow the design, larger if not; None as above, or if every client is certain to be drawn or not.
        evenness: Jain's index of how often clients were drawn: one if all equally often, 1/N if always the same.
    """

    cohort_size: int
    num_heard: int
    expected_cohort_size: float | None
    effective_sample_size: float
    largest_weight: float
    weight_sum: float
    inclusion_gap: float | None
    inclusion_score: float | None
    evenness: float


def start_tally(num_clients: int) -> Tally:
    """Return the tally before the first round."""
    none = np.zeros(_validate.integer("num_clients", num_clients, low=1))
    return Tally(none, none, none, none, none)


def count(tally: Tally, draw: Draw, heard: IntArray) -> Tally:
    """Return the tally with one more round.

    Args:
        tally: The rounds before.
        draw: Who was drawn, as the sampler returned it.
        heard: The clients whose update arrived.
    """
    is_drawn, is_heard = np.zeros_like(tally.drawn), np.zeros_like(tally.drawn)
    is_drawn[draw.clients] = 1.0
    is_heard[heard] = 1.0
    if draw.inclusion is None:
        return Tally(tally.designed, tally.variance, tally.realised, tally.drawn + is_drawn, tally.heard + is_heard)
    return Tally(
        designed=tally.designed + draw.inclusion,
        variance=tally.variance + draw.inclusion * (1.0 - draw.inclusion),
        realised=tally.realised + is_drawn,
        drawn=tally.drawn + is_drawn,
        heard=tally.heard + is_heard,
    )


def report_round(tally: Tally, draw: Draw, weights: FloatArray, num_rounds: int) -> RoundReport:
    """Return what to log of a round.

    Args:
        tally: Counts with this round in them.
        draw: Who was drawn.
        weights: (heard,) the weights of the updates that arrived.
        num_rounds: How many rounds the tally holds.
    """
    gap, score = _inclusion_gap(tally, num_rounds) if draw.inclusion is not None else (None, None)
    return RoundReport(
        cohort_size=draw.clients.size,
        num_heard=weights.size,
        expected_cohort_size=None if draw.inclusion is None else float(draw.inclusion.sum()),
        effective_sample_size=effective_sample_size(weights),
        largest_weight=float(weights.max(initial=0.0)),
        weight_sum=float(weights.sum()),
        inclusion_gap=gap,
        inclusion_score=score,
        evenness=evenness(tally.drawn),
    )


def effective_sample_size(weights: FloatArray) -> float:
    """Return (Σw)²/Σw², between one and the number of weights; zero for none.

    Example:
        >>> effective_sample_size(np.array([1.0, 1.0, 1.0, 1.0])), effective_sample_size(np.array([1.0, 0.0]))
        (4.0, 1.0)
    """
    top = float(weights.max(initial=0.0))
    if top == 0.0:
        return 0.0
    scaled = weights / top  # so that squares neither vanish nor overflow
    return float(scaled.sum() ** 2 / (scaled @ scaled))


def evenness(times: FloatArray) -> float:
    """Return Jain's index (Σn)²/(N·Σn²) of how often clients were drawn; one if nobody was.

    Example:
        >>> evenness(np.array([2.0, 2.0])), evenness(np.array([4.0, 0.0]))
        (1.0, 0.5)
    """
    return effective_sample_size(times) / times.size if times.any() else 1.0


def _inclusion_gap(tally: Tally, num_rounds: int) -> tuple[float, float | None]:
    difference = tally.realised - tally.designed
    gap = float(np.abs(difference).max()) / num_rounds
    uncertain = tally.variance > 1e-9
    if not uncertain.any():
        return gap, None
    score = difference[uncertain] / np.sqrt(tally.variance[uncertain])
    return gap, float(np.sqrt(np.mean(score**2)))
