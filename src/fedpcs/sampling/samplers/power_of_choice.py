"""`power-of-choice`: of d candidates, the K with the largest loss. Biased by intention: the error floor grows with d.

Candidates come without replacement, likelier the more data they hold. Only they are asked for their loss, which is
private; `losses="last-known"` asks nobody and goes by what earlier participants reported, those never heard first.

References:
    Y. J. Cho, J. Wang, G. Joshi, Towards Understanding Biased Client Selection in Federated Learning, AISTATS 2022.
    arXiv 2010.01243.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.designs import earliest
from fedpcs.sampling.drawn import Draw, biased_draw, share_by_size
from fedpcs.sampling.feedback import Feedback
from fedpcs.sampling.view import IntArray, Memory, View


@dataclass(frozen=True)
class PowerOfChoiceSampler:
    """The K largest losses among d candidates.

    Attributes:
        num_candidates: d; twice the cohort if absent. At K it is a draw by data, at N greedy.
        losses: "current", asked of the candidates, or "last-known".
        weights: "equal", 1/K each, since data size entered with the candidates; or "normalised", by data size.
    """

    num_candidates: int | None = None
    losses: str = "current"
    weights: str = "equal"

    name: ClassVar[str] = "power-of-choice"

    def __post_init__(self) -> None:
        if self.num_candidates is not None:
            _validate.integer("num_candidates", self.num_candidates, low=1)
        _validate.choice("losses", self.losses, ("current", "last-known"))
        _validate.choice("weights", self.weights, ("equal", "normalised"))

    @property
    def reads(self) -> tuple[str, ...]:
        """What it sees before the draw."""
        return ("loss",) if self.losses == "current" else ()

    @property
    def hears(self) -> tuple[str, ...]:
        """What it learns from after the round."""
        return ("loss",) if self.losses == "last-known" else ()

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        wanted = 2 * view.cohort_size if self.num_candidates is None else self.num_candidates
        if wanted < view.cohort_size:
            raise InvalidInput(
                f"num_candidates must be at least the cohort size {view.cohort_size}, got {wanted}. Twice it is usual."
            )
        candidates = earliest(view.data_weight, wanted, rng)[0]
        loss = self._loss(view, candidates)
        ranking = np.lexsort((rng.random(candidates.size), -loss))  # ties fall at random
        clients = candidates[ranking[: view.cohort_size]]
        weights = np.full(clients.size, 1.0 / clients.size) if self.weights == "equal" else share_by_size(view, clients)
        return biased_draw(clients, weights)

    def start(self, num_clients: int) -> Memory:
        """Nobody has been heard: a loss above all others."""
        return {"loss": np.full(num_clients, np.inf)}

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Keep the losses of those who answered."""
        if self.losses == "current" or feedback.clients.size == 0:
            return view.memory
        loss = view.memory["loss"].copy()
        loss[feedback.clients] = feedback.need("loss")
        return {"loss": loss}

    def _loss(self, view: View, candidates: IntArray) -> FloatArray:
        if self.losses == "current":
            return view.losses_of(candidates)
        return np.asarray(view.memory["loss"][candidates])
