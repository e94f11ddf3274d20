"""Updates that were sent before: work that was done once, if at all, is not paid for twice.

Of every update that counted, 64 bits are kept for the rest of the run. Noise makes two honest updates differ, whoever
sent them and when. So where there is noise, an update that is the same as another, bit for bit, is a copy. Where there
is none, clients with the same records honestly send the same in one round, and only updates of earlier rounds are
copies: those were of another model.

What is changed, however little, is not seen here: docs/limits.md.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from fedpcs.learning.admission import Refusal
from fedpcs.learning.server_values import Heard, OpenRound, SeenArray, ServerPlan, ServerState

_SEEN = np.dtype([("digest", "<u8"), ("round", "<i4"), ("client", "<i4")])


def nothing_seen() -> SeenArray:
    """Return what is kept before the first round."""
    return np.zeros(0, dtype=_SEEN)


def without_repeats(plan: ServerPlan, state: ServerState, opened: OpenRound, heard: Heard) -> Heard:
    """Refuse updates that are bit for bit one of an earlier round or, where there is noise, another one of this round.

    Of two that are the same in one round both are refused: nobody can tell who copied. An update of zeros is no copy:
    nothing is owed for it anyway.
    """
    digests = np.array([item.digest for item in heard.admitted], dtype=np.uint64)
    before = {int(one["digest"]): one for one in state.seen[np.isin(state.seen["digest"], digests)]}
    times = Counter(digests.tolist() if plan.client.is_perturbed else ())
    kept, refused = [], []
    for item in heard.admitted:
        reason = ""
        if item.norm > 0.0 and item.digest in before:
            sent = before[item.digest]
            reason = f"it is, bit for bit, the update that client {sent['client']} sent in round {sent['round']}."
        elif item.norm > 0.0 and times[item.digest] > 1:
            reason = "it is, bit for bit, the update that another client sent in this round."
        if reason:
            refused.append(Refusal(opened.round_index, item.report.client, "repeat", reason))
        else:
            kept.append(item)
    return Heard(tuple(kept), (*heard.refused, *refused), heard.failures)


def remembered(seen: SeenArray, opened: OpenRound, heard: Heard) -> SeenArray:
    """Return what is kept after a round: 16 bytes more for each update that counted."""
    fresh = [(item.digest, opened.round_index, item.report.client) for item in heard.admitted if item.norm > 0.0]
    return np.append(seen, np.array(fresh, dtype=_SEEN))
