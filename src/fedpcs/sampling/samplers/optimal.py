"""`optimal`: the draw of least variance when updates carry noise; a reference for the others.

Unbiased weights θ_i/π_i on updates of norm G_i with noise of power v_i have variance about Σ θ_i²(G_i² + v_i)/π_i,
least for π_i ∝ θ_i·√(G_i² + v_i): it draws *more* of the noisy clients, because each of them needs a smaller weight
then. That is the opposite of drawing by budget.

References:
    B. Luo et al., Tackling System and Statistical Heterogeneity for Federated Learning with Adaptive Client Sampling,
    INFOCOM 2022. arXiv 2112.11256.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import DESIGNS
from fedpcs.sampling.drawn import Draw, draw_by_size, mixed_with_uniform
from fedpcs.sampling.feedback import Feedback, filled, heard_norms, unknown_norms
from fedpcs.sampling.view import Memory, View


@dataclass(frozen=True)
class OptimalSampler:
    """x_i ∝ θ_i·√(G_i² + d·σ_i²).

    Attributes:
        norms: "last-known": G_i is the norm client i's update had when it last took part, its noise taken off; or
            "current".
        initial_norm: G of every client before anyone has taken part, such as the clip norm.
        design: How the cohort is drawn; see `designs`.
        floor: Share of the draw that is uniform, so that a client whose norm came out as zero is drawn again.
    """

    norms: str = "last-known"
    initial_norm: float = 1.0
    design: str = "pivotal"
    floor: float = 0.05

    name: ClassVar[str] = "optimal"

    def __post_init__(self) -> None:
        _validate.choice("norms", self.norms, ("current", "last-known"))
        _validate.positive("initial_norm", self.initial_norm)
        _validate.choice("design", self.design, DESIGNS)
        _validate.number("floor", self.floor, low=0.0, high=1.0)

    @property
    def reads(self) -> tuple[str, ...]:
        """What it sees before the draw."""
        return ("noise_power",) if self.norms == "last-known" else ("noise_power", "update_norm")

    @property
    def hears(self) -> tuple[str, ...]:
        """What it learns from after the round."""
        return ("update_norm", "noise_power") if self.norms == "last-known" else ()

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        size = view.data_weight * np.hypot(self._norm(view), np.sqrt(view.need("noise_power")))
        return draw_by_size(view, mixed_with_uniform(size, view.is_available, self.floor), self.design, rng)

    def start(self, num_clients: int) -> Memory:
        """Nobody's norm is known."""
        return unknown_norms(num_clients)

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Keep the norms of those who answered."""
        if self.norms == "current":
            return view.memory
        return heard_norms(view.memory, feedback, subtract_noise=True)

    def _norm(self, view: View) -> FloatArray:
        if self.norms == "current":
            return view.need("update_norm")
        return filled(view.memory["norm"], otherwise=self.initial_norm)
