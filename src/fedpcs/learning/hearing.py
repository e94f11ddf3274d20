"""What comes back from a cohort: replies are sorted by client, and each is admitted, refused or a failure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from fedpcs._outside import printable
from fedpcs.learning.admission import Admitted, Expected, Refusal, admit, outliers
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.protocol import ClientFailure
from fedpcs.learning.repeats import without_repeats
from fedpcs.learning.server_values import Heard, OpenRound, ServerPlan, ServerState

_LONGEST_REASON = 500
# Honest updates refused for their norm, in all rounds of a run together.
_FALSE_ALARMS_IN_A_RUN = 1e-6


def hear(plan: ServerPlan, state: ServerState, opened: OpenRound, replies: Iterable[Any], num_attempts: int) -> Heard:
    """Return what may count of the replies to a round's tasks; whatever comes is sorted, and nothing is raised.

    Args:
        plan: The federation.
        state: Before the round.
        opened: The round.
        replies: As an engine gives them.
        num_attempts: How often a round may be drawn; false alarms are few in all of them together.
    """
    return without_repeats(
        state, opened, without_outliers(plan, opened, _sorted(plan, state, opened, replies, num_attempts))
    )


def _sorted(
    plan: ServerPlan, state: ServerState, opened: OpenRound, replies: Iterable[Any], num_attempts: int
) -> Heard:
    waiting = {task.client: task for task in opened.tasks}
    admitted: dict[int, Admitted] = {}
    refused: list[Refusal] = []
    failures: dict[int, ClientFailure] = {}
    model_norm = l2_norm(state.parameters)
    false_alarm = _FALSE_ALARMS_IN_A_RUN / (plan.num_rounds * plan.num_clients * num_attempts)
    for reply in replies:
        task = waiting.get(reply.client) if type(getattr(reply, "client", None)) is int else None
        if task is None:
            reason = f"client {str(getattr(reply, 'client', reply))[:40]!r} was not drawn."
            refused.append(Refusal(opened.round_index, -1, "stranger", reason))
        elif isinstance(reply, ClientFailure):
            if reply.round_index == opened.round_index:
                failures[reply.client] = reply
            else:
                refused.append(Refusal(opened.round_index, reply.client, "stale", "a failure of another round."))
        elif reply.client in admitted:
            refused.append(Refusal(opened.round_index, reply.client, "duplicate", "an update from it is in already."))
        else:
            size = int(plan.num_samples[task.client])
            verdict = admit(reply, Expected(task, size, plan.layout, plan.client, model_norm, false_alarm))
            if isinstance(verdict, Refusal):
                refused.append(verdict)
            else:
                admitted[reply.client] = verdict
    accounted = {item.client for item in refused} | set(failures) | set(admitted)
    for client in sorted(set(waiting) - accounted):
        failures[client] = ClientFailure(opened.round_index, client, "absent", "no reply came")
    in_order = sorted(refused, key=lambda item: (item.client, item.kind, item.reason))
    failed = [failures[client] for client in sorted(set(failures) - set(admitted))]
    # Here all words that clients have a part in come by, on their way to the log, the report and the terminal.
    return Heard(
        tuple(admitted[client] for client in sorted(admitted)),
        tuple(replace(item, reason=printable(item.reason, _LONGEST_REASON)) for item in in_order),
        tuple(replace(item, reason=printable(item.reason, _LONGEST_REASON)) for item in failed),
    )


def without_outliers(plan: ServerPlan, opened: OpenRound, heard: Heard) -> Heard:
    """Refuse updates far longer than the others, where no clipping bounds them."""
    norms = np.array([item.norm for item in heard.admitted])
    wild = set(outliers(norms, plan.outlier_factor)) if not plan.client.is_perturbed else set()
    refused = tuple(
        Refusal(
            opened.round_index,
            heard.admitted[index].report.client,
            "norm",
            f"norm is {norms[index]:.4g}, more than {plan.outlier_factor:g} times the median.",
        )
        for index in sorted(wild)
    )
    kept = tuple(item for index, item in enumerate(heard.admitted) if index not in wild)
    return Heard(kept, heard.refused + refused, heard.failures)
