"""`delta`: clients are drawn by how far they stand from the rest and how much their own gradients scatter.

The minimiser of the paper's convergence bound is p_i ∝ √(ζ_i² + r·σ_i²) with ζ_i = ‖∇F_i − ∇f‖, σ_i² the variance of a
minibatch gradient and r = α₂/α₁, which is 1/(4·local steps) when the smoothness is unknown, with each client's own
number of steps. *Ideal* reads ζ and σ from everyone in every round. *Practical* learns them from those who took part,
ζ from updates over η·(local steps), and shares out their mass anew, everyone else keeping what they had.

The authors' code differs from their formula twice over: its score is θ̃_i·[(1 − β)‖g_i‖ + β‖g_i − ḡ‖] without σ, and
it draws without replacement yet weighs by θ_i/p_i over the cohort's size. `score="authors-code"` and `mode="paper"` run
it that way.

References:
    L. Wang, Y. Guo, T. Lin, X. Tang, DELTA: Diverse Client Sampling for Fasting Federated Learning, NeurIPS 2023. arXiv
    2205.13925.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.sampling.designs import DESIGNS
from fedpcs.sampling.drawn import Draw, draw_by_size, mixed_with_uniform, share_by_size
from fedpcs.sampling.feedback import Feedback, without_noise
from fedpcs.sampling.view import Memory, View


@dataclass(frozen=True)
class DeltaSampler:
    """p_i ∝ √(ζ_i² + r·σ_i²).

    Attributes:
        information: "practical", from past participants, or "ideal", from every client's gradient.
        score: "formula" or "authors-code"; the latter for practical information only.
        mode: "sound", with weights that undo the draw, or "paper": successive draws with the authors' weights.
        variance_ratio: r = α₂/α₁, weight of σ_i² beside ζ_i²; 1/(4·local steps) if absent. At 0 it is DELTA by
            diversity alone, and gradient variances are not asked for.
        distance_share: β of the authors' score.
        design: How the cohort is drawn in the sound mode.
        floor: Share of the draw that is uniform: a participant that scored zero would never be drawn again. The authors
            have none; 0 is their run.
        subtract_noise: Whether to take the known noise power off squared distances. Distances from the cohort's own
            mean are a little short, by √(1 − 1/K) on average, alike for all.
    """

    information: str = "practical"
    score: str = "formula"
    mode: str = "sound"
    variance_ratio: float | None = None
    distance_share: float = 0.5
    design: str = "pivotal"
    floor: float = 0.05
    subtract_noise: bool = True

    name: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        _validate.choice("information", self.information, ("practical", "ideal"))
        scores = ("formula", "authors-code") if self.information == "practical" else ("formula",)
        _validate.choice("score", self.score, scores)
        _validate.choice("mode", self.mode, ("sound", "paper"))
        if self.variance_ratio is not None:
            _validate.number("variance_ratio", self.variance_ratio, low=0.0)
        _validate.number("distance_share", self.distance_share, low=0.0, high=1.0)
        _validate.choice("design", self.design, DESIGNS)
        _validate.number("floor", self.floor, low=0.0, high=1.0)
        _validate.boolean("subtract_noise", self.subtract_noise)

    @property
    def reads(self) -> tuple[str, ...]:
        """What it sees before the draw."""
        return ("gradient_distance", *self._variance_fields) if self.information == "ideal" else ()

    @property
    def hears(self) -> tuple[str, ...]:
        """What it learns from after the round."""
        if self.information == "ideal":
            return ()
        if self.score == "authors-code":
            measured = ("update_distance", "update_norm")
            return (*measured, "distance_noise_power", "noise_power") if self.subtract_noise else measured
        noise = ("gradient_noise_power",) if self.subtract_noise else ()
        return ("gradient_distance", *noise, *self._variance_fields)

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        is_ideal = self.information == "ideal"
        size = self._formula(view.need("gradient_distance"), view) if is_ideal else view.memory["probability"]
        x = mixed_with_uniform(size, view.is_available, self.floor)
        if self.mode == "sound":
            return draw_by_size(view, x, self.design, rng)
        # L_i/(N·p_i) over the cohort's ΣL: the authors' weights, which no design makes unbiased.
        found = draw_by_size(view, x, "gumbel", rng)
        share = share_by_size(view, found.clients)
        weights = share / (np.count_nonzero(view.is_available) * x[found.clients])
        return replace(found, weights=weights, expansion=None)  # biased, so it does not say otherwise

    def start(self, num_clients: int) -> Memory:
        """All clients are alike."""
        return {"probability": np.full(num_clients, 1.0 / num_clients)}

    def remember(self, view: View, draw: Draw, feedback: Feedback) -> Memory:
        """Share out the participants' mass by their scores; everyone else keeps theirs."""
        if self.information == "ideal" or feedback.clients.size == 0:
            return view.memory
        score = self._score(view, feedback)
        if not score.any():
            return view.memory
        p = view.memory["probability"].copy()
        p[feedback.clients] = score / score.sum() * p[feedback.clients].sum()
        return {"probability": p / p.sum()}

    @property
    def _variance_fields(self) -> tuple[str, ...]:
        """What the second term of the score is made of."""
        if self.variance_ratio is None:
            return ("gradient_variance", "local_steps")
        return ("gradient_variance",) if self.variance_ratio > 0.0 else ()

    def _formula(self, distance: FloatArray, known: View | Feedback) -> FloatArray:
        """Return √(ζ² + r·σ²) of the clients whose ζ is given."""
        if not self._variance_fields:
            return distance
        ratio = 1.0 / (4.0 * known.need("local_steps")) if self.variance_ratio is None else self.variance_ratio
        return np.asarray(np.hypot(distance, np.sqrt(ratio * known.need("gradient_variance"))))

    def _score(self, view: View, feedback: Feedback) -> FloatArray:
        if self.score == "authors-code":
            noise = feedback.need("distance_noise_power") if self.subtract_noise else None
            distance = without_noise(feedback.need("update_distance"), noise)
            noise = feedback.need("noise_power") if self.subtract_noise else None
            norm = without_noise(feedback.need("update_norm"), noise)
            share = share_by_size(view, feedback.clients)
            return np.asarray(share * ((1.0 - self.distance_share) * norm + self.distance_share * distance))
        noise = feedback.need("gradient_noise_power") if self.subtract_noise else None
        return self._formula(without_noise(feedback.need("gradient_distance"), noise), feedback)
