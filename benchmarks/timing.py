"""What every benchmark needs: a median time and a Markdown table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np


def median_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median wall-clock time of `work`."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table below its title; the first column is text, the others are numbers."""
    rule = ["---", *("---:" for _ in header[1:])]
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    return "\n".join(["", f"**{title}**", "", *lines])
