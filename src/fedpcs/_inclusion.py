"""Inclusion probabilities of a fixed-size cohort: π_i = min(1, c·s_i) with Σ π_i = K.

The one water-filling routine behind the server's expected cost and every unequal-probability sampler. Clients
whose share would exceed one are certain; the rest keep their proportions.
"""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput


def inclusion_probability(size: FloatArray, cohort_size: float, weight: FloatArray | None = None) -> FloatArray:
    """Return π_i = min(1, c·size_i) with Σ weight_i·π_i = cohort_size.

    Args:
        size: (clients,) non-negative; the probability is proportional to it until it reaches one.
        cohort_size: How many clients are drawn, at most the number of clients with a positive size.
        weight: (clients,) how many clients each entry stands for; one each if absent.

    Example:
        >>> inclusion_probability(np.array([1.0, 1.0, 1.0, 10.0]), 2).round(4).tolist()
        [0.3333, 0.3333, 0.3333, 1.0]
    """
    size = _validate.vector("size", size, low=0.0)
    cohort_size = _validate.number("cohort_size", cohort_size)
    count = np.ones_like(size) if weight is None else _validate.vector("weight", weight, length=size.size, low=0.0)
    available = float(count[size > 0].sum())
    if not 0 < cohort_size <= available * (1 + 1e-12):
        raise InvalidInput(
            f"cohort_size must be above 0 and at most {available:g}, the clients that can be drawn, "
            f"got {cohort_size!r}."
        )
    if cohort_size >= available:
        return np.asarray((size > 0.0).astype(np.float64))
    if not 1e-150 < size.max() < 1e150:
        size = np.ldexp(size, -int(np.frexp(size.max())[1]))  # only proportions matter
    # Sorted by size, the certain clients are the largest. With the first l entries uncertain,
    # c = (K − what the certain ones take) / Σ_{j≤l} w_j s_j; the right l is the largest with c·s_l ≤ 1.
    # No more than K single clients can be certain, so only the K + 1 largest need sorting.
    num_small = max(0, size.size - int(cohort_size) - 1) if weight is None else 0
    rank = np.argpartition(size, num_small) if num_small else np.arange(size.size)
    large = rank[num_small:][np.argsort(size[rank[num_small:]], kind="stable")]
    mass = size[rank[:num_small]].sum() + np.cumsum((count * size)[large])
    certain = count[large][::-1].cumsum()[::-1] - count[large]
    left = cohort_size - certain
    last = np.flatnonzero((left > 0) & (left * size[large] <= mass * (1.0 + 1e-12)))[-1]
    with np.errstate(over="ignore"):  # a size that is huge beside the mass is a certain one
        return np.asarray(np.minimum(1.0, left[last] * (size / mass[last])))
