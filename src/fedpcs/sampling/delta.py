"""`delta`: clients are drawn by how far they stand from the rest and how much their own gradients scatter.

The minimiser of the paper's convergence bound is p_i ∝ √(ζ_i² + r·σ_i²) with ζ_i = ‖∇F_i − ∇f‖, σ_i² the variance of a
minibatch gradient and r = α₂/α₁, which is 1/(4·local steps) when the smoothness is unknown. *Ideal* reads ζ and σ from
everyone in every round. *Practical* learns them from those who took part and shares out their mass anew, everyone else
keeping what they had.

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
from fedpcs.sampling.drawn import Draw, share_by_size
from fedpcs.sampling.feedback import Feedback
from fedpcs.sampling.norms import without_noise
from fedpcs.sampling.proportional import draw_by_size, mixed_with_uniform
from fedpcs.sampling.view import Memory, View


@dataclass(frozen=True)
class DeltaSampler:
    """p_i ∝ √(ζ_i² + r·σ_i²).

    Attributes:
        information: "practical", from past participants, or "ideal", from every client's gradient.
        score: "formula" or "authors-code"; the latter for practical information only.
        mode: "sound", with weights that undo the draw, or "paper": successive draws with the authors' weights.
        local_steps: Local steps per round; sets r if `variance_ratio` is absent.
        variance_ratio: r = α₂/α₁, weight of σ_i² beside ζ_i²; at 0 gradient variances are not asked for.
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
    local_steps: int = 1
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
        _validate.integer("local_steps", self.local_steps, low=1)
        if self.variance_ratio is not None:
            _validate.number("variance_ratio", self.variance_ratio, low=0.0)
        _validate.number("distance_share", self.distance_share, low=0.0, high=1.0)
        _validate.choice("design", self.design, DESIGNS)
        _validate.number("floor", self.floor, low=0.0, high=1.0)
        _validate.boolean("subtract_noise", self.subtract_noise)

    @property
    def reads(self) -> tuple[str, ...]:
        """What it sees before the draw."""
        if self.information == "practical":
            return ()
        return ("gradient_distance", "gradient_variance") if self._ratio > 0.0 else ("gradient_distance",)

    @property
    def hears(self) -> tuple[str, ...]:
        """What it learns from after the round."""
        if self.information == "ideal":
            return ()
        distance = ("update_distance", "distance_noise_power") if self.subtract_noise else ("update_distance",)
        if self.score == "authors-code":
            return (*distance, *(("update_norm", "noise_power") if self.subtract_noise else ("update_norm",)))
        return (*distance, "gradient_variance") if self._ratio > 0.0 else distance

    def draw(self, view: View, rng: np.random.Generator) -> Draw:
        """Draw the cohort of one round."""
        size = self._ideal_size(view) if self.information == "ideal" else view.memory["probability"]
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
    def _ratio(self) -> float:
        return 1.0 / (4.0 * self.local_steps) if self.variance_ratio is None else self.variance_ratio

    def _ideal_size(self, view: View) -> FloatArray:
        variance = view.need("gradient_variance") if self._ratio > 0.0 else np.zeros(view.num_clients)
        return np.asarray(np.hypot(view.need("gradient_distance"), np.sqrt(self._ratio * variance)))

    def _score(self, view: View, feedback: Feedback) -> FloatArray:
        noise = feedback.need("distance_noise_power") if self.subtract_noise else None
        distance = without_noise(feedback.need("update_distance"), noise)
        if self.score == "authors-code":
            noise = feedback.need("noise_power") if self.subtract_noise else None
            norm = without_noise(feedback.need("update_norm"), noise)
            share = share_by_size(view, feedback.clients)
            return np.asarray(share * ((1.0 - self.distance_share) * norm + self.distance_share * distance))
        # A pseudo-gradient is the update over η·(local steps): then ζ has the units of σ.
        distance = distance / feedback.local_length
        variance = feedback.need("gradient_variance") if self._ratio > 0.0 else np.zeros_like(distance)
        return np.asarray(np.hypot(distance, np.sqrt(self._ratio * variance)))
