"""`fed-cbs`: a cohort whose pooled labels are as balanced as can be.

For a set M with pooled label counts A = Σ c_n and total q = Σ q_n the imbalance is

    QCID(M) = ‖A‖²/q² − 1/B,   B classes, between 0 (balanced) and 1 − 1/B.

Clients are picked one by one. The first is drawn in proportion to QCID({c})^(−β₁) + λ·√(3 ln(k+1)/(2·T_c)), k the
round from one and T_c how often c took part; every later one in proportion to QCID(M + {c})^(−β_m). (The printed ratios
reduce to this: what they divide by does not depend on the candidate.) Balance is towards *uniform* labels, whatever the
world's are.

λ is not scale-free: with balanced clients 1/QCID is in the hundreds and the bonus vanishes beside it; with one-label
clients it rules. Only the first pick explores, so the same clients may be drawn for ever: watch `RoundReport.evenness`.

References:
    J. Zhang et al., Fed-CBS: A Heterogeneity-Aware Client Sampling Mechanism via Class-Imbalance Reduction, ICML 2023.
    arXiv 2209.15245.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.drawn import Draw, biased_draw, share_by_size
from fedpcs.sampling.feedback import Feedback
from fedpcs.sampling.view import IntArray, Memory, View

# A perfectly balanced set would have infinite odds; below this, sets count as equally balanced.
_BALANCED = 1e-12
# From this many clients on each round looks at a random part of them, as deployments do.
_TOO_MANY = 100_000


@dataclass(frozen=True)
class FedCBSSampler:
    """Sequential picks in proportion to QCID^(−β).

    Attributes:
        last_exponent: β of the last pick; β rises linearly from 1. K if absent, so that β_m = m as in the paper.
        exploration: λ, weight of the bonus for clients rarely drawn.
        first_pick: "sample", or "argmax" of the first pick's odds.
        restarts: How many cohorts to draw; the best balanced one is kept.
        num_candidates: How many clients each round considers; all if absent, or the larger of 2,000 and 10·K of more
            than 100,000.
    """

    last_exponent: float | None = None
    exploration: float = 10.0
    first_pick: str = "sample"
    restarts: int = 1
    num_candidates: int | None = None

    name: ClassVar[str] = "fed-cbs"
    reads: ClassVar[tuple[str, ...]] = ("label_counts",)
    hears: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.last_exponent is not None:
            _validate.number("last_exponent", self.last_exponent, low=1.0)
        _validate.number("exploration", self.exploration, low=0.0)
        _validate.choice("first_pick", self.first_pick, ("sample", "argmax"))
        _validate.integer("restarts", self.restarts, low=1)
        if self.num_candidates is not None:
            _validate.integer("num_candidates", self.num_candidates, low=1)

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        pool = self._candidates(view, rng)
        counts = view.need("label_counts")[pool]
        counts = counts / counts.max()  # only proportions matter; squares stay small
        bonus = self._log_bonus(view, pool)
        tries = [self._pick(counts, min(view.cohort_size, pool.size), bonus, rng) for _ in range(self.restarts)]
        best = min(tries, key=lambda picked: class_imbalance(counts[picked]))
        clients = pool[best]
        return biased_draw(clients, share_by_size(view, clients))

    def start(self, num_clients: int) -> Memory:
        """Nobody has taken part."""
        return {"times": np.zeros(num_clients)}

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Count those who answered."""
        times = view.memory["times"].copy()
        times[feedback.clients] += 1.0
        return {"times": times}

    def _candidates(self, view: View, rng: np.random.Generator) -> IntArray:
        pool = np.flatnonzero(view.is_available)
        limit = self.num_candidates
        if limit is None:
            limit = pool.size if pool.size < _TOO_MANY else max(10 * view.cohort_size, 2_000)
        limit = max(limit, view.cohort_size)
        return pool if limit >= pool.size else np.sort(rng.choice(pool, limit, replace=False, shuffle=False))

    def _log_bonus(self, view: View, pool: IntArray) -> FloatArray:
        """Return ln(λ·√(3 ln(k+1)/(2T))), with T at least one."""
        times = np.maximum(view.memory["times"][pool], 1.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.exploration * np.sqrt(1.5 * np.log(view.round_index + 2.0) / times)))

    def _pick(self, counts: FloatArray, cohort_size: int, log_bonus: FloatArray, rng: np.random.Generator) -> IntArray:
        last = float(cohort_size) if self.last_exponent is None else self.last_exponent
        exponents = np.linspace(1.0, last, cohort_size)
        total, square = counts.sum(axis=1), np.einsum("nb,nb->n", counts, counts)
        is_free = np.ones(total.size, dtype=np.bool_)
        pooled, cross = np.zeros(counts.shape[1]), np.zeros(total.size)
        picked = np.empty(cohort_size, dtype=np.int64)
        for m, exponent in enumerate(exponents):
            # QCID(M + {n}) from ‖A + c_n‖² = ‖A‖² + 2⟨A, c_n⟩ + ‖c_n‖²: one product of counts and a vector per pick.
            imbalance = (pooled @ pooled + 2.0 * cross + square) / (pooled.sum() + total) ** 2 - 1.0 / counts.shape[1]
            log_odds = -exponent * np.log(np.maximum(imbalance, _BALANCED))
            if m == 0:
                log_odds = np.logaddexp(log_odds, log_bonus)
            picked[m] = self._one(np.where(is_free, log_odds, -np.inf), m == 0, rng)
            is_free[picked[m]] = False
            pooled = pooled + counts[picked[m]]
            cross = cross + counts @ counts[picked[m]]
        return picked

    def _one(self, log_odds: FloatArray, is_first: bool, rng: np.random.Generator) -> int:
        """Draw in proportion to exp(log_odds), in logs: the largest after adding Gumbel noise."""
        if is_first and self.first_pick == "argmax":
            return int(rng.choice(np.flatnonzero(log_odds == log_odds.max())))
        return int(np.argmax(log_odds + rng.gumbel(size=log_odds.size)))


def class_imbalance(counts: FloatArray) -> float:
    """Return QCID of clients pooled together, from their (clients, classes) label counts.

    Example:
        >>> round(class_imbalance(np.array([[0.0, 0, 0, 10, 10, 10]])), 4)
        0.1667
        >>> class_imbalance(np.array([[0.0, 0, 0, 10, 10, 10], [10, 10, 10, 0, 0, 0]]))
        0.0
    """
    pooled = _validate.matrix("counts", counts, num_rows=len(counts), low=0.0).sum(axis=0)
    if not pooled.any():
        raise InvalidInput("counts must hold at least one record, got none.")
    return float(np.sum((pooled / pooled.sum() - 1.0 / pooled.size) ** 2))


def usable_counts(noisy_counts: ArrayLike, num_samples: ArrayLike) -> FloatArray:
    """Return label counts that were released with noise as counts again: none negative, rows that add up.

    Post-processing: it costs no privacy. A row with nothing left is taken as balanced.
    """
    sizes = _validate.vector("num_samples", num_samples, low=0.0)
    counts = np.maximum(_validate.matrix("noisy_counts", noisy_counts, num_rows=sizes.size, least_columns=2), 0.0)
    counts = np.where(counts.sum(axis=1, keepdims=True) > 0.0, counts, 1.0)
    return np.asarray(counts * (sizes / counts.sum(axis=1))[:, None])
