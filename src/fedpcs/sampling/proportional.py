"""From a size per client to a draw: what every sampler does that draws by size and undoes it by weight."""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import Cohort, draw_cohort
from fedpcs.sampling.drawn import Draw
from fedpcs.sampling.view import View


def draw_by_size(view: View, size: FloatArray, design: str, rng: np.random.Generator) -> Draw:
    """Draw clients in proportion to `size`, as `design` does it, with unbiased weights θ_i·expansion_i.

    Clients that are not available have size zero. If nobody else has a size either, all available ones are alike. A
    client of size zero among others that have one is never drawn: give it one unless its update is known to be zero.
    """
    size = np.where(view.is_available, _validate.vector("size", size, length=view.num_clients, low=0.0), 0.0)
    size = size / size.max() if size.any() else view.is_available.astype(np.float64)
    return weighed(view, draw_cohort(design, size, view.cohort_size, rng), size / size.sum())


def weighed(view: View, cohort: Cohort, draw_probability: FloatArray) -> Draw:
    """Return a cohort as a draw with unbiased weights."""
    return Draw(
        clients=cohort.clients,
        weights=view.data_weight[cohort.clients] * cohort.expansion,
        inclusion=cohort.inclusion,
        expansion=cohort.expansion,
        draw_probability=draw_probability,
        num_draws=float(cohort.inclusion.sum() if cohort.times is None else cohort.times.sum()),
        times=cohort.times,
    )


def mixed_with_uniform(size: FloatArray, is_available: np.ndarray, share: float) -> FloatArray:
    """Return x_i = (1 − share)·size_i/Σsize + share/N over the available clients, so that nobody starves."""
    size = np.where(is_available, size, 0.0)
    uniform = is_available / np.count_nonzero(is_available)
    if not size.any():
        return np.asarray(uniform)
    size = size / size.max()  # so that the sum cannot overflow
    return np.asarray((1.0 - share) * size / size.sum() + share * uniform)
