"""What an audit feeds to each privacy mode: neighbouring inputs, the pipeline they go through, the noise it claims.

Neighbours are the worst the mode's claim speaks of, and far longer than the clip norm, so that a pipeline that does not
clip gives itself away. Each canary has a direction of its own within one layer, or across all, and its own background,
known to the auditor. The model has layers of several shapes, one of them without dimensions.

`record` audits the mechanism step by step, `record-training` the update that a whole private training releases.
`paper` is audited as it would be used: a client trains for several epochs, and its whole update is clipped. One
relabelled record then turns the update around, 2W apart where the claim counts on 2W/|D|. `paper-one-step` is the case
the claim holds for: one full-batch step over gradients that are clipped record by record.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import ClippedUpdate, clip_rows, clip_update
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism
from fedpcs.privacy.modes import audit_named
from fedpcs.privacy.modes.mode import Neighbours
from fedpcs.privacy.noise import NoiseSource
from fedpcs.studies.audit.scenario import (
    BATCH_SIZE,
    CLIP_NORM,
    LAYER_ENDS,
    LAYER_SIZES,
    LAYERS,
    LOCAL_EPOCHS,
    NUM_PARAMETERS,
    NUM_RECORDS,
    MakeNeighbours,
    Pair,
    Pipeline,
    Scenario,
    canary_length,
    clipped_neighbours,
    other_gradients,
    replaced_in_full_batch,
)

_PAPER_EPOCHS, _LEARNING_RATE = 5, 0.1
_NUM_BATCHES = NUM_RECORDS // BATCH_SIZE


@dataclass(frozen=True)
class _Announced:
    """What an audited client is told about training."""

    clip_norm: float = CLIP_NORM
    learning_rate: float = _LEARNING_RATE
    batch_size: int | None = BATCH_SIZE
    local_epochs: int = LOCAL_EPOCHS


_ANNOUNCED = _Announced()


def make_scenario(name: str, budget: Rho) -> Scenario:
    """Return the honest pipeline of an audit and its worst neighbours.

    Args:
        name: Of a privacy mode, or of one of its special cases: whatever `audit_named` knows.
        budget: ρ of one round.
    """
    if not budget > Rho(0):
        raise InvalidInput(f"rho must be above 0, got {budget}. With nothing to spend nothing is released.")
    mode, canary = audit_named(name)
    mechanism = mode.mechanism(_ANNOUNCED, budget, NUM_RECORDS)
    if isinstance(mechanism, UpdateMechanism):
        # σ² = Δ²/(2ρ): at ρ = 1/2 it is Δ².
        variance = mode.noise_variance(_ANNOUNCED, np.array([0.5]), np.array([NUM_RECORDS]))
        sensitivity, num_steps = math.sqrt(variance[0]), 1
        difference, make = _OF_UPDATES[canary.neighbours]
        pipeline = _update_pipeline(mechanism, is_mean=canary.neighbours is Neighbours.REPLACED_IN_FULL_BATCH)
    elif canary.neighbours is Neighbours.REPLACED_RECORD_TRAINED:
        from fedpcs.studies.audit.training import replaced_record, training_pipeline  # brings torch

        # The update adds up a step for each epoch, so its noise is √E that of one.
        sensitivity, num_steps = math.sqrt(LOCAL_EPOCHS) * 2.0 * CLIP_NORM / NUM_RECORDS, LOCAL_EPOCHS
        difference = f"one of {NUM_RECORDS} records turned around, {LOCAL_EPOCHS} full-batch epochs of private training"
        make, pipeline = replaced_record, training_pipeline(mechanism)
    else:
        sensitivity, num_steps = 2.0 * CLIP_NORM / BATCH_SIZE, LOCAL_EPOCHS
        batches = f"{LOCAL_EPOCHS} epochs of {_NUM_BATCHES} batches of {BATCH_SIZE}"
        difference = f"one record's gradient turned around, {batches}"
        make, pipeline = _replaced_record, _step_pipeline(mechanism)
    assert mode.level is not None
    return Scenario(canary.name, mode.level, budget, sensitivity, num_steps, difference, make, pipeline, canary.remark)


def canary_direction(rng: np.random.Generator, canary: int) -> FloatArray:
    """Return a unit vector in one layer, or across all: canaries take turns."""
    layer = canary % (len(LAYERS) + 1)
    is_everywhere = layer == len(LAYERS)
    start = 0 if is_everywhere else LAYER_ENDS[layer] - LAYER_SIZES[layer]
    end = NUM_PARAMETERS if is_everywhere else LAYER_ENDS[layer]
    direction = np.zeros(NUM_PARAMETERS)
    direction[start:end] = rng.standard_normal(end - start)
    return direction / np.linalg.norm(direction)


def _update_pipeline(mechanism: UpdateMechanism, *, is_mean: bool) -> Pipeline:
    """Return the release of whole updates; `is_mean`: of one step over clipped rows."""

    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        update = clip_rows(raw[0], CLIP_NORM) if is_mean else clip_update(_as_layers(raw[0, 0]), CLIP_NORM)
        return mechanism.release(ClippedUpdate(update.value, update.l2_bound), source).value[np.newaxis]

    return pipeline


def _step_pipeline(mechanism: RecordMechanism) -> Pipeline:
    return lambda raw, source: np.stack([mechanism.release(clip_rows(rows, CLIP_NORM), source).value for rows in raw])


def _opposite_updates(rng: np.random.Generator, direction: FloatArray) -> Pair:
    update = canary_length(rng) * direction[np.newaxis, np.newaxis]
    return clipped_neighbours(update, -update)


def _replaced_record(rng: np.random.Generator, direction: FloatArray) -> Pair:
    gradients = other_gradients(rng)
    order = np.concatenate([rng.permutation(NUM_RECORDS) for _ in range(LOCAL_EPOCHS)])
    canary = canary_length(rng) * direction
    worlds = []
    for row in (canary, -canary):
        records = np.concatenate((row[np.newaxis], gradients[1:]))
        worlds.append(records[order].reshape(-1, BATCH_SIZE, NUM_PARAMETERS))
    return clipped_neighbours(*worlds)


def _relabelled_record(rng: np.random.Generator, direction: FloatArray) -> Pair:
    """Train a logistic regression on two data sets that differ in the label of one record, a far outlier."""
    features = rng.standard_normal((NUM_RECORDS, NUM_PARAMETERS)) / math.sqrt(NUM_PARAMETERS)
    features[0] = 10.0 * canary_length(rng) * direction
    labels = rng.choice((-1.0, 1.0), NUM_RECORDS)
    # The outlier is in the first batch: either label then moves the model as far as the other.
    epochs = [np.arange(NUM_RECORDS), *(rng.permutation(NUM_RECORDS) for _ in range(_PAPER_EPOCHS - 1))]
    order = np.concatenate(epochs).reshape(-1, BATCH_SIZE)
    worlds = []
    for label in (-1.0, 1.0):  # the update is what training takes away, so label −1 points along the canary
        labels[0] = label
        worlds.append(_trained_update(features, labels, order)[np.newaxis, np.newaxis])
    return clipped_neighbours(*worlds)


def _trained_update(features: FloatArray, labels: FloatArray, order: NDArray[np.intp]) -> FloatArray:
    weights = np.zeros(NUM_PARAMETERS)
    for batch in order:
        signed = labels[batch, np.newaxis] * features[batch]
        weights += _LEARNING_RATE * (expit(-(signed @ weights)) @ signed) / len(batch)
    return -weights


def _as_layers(flat: FloatArray) -> list[FloatArray]:
    parts = np.split(flat, LAYER_ENDS[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, LAYERS, strict=True)]


_OF_UPDATES: dict[Neighbours, tuple[str, MakeNeighbours]] = {
    Neighbours.OPPOSITE_UPDATES: ("opposite updates, far longer than W", _opposite_updates),
    Neighbours.RELABELLED_RECORD: (
        f"one of {NUM_RECORDS} records relabelled, {_PAPER_EPOCHS} local epochs, update clipped to W",
        _relabelled_record,
    ),
    Neighbours.REPLACED_IN_FULL_BATCH: (
        f"one of {NUM_RECORDS} records' gradient turned around, each clipped to W, one full-batch step",
        replaced_in_full_batch,
    ),
}
