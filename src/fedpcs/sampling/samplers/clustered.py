"""`clustered`: one client from each of K strata of equal data; needs nothing but data sizes.

Clients, largest first, are laid end to end on [0, K) with lengths K·θ_i; each unit interval is one draw. A draw weighs
1/K, so a client drawn twice weighs 2/K, and the estimate is unbiased with a variance no larger than that of K
independent draws by data (MD sampling), which is `strata="none"`. One start for all intervals gives systematic
resampling.

References:
    Y. Fraboni, R. Vidal, L. Kameni, M. Lorenzi, Clustered Sampling, ICML 2021. arXiv 2105.05883. Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import Cohort, drawn_at_least_once
from fedpcs.sampling.drawn import Draw, weighed
from fedpcs.sampling.view import View


@dataclass(frozen=True)
class ClusteredSampler:
    """K draws by data size, one from each stratum.

    Attributes:
        strata: "independent", one draw in each unit interval; "systematic", one start for all; "none", MD sampling.
    """

    strata: str = "independent"

    name: ClassVar[str] = "clustered"
    reads: ClassVar[tuple[str, ...]] = ()
    hears: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _validate.choice("strata", self.strata, ("independent", "systematic", "none"))

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        pool = np.flatnonzero(view.is_available)
        num_draws = min(view.cohort_size, pool.size)
        # Equal clients in random order: which of them sits across a border must not hang on its number.
        shuffled = rng.permutation(pool)
        order = shuffled[np.argsort(-view.num_samples[shuffled], kind="stable")]
        length = num_draws * view.data_weight[order]
        ends = np.cumsum(length)
        ends *= num_draws / ends[-1]
        picked = np.searchsorted(ends, self._positions(num_draws, rng), side="right")
        clients, times = np.unique(order[np.minimum(picked, order.size - 1)], return_counts=True)
        inclusion = np.zeros(view.num_clients)
        inclusion[order] = self._inclusion(ends, num_draws)
        expansion = times / (num_draws * view.data_weight[clients])
        return weighed(view, Cohort(clients, inclusion, expansion, times), view.data_weight)

    def _positions(self, num_draws: int, rng: np.random.Generator) -> FloatArray:
        if self.strata == "none":
            return num_draws * rng.random(num_draws)
        start = rng.random(1 if self.strata == "systematic" else num_draws)
        return np.asarray(np.arange(num_draws) + start)

    def _inclusion(self, ends: FloatArray, num_draws: int) -> FloatArray:
        """Return each client's probability of being drawn at all, given the order."""
        starts = np.concatenate([[0.0], ends[:-1]])
        length = ends - starts
        if self.strata == "none":
            return drawn_at_least_once(length / num_draws, num_draws)
        if self.strata == "systematic":
            return np.asarray(np.minimum(length, 1.0))
        # A client overlaps the interval it starts in, the one it ends in, and all between, which it fills.
        first, last = np.floor(starts), np.ceil(ends) - 1.0
        missed = (1.0 - np.minimum(ends, first + 1.0) + starts) * np.where(last > first, 1.0 - (ends - last), 1.0)
        return np.asarray(np.where(last > first + 1.0, 1.0, np.clip(1.0 - missed, 0.0, 1.0)))
