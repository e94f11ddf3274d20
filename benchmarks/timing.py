"""What every benchmark needs: a median time and a Markdown table."""

from __future__ import annotations

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


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table below its title; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    return "\n".join(["", f"**{title}**", "", *lines])
