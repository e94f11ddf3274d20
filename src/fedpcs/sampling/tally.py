"""What every round reports of its draw: how even the weights are, and whether clients come up as often as designed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw
from fedpcs.sampling.view import client_indices


@dataclass(frozen=True)
class Tally:
    """Counts over the rounds so far. Frozen: `count` returns the next one.

    Attributes:
        num_rounds: How many there were.
        num_designed: How many of them had inclusion probabilities.
        designed: (clients,) Σ π_i over the rounds that had inclusion probabilities.
        variance: (clients,) Σ π_i(1 − π_i) over the same rounds.
        realised: (clients,) how often each client was drawn in the same rounds.
        drawn: (clients,) how often each client was drawn in all rounds.
        heard: (clients,) how often its update arrived.
    """

    num_rounds: int
    num_designed: int
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
        answer_score: The same for answers, against one rate for everyone: near one if drop-outs strike clients alike,
            larger if some drop out more than others; None if all or none ever answered.
        evenness: Jain's index of how often clients were drawn: one if all equally often, 1/N if always the same.
        label: What must be said of how the cohort was selected; empty if nothing.
    """

    cohort_size: int
    num_heard: int
    expected_cohort_size: float | None
    effective_sample_size: float
    largest_weight: float
    weight_sum: float
    inclusion_gap: float | None
    inclusion_score: float | None
    answer_score: float | None
    evenness: float
    label: str


def start_tally(num_clients: int) -> Tally:
    """Return the tally before the first round."""
    none = np.zeros(_validate.integer("num_clients", num_clients, low=1))
    return Tally(0, 0, none, none, none, none, none)


def count(tally: Tally, draw: Draw, heard: ArrayLike) -> Tally:
    """Return the tally with one more round.

    Args:
        tally: The rounds before.
        draw: Who was drawn, as the sampler returned it.
        heard: The clients whose update arrived.
    """
    _refuse_corrected(draw)
    answered = client_indices("heard", heard)
    if not np.isin(answered, draw.clients).all():
        raise InvalidInput(
            f"heard must be among the clients drawn, got {np.setdiff1d(answered, draw.clients).tolist()!r}."
        )
    is_drawn, is_heard = np.zeros_like(tally.drawn), np.zeros_like(tally.drawn)
    is_drawn[draw.clients], is_heard[answered] = 1.0, 1.0
    following = replace(
        tally, num_rounds=tally.num_rounds + 1, drawn=tally.drawn + is_drawn, heard=tally.heard + is_heard
    )
    if draw.inclusion is None:
        return following
    return replace(
        following,
        num_designed=tally.num_designed + 1,
        designed=tally.designed + draw.inclusion,
        variance=tally.variance + draw.inclusion * (1.0 - draw.inclusion),
        realised=tally.realised + is_drawn,
    )


def report_round(tally: Tally, draw: Draw, weights: FloatArray) -> RoundReport:
    """Return what to log of a round.

    Args:
        tally: Counts with this round in them.
        draw: Who was drawn.
        weights: (heard,) the weights of the updates that arrived.
    """
    _refuse_corrected(draw)
    values = _validate.vector("weights", weights, low=0.0) if np.size(weights) else np.zeros(0)
    if tally.num_rounds == 0:
        raise InvalidInput("tally must hold the round it reports, got none. Call count first.")
    gap, score = _inclusion_gap(tally) if draw.inclusion is not None else (None, None)
    return RoundReport(
        cohort_size=draw.clients.size,
        num_heard=values.size,
        expected_cohort_size=None if draw.inclusion is None else float(draw.inclusion.sum()),
        effective_sample_size=effective_sample_size(values),
        largest_weight=float(values.max(initial=0.0)),
        weight_sum=float(values.sum()),
        inclusion_gap=gap,
        inclusion_score=score,
        answer_score=_answer_score(tally),
        evenness=evenness(tally.drawn),
        label=draw.label,
    )


def _refuse_corrected(draw: Draw) -> None:
    if draw.survival is not None:
        raise InvalidInput(
            "draw must be as the sampler returned it, got what arrived made of it: the drawn are lost there."
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


def _answer_score(tally: Tally) -> float | None:
    rate = tally.heard.sum() / max(tally.drawn.sum(), 1.0)
    was_drawn = tally.drawn > 0.0
    if not (was_drawn.any() and 0.0 < rate < 1.0):
        return None
    drawn, heard = tally.drawn[was_drawn], tally.heard[was_drawn]
    return float(np.sqrt(np.mean((heard - rate * drawn) ** 2 / (rate * (1.0 - rate) * drawn))))


def _inclusion_gap(tally: Tally) -> tuple[float, float | None]:
    difference = tally.realised - tally.designed
    gap = float(np.abs(difference).max()) / tally.num_designed
    uncertain = tally.variance > 1e-9
    if not uncertain.any():
        return gap, None
    score = difference[uncertain] / np.sqrt(tally.variance[uncertain])
    return gap, float(np.sqrt(np.mean(score**2)))
