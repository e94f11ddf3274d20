"""What comes back from a cohort: replies are sorted by client, and each is admitted, refused or a failure.

Work that was done once, if at all, is not paid for twice. Of every update that counted, 64 bits are kept for the rest
of the run. Noise makes two honest updates differ, whoever sent them and when: one that is the same as another, bit for
bit, is a copy, and refused. Without noise, or where float32 rounds it away, a client may honestly send what it sent
before, because the model hardly moves, or zeros, because it has converged. Such an update counts, so that no honest run
changes; but nothing is owed for it.

What is changed, however little, is not seen here: docs/limits.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._outside import printable
from fedpcs.learning.admission import Admitted, Expected, Refusal, admit, outliers
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.protocol import ClientFailure
from fedpcs.learning.server_values import BoolArray, Heard, OpenRound, SeenArray, ServerPlan, ServerState

_SEEN = np.dtype([("digest", "<u8"), ("round", "<i4"), ("client", "<i4")])
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


def nothing_seen() -> SeenArray:
    """Return what is kept before the first round."""
    return np.zeros(0, dtype=_SEEN)


def without_repeats(state: ServerState, opened: OpenRound, heard: Heard) -> Heard:
    """Refuse updates with noise that are bit for bit one of an earlier round, or another one of this round.

    Of two that are the same in one round both are refused: nobody can tell who copied.
    """
    digests = _digests(heard)
    before = {int(one["digest"]): one for one in state.seen[np.isin(state.seen["digest"], digests)]}
    times = Counter(digests.tolist())
    kept, refused = [], []
    for item in heard.admitted:
        reason = ""
        if item.is_noisy and item.digest in before:
            sent = before[item.digest]
            reason = f"it is, bit for bit, the update that client {sent['client']} sent in round {sent['round']}."
        elif item.is_noisy and times[item.digest] > 1:
            reason = "it is, bit for bit, the update that another client sent in this round."
        if reason:
            refused.append(Refusal(opened.round_index, item.report.client, "repeat", reason))
        else:
            kept.append(item)
    return Heard(tuple(kept), (*heard.refused, *refused), heard.failures)


def is_new(state: ServerState, heard: Heard) -> BoolArray:
    """Return (heard,) whose update is some work: not zeros, and none that was sent in an earlier round."""
    has_length = np.array([item.norm > 0.0 for item in heard.admitted], dtype=np.bool_)
    return np.asarray(has_length & ~np.isin(_digests(heard), state.seen["digest"]))


def remembered(seen: SeenArray, opened: OpenRound, heard: Heard) -> SeenArray:
    """Return what is kept after a round: 16 bytes more for each update that counted."""
    fresh = [(item.digest, opened.round_index, item.report.client) for item in heard.admitted]
    return np.append(seen, np.array(fresh, dtype=_SEEN))


def _digests(heard: Heard) -> NDArray[np.uint64]:
    return np.array([item.digest for item in heard.admitted], dtype=np.uint64)
