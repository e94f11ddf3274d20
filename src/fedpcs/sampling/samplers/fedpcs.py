"""`fedpcs`: clients are drawn in proportion to the privacy budget they declare.

The paper draws K clients without replacement with x_i = ρ_i/Σρ and weighs them by θ_i/(K·x_i), which belongs to draws
with replacement. Here a design keeps its word (see `designs`), and `design="with-replacement"` is the paper's estimator
made sound. The printed combination is `design="gumbel"` with the rule `paper`.

References:
    W. Yuan, X. Wang, A Game-Theoretic Framework for Privacy-Aware Client Sampling in Federated Learning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.sampling.designs import DESIGNS
from fedpcs.sampling.drawn import Draw, draw_by_size, mixed_with_uniform
from fedpcs.sampling.view import View


@dataclass(frozen=True)
class FedPCSSampler:
    """x_i = ρ_i/Σρ, drawn by a design with known inclusion.

    Attributes:
        design: How the cohort is drawn; see `designs`.
        floor: Share of the draw that is uniform, so that a client of tiny budget is not given a giant weight.
    """

    design: str = "pivotal"
    floor: float = 0.0

    name: ClassVar[str] = "fedpcs"
    reads: ClassVar[tuple[str, ...]] = ("budget",)
    hears: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        _validate.choice("design", self.design, DESIGNS)
        _validate.number("floor", self.floor, low=0.0, high=1.0)

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        budget = view.need("budget")
        if self.floor == 0.0 and not (budget[view.is_available] > 0.0).all():
            client = int(np.flatnonzero(view.is_available & (budget <= 0.0))[0])
            raise InvalidInput(
                f"budget[{client}] must be above 0, got {budget[client]:g}: the client would never be drawn, "
                "which no weight makes up for. Mark it as not available, or set floor above 0."
            )
        return draw_by_size(view, mixed_with_uniform(budget, view.is_available, self.floor), self.design, rng)
