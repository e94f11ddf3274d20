"""What every benchmark needs: a median time, the memory a process has used, and a Markdown table."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

Clock: TypeAlias = Callable[[], float]


def median_seconds(work: Callable[[], object], repeats: int, clock: Clock = time.perf_counter) -> float:
    """Return the median time of `work`: wall-clock, or whatever `clock` counts."""
    times = []
    for _ in range(repeats):
        began = clock()
        work()
        times.append(clock() - began)
    return float(np.median(times))


def peak_gib() -> float:
    """Return the largest resident memory this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak) / (2**30 if sys.platform == "darwin" else 2**20)  # bytes there, KiB elsewhere


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table below its title; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    return "\n".join(["", f"**{title}**", "", *lines])
