"""`aocs`: clients are drawn in proportion to the norm of what they have to say.

With a_i = θ_i·‖u_i‖ and independent draws, Σ (1 − p_i)/p_i·a_i² is the estimate's variance; it is least, with Σp ≤ K,
at p_i = min(1, c·a_i). That is OCS. AOCS reaches the same p with nothing but sums over clients, as secure aggregation
gives them. Every available client must train to have a norm: uploads are saved, not work. Norms of noisy updates count
as charged only if all of those updates were, uploaded or not. `norms="last-known"` trains the cohort alone.

The norm of an update with noise in it is √(‖u‖² + d·σ²) on average, which favours the noisiest. `subtract_noise` takes
the known d·σ² off; what remains may be zero by chance, so a share of the draw is then uniform.

References:
    W. Chen, S. Horváth, P. Richtárik, Optimal Client Sampling for Federated Learning, TMLR 2022. arXiv 2010.13723.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._inclusion import inclusion_probability
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import FIXED_INCLUSION, draw_included
from fedpcs.sampling.drawn import Draw, weighed
from fedpcs.sampling.feedback import Feedback, filled, heard_norms, unknown_norms, without_noise
from fedpcs.sampling.view import Memory, View

# Uniform share of the draw where a norm may be wrong: stale, or zero only because its noise was taken off.
_UNSURE_FLOOR = 0.05


@dataclass(frozen=True)
class AOCSSampler:
    """p_i = min(1, c·θ_i‖u_i‖).

    Attributes:
        norms: "current", from all available clients in this round, or "last-known", from those who took part before.
        probabilities: "exact", or "aggregation-only": by sums alone, `iterations` of them.
        iterations: How often "aggregation-only" hands out what saturated clients leave over.
        design: "poisson", as in the paper, or a design of fixed size.
        subtract_noise: Whether to take the known noise power off the squared norms, where they hold it: last-known
            ones do; in a run, current ones are taken before any noise.
        floor: Share of the draw that is uniform; 0 for exact norms, 0.05 where they may be wrong, if absent.
    """

    norms: str = "current"
    probabilities: str = "exact"
    iterations: int = 4
    design: str = "poisson"
    subtract_noise: bool = False
    floor: float | None = None

    name: ClassVar[str] = "aocs"

    def __post_init__(self) -> None:
        _validate.choice("norms", self.norms, ("current", "last-known"))
        _validate.choice("probabilities", self.probabilities, ("exact", "aggregation-only"))
        _validate.integer("iterations", self.iterations, low=0)
        _validate.choice("design", self.design, FIXED_INCLUSION)
        _validate.boolean("subtract_noise", self.subtract_noise)
        if self.floor is not None:
            _validate.number("floor", self.floor, low=0.0, high=1.0)

    @property
    def reads(self) -> tuple[str, ...]:
        """What it sees before the draw."""
        if self.norms == "last-known":
            return ()
        return ("update_norm", "noise_power") if self.subtract_noise else ("update_norm",)

    @property
    def hears(self) -> tuple[str, ...]:
        """What it learns from after the round."""
        if self.norms == "current":
            return ()
        return ("update_norm", "noise_power") if self.subtract_noise else ("update_norm",)

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        pool = view.is_available
        weighted_norm = np.where(pool, view.data_weight * self._norm(view), 0.0)
        inclusion = np.zeros(view.num_clients)
        inclusion[pool] = self._inclusion(weighted_norm[pool], view.cohort_size)
        cohort = draw_included(self.design, inclusion, rng)
        return weighed(view, cohort, inclusion / inclusion.sum())  # x = p/Σp, so that θ/(Σp·x) is θ/p

    def start(self, num_clients: int) -> Memory:
        """Nobody's norm is known."""
        return unknown_norms(num_clients)

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Keep the norms of those who answered."""
        if self.norms == "current":
            return view.memory
        return heard_norms(view.memory, feedback, subtract_noise=self.subtract_noise)

    def _norm(self, view: View) -> FloatArray:
        if self.norms == "current":
            return without_noise(view.need("update_norm"), view.need("noise_power") if self.subtract_noise else None)
        return filled(view.memory["norm"])

    def _inclusion(self, weighted_norm: FloatArray, cohort_size: int) -> FloatArray:
        by_sums = self.probabilities == "aggregation-only"
        found = (
            aggregation_only_inclusion(weighted_norm, cohort_size, self.iterations)
            if by_sums
            else optimal_inclusion(weighted_norm, cohort_size)
        )
        is_exact = self.norms == "current" and not self.subtract_noise
        floor = self.floor if self.floor is not None else (0.0 if is_exact else _UNSURE_FLOOR)
        return (1.0 - floor) * found + floor * min(1.0, cohort_size / weighted_norm.size)


def optimal_inclusion(weighted_norm: FloatArray, cohort_size: int) -> FloatArray:
    """Return the p_i of least variance: min(1, c·a_i) with Σp = K, or one for all positive norms if few.

    Example:
        >>> optimal_inclusion(np.array([1.0, 2.0, 3.0, 4.0]), 2).round(3).tolist()
        [0.2, 0.4, 0.6, 0.8]
    """
    num_positive = int(np.count_nonzero(weighted_norm))
    if num_positive == 0:
        return np.full(weighted_norm.size, min(1.0, cohort_size / weighted_norm.size))
    return inclusion_probability(weighted_norm, min(cohort_size, num_positive))


def aggregation_only_inclusion(weighted_norm: FloatArray, cohort_size: int, iterations: int) -> FloatArray:
    """Return the p_i that clients agree on when the server sees nothing but sums over them.

    Each pass hands what saturated clients leave over to the others. Few passes leave some of K unspent; weights use the
    p they arrive at, so the estimate is unbiased after any number of them.
    """
    # Notation (the paper's Algorithm 2): A = Σa; over those below one P = Σp; C = (K − n + how many they are)/P.
    A, n = float(weighted_norm.sum()), weighted_norm.size
    if A == 0.0:
        return np.full(n, min(1.0, cohort_size / n))
    p = np.minimum(1.0, cohort_size * (weighted_norm / A))
    for _ in range(iterations):
        is_below = p < 1.0
        P = float(p[is_below].sum())
        if P == 0.0:
            break
        C = (cohort_size - n + int(np.count_nonzero(is_below))) / P
        if C <= 1.0:
            break
        p = np.where(is_below, np.minimum(1.0, C * p), 1.0)
    return p
