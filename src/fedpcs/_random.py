"""Random generators named by what they are for: (seed, purpose, round, client) → an independent stream.

A draw depends on nothing but these four, so a resumed run equals an uninterrupted one bit for bit, and adding
a client or a log line cannot shift anyone else's draws. There is no global generator anywhere in fedpcs.
"""

from __future__ import annotations

import hashlib

import numpy as np

from fedpcs import _validate


def generator(seed: int, purpose: str, round_index: int = 0, client: int = 0) -> np.random.Generator:
    """Return the generator that belongs to (seed, purpose, round, client).

    Two purposes, such as "population" and "cohort", never share a stream.
    """
    words = [
        _validate.integer("seed", seed, low=0),
        int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:16], "big"),
        _validate.integer("round_index", round_index, low=0, high=2**32 - 1),
        _validate.integer("client", client, low=0, high=2**32 - 1),
    ]
    # One 32-bit word each for round and client, so that no two can be confused; SeedSequence hashes them all.
    # Philox is counter-based, so streams are cheap to open.
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words)))
