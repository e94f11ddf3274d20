"""Modes that clip the whole update to W and perturb it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Level
from fedpcs.privacy.modes.mode import Canary, Clips, IntArray, Training, Trust

if TYPE_CHECKING:
    from fedpcs.privacy.mechanism import UpdateMechanism


def _one(num_samples: IntArray) -> FloatArray:
    return np.ones(num_samples.shape)


@dataclass(frozen=True)
class UpdateMode:
    """A mode that perturbs whole updates: σ² = 2W²/(ρ·divisor²).

    Attributes:
        name: As run files name it.
        level: Unit and neighbours of the claim.
        promise: Whom it protects and against what.
        canaries: How it is audited.
        divisor: (clients,) numbers of records → what the sensitivity 2W is divided by.
    """

    name: str
    level: Level
    promise: str
    canaries: tuple[Canary, ...]
    divisor: Callable[[IntArray], FloatArray] = _one

    trust: ClassVar[Trust] = "local"
    clips: ClassVar[Clips] = Clips.UPDATE

    def mechanism(self, training: Training, budget: Rho, num_samples: int) -> UpdateMechanism:
        """Return what perturbs an update."""
        from fedpcs.privacy.mechanism import UpdateMechanism

        return UpdateMechanism(budget, self.level, float(self.divisor(np.array([num_samples]))[0]))

    def noise_variance(self, training: Training, budget: FloatArray, num_samples: IntArray) -> FloatArray:
        """Return (clients,) 2W²/(ρ·divisor²)."""
        return np.asarray(2.0 * training.clip_norm**2 / (budget * self.divisor(num_samples) ** 2))
