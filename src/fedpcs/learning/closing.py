"""The end of a round: how updates that were heard are weighed, and what the sampler learns from them.

Our own server and the strategy for Flower apps share them; each knows its clients in another way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.aggregate import distances
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import MEASURES
from fedpcs.learning.server_values import Heard, IntArray, OpenRound, ServerPlan
from fedpcs.sampling import (
    Draw,
    Sampler,
    View,
    arrived,
    estimate_drift,
    limit_share,
    make_feedback,
    survival_rate,
    weigh,
)
from fedpcs.sampling.feedback import Feedback


@dataclass(frozen=True)
class Weighed:
    """The weights of a round's updates.

    Attributes:
        rule: By which they were weighed.
        weights: (heard,) in client order.
        drift: Estimated spread of honest updates, where the rule needs it.
        num_capped: How many weights a cap cut; None without a cap.
    """

    rule: str
    weights: FloatArray
    drift: float | None
    num_capped: int | None


def weigh_heard(
    rule: str,
    cohort: Draw,
    view: View,
    heard: IntArray,
    updates: Sequence[Values],
    num_drawn: FloatArray,
    num_heard: FloatArray,
    *,
    by_design: bool = False,
    cap: float | None = None,
    largest_share: float | None = None,
) -> Weighed:
    """Weigh the updates of those who were heard; they stand for clients that dropped out, by the chance of answering.

    Args:
        rule: Of aggregation, settled.
        cohort: Who was drawn.
        view: From what.
        heard: (heard,) clients, ascending.
        updates: Theirs.
        num_drawn: (clients,) how often each was drawn before.
        num_heard: (clients,) how often each was heard before.
        by_design: For `precision`: whether those heard speak for others in proportion to their expansion.
        cap: Most a weight may exceed that of uniform draws by, as a factor.
        largest_share: Most one client may weigh of all.
    """
    has_dropped = bool(num_heard.sum() < num_drawn.sum())
    survival = survival_rate(num_drawn, num_heard) if has_dropped else 1.0
    reached = arrived(cohort, np.isin(cohort.clients, heard), survival)
    noise = np.asarray(view.need("noise_power")[reached.clients])
    drift = estimate_drift(np.stack(updates), noise) if rule == "precision" and updates else None
    free = weigh(rule, reached, view, drift=drift, by_design=by_design)
    if cap is None and largest_share is None:
        return Weighed(rule, free, drift, None)
    cut = weigh(rule, reached, view, drift=drift, by_design=by_design, cap=cap)
    cut = cut if largest_share is None else limit_share(cut, largest_share)
    return Weighed(rule, cut, drift, int(np.count_nonzero(cut < free)))


def feedback_of(
    sampler: Sampler,
    view: View,
    clients: IntArray,
    updates: Sequence[Values],
    *,
    learning_rate: float,
    local_steps: FloatArray | None = None,
    **arrays: FloatArray,
) -> Feedback:
    """Return what a sampler learns from a round: what clients measured, and how far their updates lie apart.

    Args:
        sampler: Who learns.
        view: From what it drew.
        clients: (heard,) ascending.
        updates: Theirs.
        learning_rate: Of local steps.
        local_steps: (heard,) how many each took.
        arrays: (heard,) of each other quantity, such as update_norm.
    """
    if clients.size == 0:
        return make_feedback(clients)
    weight = view.data_weight[clients]
    if local_steps is not None:
        arrays["local_steps"] = local_steps
    if "update_distance" in sampler.hears:
        arrays["update_distance"] = distances(updates, weight, np.ones(clients.size))
    if "gradient_distance" in sampler.hears and local_steps is not None:
        arrays["gradient_distance"] = distances(updates, weight, learning_rate * local_steps)
    return make_feedback(clients, data_weight=weight, learning_rate=learning_rate, **arrays)


def feedback_of_round(
    plan: ServerPlan, opened: OpenRound, heard: Heard, norms: FloatArray, power: FloatArray
) -> Feedback:
    """Return what the sampler of our own server learns from a round."""
    clients, hears = heard.clients, plan.sampler.hears
    num_steps = plan.client.local_steps(plan.num_samples[clients]).astype(np.float64)
    arrays: dict[str, FloatArray] = {"update_norm": norms, "noise_power": power}
    if "duration" in hears:  # simulated: as long as the work is, so that a run does not depend on the machine's load
        arrays["duration"] = num_steps
    if clients.size:
        arrays |= {name: _measured(name, plan, opened, heard) for name in MEASURES if name in hears}
    return feedback_of(
        plan.sampler,
        opened.view,
        clients,
        [item.report.values for item in heard.admitted],
        learning_rate=plan.client.learning_rate,
        local_steps=num_steps,
        **arrays,
    )


def _measured(name: str, plan: ServerPlan, opened: OpenRound, heard: Heard) -> FloatArray:
    """Return one number for each client heard; the others' median for one that had none to give."""
    found = np.array([item.report.measures.get(name, np.nan) for item in heard.admitted])
    if np.isnan(found).all():
        raise InvalidInput(
            f"round {opened.round_index}: sampler {plan.sampler.name!r} learns from {name}, which none of {found.size} "
            f"clients heard in mode {plan.client.mode!r} has sent; it is never taken for zero. A model that has "
            "diverged has none to tell: lower training.learning_rate, or take another sampler."
        )
    return median_where_silent(found)


def median_where_silent(values: FloatArray) -> FloatArray:
    """Return what clients measured; the others' median for one that had nothing to tell."""
    return np.where(np.isnan(values), np.nanmedian(values), values)
