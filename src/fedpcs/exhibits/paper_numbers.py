"""The paper's accuracy table in per cent, mean and deviation: to stand beside ours, never to steer."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

SAMPLERS = ("random", "aocs", "fed-cbs", "delta", "fedpcs")
SPLITS = ("iid", "dirichlet")


class Printed(NamedTuple):
    """An accuracy as printed."""

    mean: float
    std: float


@cache
def _table() -> dict[tuple[str, float, str, str], Printed]:
    with (files("fedpcs.exhibits") / "paper_numbers.csv").open(encoding="utf-8") as lines:
        rows = [(row.pop("mean"), row.pop("std"), *row.values()) for row in csv.DictReader(lines)]
    return {
        (data, float(tau), split, name): Printed(float(mean), float(std)) for mean, std, data, tau, split, name in rows
    }


def printed_accuracy(dataset: str, sampling_ratio: float, split: str, sampler: str) -> Printed:
    """Return what the paper prints for a cell of its accuracy table.

    Example:
        >>> printed_accuracy("fashion-mnist", 0.2, "iid", "fedpcs")
        Printed(mean=84.43, std=0.18)
    """
    return _table()[dataset, sampling_ratio, split, sampler]
