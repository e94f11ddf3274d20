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
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import ClippedUpdate, clip_rows, clip_update
from fedpcs.privacy.events import Batch, ClientLevel, PaperLevel, RecordLevel
from fedpcs.privacy.mechanism import ClientMechanism, PaperMechanism, RecordMechanism
from fedpcs.privacy.noise import NoiseSource
from fedpcs.studies.scenario import (
    BATCH_SIZE,
    CLIP_NORM,
    LAYER_ENDS,
    LAYER_SIZES,
    LAYERS,
    LOCAL_EPOCHS,
    NUM_PARAMETERS,
    NUM_RECORDS,
    Neighbours,
    Scenario,
    canary_length,
    clipped_neighbours,
    other_gradients,
    replaced_in_full_batch,
)

AUDIT_MODES = ("client", "record", "record-training", "paper", "paper-one-step")
_PAPER_EPOCHS, _LEARNING_RATE = 5, 0.1
_PAPER_SENSITIVITY = 2.0 * CLIP_NORM / NUM_RECORDS
_PAPER_REMARK = (
    "The paper matches noise to 2W/|D|. One record can move a mean of clipped gradients by that much, but the clipped "
    "update of several local steps by 2W, as these neighbours show: a contradiction is expected. Audit "
    "paper-one-step for the case in which the claim holds."
)


def make_scenario(mode: str, budget: Rho) -> Scenario:
    """Return the honest pipeline of a mode and its worst neighbours."""
    if not budget > Rho(0):
        raise InvalidInput(f"rho must be above 0, got {budget}. With nothing to spend nothing is released.")
    return _SCENARIOS[_validate.choice("mode", mode, AUDIT_MODES)](budget)


def canary_direction(rng: np.random.Generator, canary: int) -> FloatArray:
    """Return a unit vector in one layer, or across all: canaries take turns."""
    layer = canary % (len(LAYERS) + 1)
    is_everywhere = layer == len(LAYERS)
    start = 0 if is_everywhere else LAYER_ENDS[layer] - LAYER_SIZES[layer]
    end = NUM_PARAMETERS if is_everywhere else LAYER_ENDS[layer]
    direction = np.zeros(NUM_PARAMETERS)
    direction[start:end] = rng.standard_normal(end - start)
    return direction / np.linalg.norm(direction)


def _client(budget: Rho) -> Scenario:
    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        update = clip_update(_as_layers(raw[0, 0]), CLIP_NORM)
        return ClientMechanism(budget).release(update, source).value[np.newaxis]

    words = "opposite updates, far longer than W"
    return Scenario("client", ClientLevel(), budget, 2.0 * CLIP_NORM, 1, words, _opposite_updates, pipeline)


def _record(budget: Rho) -> Scenario:
    num_batches = NUM_RECORDS // BATCH_SIZE
    mechanism = RecordMechanism(budget, LOCAL_EPOCHS)

    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        return np.stack(
            [
                mechanism.release(clip_rows(rows, CLIP_NORM), source, Batch(*divmod(step, num_batches))).value
                for step, rows in enumerate(raw)
            ]
        )

    sensitivity = 2.0 * CLIP_NORM / BATCH_SIZE
    words = f"one record's gradient turned around, {LOCAL_EPOCHS} epochs of {num_batches} batches of {BATCH_SIZE}"
    return Scenario("record", RecordLevel(), budget, sensitivity, LOCAL_EPOCHS, words, _replaced_record, pipeline)


def _paper(budget: Rho) -> Scenario:
    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        update = clip_update(_as_layers(raw[0, 0]), CLIP_NORM)
        return PaperMechanism(budget, NUM_RECORDS).release(update, source).value[np.newaxis]

    words = f"one of {NUM_RECORDS} records relabelled, {_PAPER_EPOCHS} local epochs, update clipped to W"
    return Scenario(
        "paper", PaperLevel(), budget, _PAPER_SENSITIVITY, 1, words, _relabelled_record, pipeline, _PAPER_REMARK
    )


def _paper_one_step(budget: Rho) -> Scenario:
    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        mean = clip_rows(raw[0], CLIP_NORM)
        update = ClippedUpdate(mean.value, mean.l2_bound)
        return PaperMechanism(budget, NUM_RECORDS).release(update, source).value[np.newaxis]

    words = f"one of {NUM_RECORDS} records' gradient turned around, each clipped to W, one full-batch step"
    remark = "The paper's calibration, in the one case it holds for."
    return Scenario(
        "paper-one-step", PaperLevel(), budget, _PAPER_SENSITIVITY, 1, words, replaced_in_full_batch, pipeline, remark
    )


def _record_training(budget: Rho) -> Scenario:
    from fedpcs.studies.audit_training import record_training  # brings torch

    return record_training(budget)


_SCENARIOS: dict[str, Callable[[Rho], Scenario]] = {
    "client": _client,
    "record": _record,
    "record-training": _record_training,
    "paper": _paper,
    "paper-one-step": _paper_one_step,
}


def _opposite_updates(rng: np.random.Generator, direction: FloatArray) -> Neighbours:
    update = canary_length(rng) * direction[np.newaxis, np.newaxis]
    return clipped_neighbours(update, -update)


def _replaced_record(rng: np.random.Generator, direction: FloatArray) -> Neighbours:
    gradients = other_gradients(rng)
    order = np.concatenate([rng.permutation(NUM_RECORDS) for _ in range(LOCAL_EPOCHS)])
    canary = canary_length(rng) * direction
    worlds = []
    for row in (canary, -canary):
        records = np.concatenate((row[np.newaxis], gradients[1:]))
        worlds.append(records[order].reshape(-1, BATCH_SIZE, NUM_PARAMETERS))
    return clipped_neighbours(*worlds)


def _relabelled_record(rng: np.random.Generator, direction: FloatArray) -> Neighbours:
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
