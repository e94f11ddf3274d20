"""Updates that were sent before: work that was done once, if at all, is not paid for twice.

Of every update that counted, 64 bits are kept for the rest of the run. Noise makes two honest updates differ, whoever
sent them and when: one that is the same as another, bit for bit, is a copy, and refused. Without noise, or where
float32 rounds it away, a client may honestly send what it sent before, because the model hardly moves, or zeros,
because it has converged. Such an update counts, so that no honest run changes; but nothing is owed for it.

What is changed, however little, is not seen here: docs/limits.md.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from fedpcs.learning.admission import Refusal
from fedpcs.learning.server_values import BoolArray, Heard, OpenRound, SeenArray, ServerState

_SEEN = np.dtype([("digest", "<u8"), ("round", "<i4"), ("client", "<i4")])


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
