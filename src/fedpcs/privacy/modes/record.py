"""Mode `record`: each record is protected. Its gradient is clipped to C, and every local step is perturbed.

A step over b records has sensitivity 2C/b. An epoch's batches share no record, so each epoch may cost ρ/E, and

    σ² = η² E Σ_batches (2C/b)² E/(2ρ)    in the update, η the learning rate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import RECORD_LEVEL, Level
from fedpcs.privacy.modes.mode import Canary, Clips, IntArray, Neighbours, Training, Trust

if TYPE_CHECKING:
    from fedpcs.privacy.mechanism import RecordMechanism


@dataclass(frozen=True)
class RecordMode:
    """The mode that perturbs every step of local training."""

    name: ClassVar[str] = "record"
    level: ClassVar[Level] = RECORD_LEVEL
    trust: ClassVar[Trust] = "local"
    clips: ClassVar[Clips] = Clips.GRADIENTS
    promise: ClassVar[str] = (
        "The mechanism protects each record: a client's releases look alike when one of its records is replaced. "
        "The number of its records is public."
    )
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("record", Neighbours.REPLACED_RECORD),
        Canary("record-training", Neighbours.REPLACED_RECORD_TRAINED),
    )

    def mechanism(self, training: Training, budget: Rho, num_samples: int) -> RecordMechanism:
        """Return what perturbs every step of a training."""
        from fedpcs.privacy.mechanism import RecordMechanism

        return RecordMechanism(budget, training.local_epochs)

    def noise_variance(self, training: Training, budget: FloatArray, num_samples: IntArray) -> FloatArray:
        """Return (clients,) the variance of all steps' noise together."""
        sizes = num_samples.astype(np.float64)  # squares of whole numbers would overflow
        size = sizes if training.batch_size is None else np.minimum(sizes, training.batch_size)
        num_full, rest = np.divmod(sizes, size)
        inverse_squares = num_full / size**2 + np.where(rest > 0, 1.0 / np.maximum(rest, 1) ** 2, 0.0)
        one_epoch = (2.0 * training.clip_norm) ** 2 * inverse_squares * training.local_epochs / (2.0 * budget)
        return np.asarray(training.learning_rate**2 * training.local_epochs * one_epoch)


RECORD = RecordMode()
