"""Run a compiled loop over a range on all cores. Kernels release the GIL, so plain threads suffice."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def in_threads(work: Callable[[int, int], None], count: int, *, smallest_chunk: int) -> None:
    """Call work(first, last) over [0, count) in chunks; results do not depend on how many threads there are."""
    chunks = min(4 * _num_threads(), max(1, count // smallest_chunk))
    if chunks == 1:
        work(0, count)
        return
    edges = [count * k // chunks for k in range(chunks + 1)]
    list(_pool().map(work, edges[:-1], edges[1:]))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_num_threads(), thread_name_prefix="fedpcs")


def num_cores() -> int:
    """Return how many cores this process may use; only Linux can tell how many of them all."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _num_threads() -> int:
    return min(16, num_cores())
