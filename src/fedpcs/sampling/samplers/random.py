"""`random`: every client as likely as any other, the baseline of all baselines.

References:
    B. McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs.sampling.designs import Cohort
from fedpcs.sampling.drawn import Draw, weighed
from fedpcs.sampling.view import View


@dataclass(frozen=True)
class RandomSampler:
    """K clients without replacement, π_i = K/N."""

    name: ClassVar[str] = "random"
    reads: ClassVar[tuple[str, ...]] = ()
    hears: ClassVar[tuple[str, ...]] = ()

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        pool = np.flatnonzero(view.is_available)
        cohort_size = min(view.cohort_size, pool.size)
        clients = np.sort(rng.choice(pool, cohort_size, replace=False, shuffle=False))
        inclusion = np.where(view.is_available, cohort_size / pool.size, 0.0)
        expansion = np.full(cohort_size, pool.size / cohort_size)
        return weighed(view, Cohort(clients, inclusion, expansion), view.is_available / pool.size)
