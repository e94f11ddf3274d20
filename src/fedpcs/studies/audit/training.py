"""The `record` mode from end to end: canary records in a client's data, the update of a private training released.

The model is linear and its loss is its output, so that a record's gradient is the record itself and the auditor knows
what training would release without noise: the sum over epochs of the mean of clipped records. All else is what a user
runs: batches, per-sample gradients by torch, clipping, noise at every step, the model moved and subtracted.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from fedpcs import _random
from fedpcs._validate import FloatArray
from fedpcs.privacy.mechanism import RecordMechanism
from fedpcs.privacy.noise import NoiseSource
from fedpcs.privacy.private_training import LocalPlan, private_sgd
from fedpcs.studies.audit.scenario import (
    CLIP_NORM,
    LOCAL_EPOCHS,
    NUM_PARAMETERS,
    Pair,
    Pipeline,
    replaced_in_full_batch,
)


def training_pipeline(mechanism: RecordMechanism) -> Pipeline:
    """Return private training on full batches, from records to the update released."""

    def pipeline(raw: FloatArray, source: NoiseSource) -> FloatArray:
        records = torch.tensor(raw[0])
        update = private_sgd(
            _linear_model(),
            _output,
            (records, torch.zeros(len(records))),
            plan=LocalPlan(clip_norm=CLIP_NORM, learning_rate=1.0),
            mechanism=mechanism,
            source=source,
            order=_random.generator(0, "audit-order"),  # a full batch has no order
        )
        return update.value[np.newaxis]

    return pipeline


def replaced_record(rng: np.random.Generator, direction: FloatArray) -> Pair:
    """Return neighbours that differ in one record, and what every epoch of training makes of them."""
    one_step = replaced_in_full_batch(rng, direction)
    expected = LOCAL_EPOCHS * one_step.expected_in, LOCAL_EPOCHS * one_step.expected_out
    return Pair(one_step.held_in, one_step.held_out, *expected)


def _linear_model() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(NUM_PARAMETERS, 1, bias=False, dtype=torch.float64))
    with torch.no_grad():
        next(model.parameters()).zero_()
    return model


def _output(prediction: Tensor, _: Tensor) -> Tensor:
    return prediction.sum()
