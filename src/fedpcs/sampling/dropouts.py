"""Drop-outs: drawn clients whose update never came, corrected by how likely each was to come.

A client that is drawn with probability π_i and then answers with probability s_i is heard with probability π_i·s_i, so
the survivors' expansions are divided by s_i. That keeps `horvitz-thompson` unbiased if drop-outs do not depend on the
updates; `hajek` needs only that the s_i are in proportion. Nothing is divided by the number of survivors behind
anyone's back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw


def arrived(draw: Draw, came: ArrayLike, survival_probability: ArrayLike) -> Draw:
    """Return the draw as it is heard: survivors only, standing for those who dropped out as well.

    Args:
        draw: Who was drawn.
        came: (cohort,) whether each drawn client's update arrived.
        survival_probability: Probability that a drawn client answers, in (0, 1]: one number, or one per client of the
            whole population, such as `survival_rate`. 1.0 corrects nothing.

    Guarantees:
        With true probabilities, E[1{i heard}·expansion_i] stays one.
    """
    heard = np.array(came)
    if heard.dtype != np.bool_ or heard.shape != draw.clients.shape:
        wanted = f"{draw.clients.size} booleans, one per client drawn"
        raise InvalidInput(f"came must be {wanted}, got {heard.dtype}, shape {heard.shape}.")
    of_heard = _probabilities(survival_probability, draw)[heard]
    return replace(
        draw,
        clients=draw.clients[heard],
        weights=draw.weights[heard] / of_heard,
        expansion=None if draw.expansion is None else draw.expansion[heard] / of_heard,
        survival=of_heard if draw.survival is None else draw.survival[heard] * of_heard,
        times=None if draw.times is None else draw.times[heard],
    )


def _probabilities(value: ArrayLike, draw: Draw) -> FloatArray:
    """Return (cohort,) the drawn clients' probabilities, in (0, 1]."""
    known = [array.size for array in (draw.inclusion, draw.draw_probability) if array is not None]
    least = known[0] if known else int(draw.clients.max(initial=-1)) + 1
    is_one = np.ndim(value) == 0
    if not is_one and np.size(value) != least and (known or np.size(value) < least):
        wanted = f"one number, or one for each of {'' if known else 'at least '}{least} clients, drawn or not"
        raise InvalidInput(f"survival_probability must be {wanted}, got {np.size(value)}.")
    survival = _validate.vector("survival_probability", np.atleast_1d(value), low=0.0, high=1.0)
    could_be_drawn = draw.clients if draw.inclusion is None else np.flatnonzero(draw.inclusion)
    if not (survival if is_one else survival[could_be_drawn]).all():
        raise InvalidInput(
            "survival_probability must lie in (0, 1], got 0. Nobody makes up for a client that never answers: "
            "leave it out of the draw."
        )
    return np.full(draw.clients.size, survival[0]) if is_one else survival[draw.clients]


def survival_rate(times_drawn: ArrayLike, times_heard: ArrayLike, prior_rounds: float = 4.0) -> FloatArray:
    """Return each client's estimated probability of answering, from rounds that are over.

    A client's own record counts for as many rounds as it has, the whole population's for `prior_rounds`; before anyone
    was ever drawn it is one. Using past rounds only keeps the estimate independent of who answers in the present one.

    Example:
        >>> survival_rate([10, 10, 0], [10, 5, 0]).round(3).tolist()
        [0.932, 0.575, 0.762]
    """
    drawn = _validate.vector("times_drawn", times_drawn, low=0.0)
    heard = _validate.vector("times_heard", times_heard, length=drawn.size, low=0.0)
    prior = _validate.positive("prior_rounds", prior_rounds)
    if not (heard <= drawn).all():
        raise InvalidInput("times_heard must be at most times_drawn, got a client heard more often than drawn.")
    # One answered round is added to the population's record, so that nobody is ever given probability zero.
    overall = (heard.sum() + 1.0) / (drawn.sum() + 1.0) if drawn.any() else 1.0
    return np.asarray((heard + prior * overall) / (drawn + prior))
