"""A pipeline with a claim, and neighbouring inputs that try it: what all audits of a mode are made of."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Level
from fedpcs.privacy.noise import NoiseSource

LAYERS: tuple[tuple[int, ...], ...] = ((25, 24), (24,), (24, 15), (15,), ())
LAYER_SIZES = tuple(math.prod(shape) for shape in LAYERS)
LAYER_ENDS = tuple(int(end) for end in np.cumsum(LAYER_SIZES))
NUM_PARAMETERS = LAYER_ENDS[-1]
CLIP_NORM = 1.0
NUM_RECORDS, BATCH_SIZE = 16, 8
LOCAL_EPOCHS = 2

# (steps, rows, parameters) of one round, as computed on the client → (steps, parameters) as released.
Pipeline = Callable[[FloatArray, NoiseSource], FloatArray]


@dataclass(frozen=True)
class Pair:
    """Two inputs of one round, and what should be released of each but for noise, by the auditor's own sums.

    Attributes:
        held_in: (steps, rows, parameters) with the canary.
        held_out: (steps, rows, parameters) with its opposite.
        expected_in: (steps, parameters).
        expected_out: (steps, parameters).
    """

    held_in: FloatArray
    held_out: FloatArray
    expected_in: FloatArray
    expected_out: FloatArray


# A canary's direction → inputs of one round, with a fresh background.
MakeNeighbours = Callable[[np.random.Generator, FloatArray], Pair]


@dataclass(frozen=True)
class Scenario:
    """A pipeline, its claim, and neighbours to try it on. Put another pipeline in with `dataclasses.replace`.

    Attributes:
        mode: Name of the audit.
        level: Whom the claim protects.
        budget: ρ of one round, as claimed.
        sensitivity: Δ, how far apart the claim takes a step's neighbours to be at most.
        num_steps: How many of a round's steps a record takes part in; they share the budget.
        neighbours: How the two inputs differ, in words.
        make_neighbours: A canary's direction → inputs of one round, with a fresh background.
        pipeline: What is audited.
        remark: What a reader should know of the outcome.
    """

    mode: str
    level: Level
    budget: Rho
    sensitivity: float
    num_steps: int
    neighbours: str
    make_neighbours: MakeNeighbours
    pipeline: Pipeline
    remark: str = ""

    def noise_stddev(self, units_per_stddev: int | None) -> float:
        """Return σ = Δ/(√(2ρ/E) − √d/m), the noise the claim calls for on a grid of σ/m: the auditor's own sum."""
        grid_share = 0.0 if units_per_stddev is None else math.sqrt(NUM_PARAMETERS) / units_per_stddev
        return self.sensitivity / (math.sqrt(2.0 * float(self.budget // self.num_steps)) - grid_share)


def replaced_in_full_batch(rng: np.random.Generator, direction: FloatArray) -> Pair:
    """Return one batch of all records, in which the canary's row is turned around."""
    gradients = other_gradients(rng)[np.newaxis]
    canary = np.zeros_like(gradients)
    canary[0, int(rng.integers(NUM_RECORDS))] = canary_length(rng) * direction
    others = np.where(canary.any(axis=2, keepdims=True), 0.0, gradients)
    return clipped_neighbours(others + canary, others - canary)


def clipped_neighbours(held_in: FloatArray, held_out: FloatArray) -> Pair:
    """Return two inputs with what should be released of them: means of rows clipped to W."""
    # The auditor's own clipping, not the one it audits.
    expected = []
    for raw in (held_in, held_out):
        norms = np.linalg.norm(raw, axis=2, keepdims=True)
        expected.append((raw * (CLIP_NORM / np.maximum(norms, CLIP_NORM))).mean(axis=1))
    return Pair(held_in, held_out, *expected)


def other_gradients(rng: np.random.Generator) -> FloatArray:
    """Return gradients of the other records, some longer than the clip norm and some shorter."""
    lengths = CLIP_NORM * 10.0 ** rng.uniform(-1.0, 1.0, (NUM_RECORDS, 1))
    return lengths * rng.standard_normal((NUM_RECORDS, NUM_PARAMETERS)) / math.sqrt(NUM_PARAMETERS)


def canary_length(rng: np.random.Generator) -> float:
    """Return how long a canary is: 100 to 10,000 times the clip norm."""
    return float(CLIP_NORM * 10.0 ** rng.uniform(2.0, 4.0))
