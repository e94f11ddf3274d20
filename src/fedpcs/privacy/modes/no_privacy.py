"""Mode `none`: updates leave clients as they are, and nothing is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes.mode import Canary, Clips, IntArray, Training, Trust


@dataclass(frozen=True)
class NoPrivacy:
    """The mode without privacy."""

    name: ClassVar[str] = "none"
    level: ClassVar[None] = None
    trust: ClassVar[Trust] = "local"
    clips: ClassVar[Clips] = Clips.NOTHING
    promise: ClassVar[str] = ""
    canaries: ClassVar[tuple[Canary, ...]] = ()

    def mechanism(self, training: Training, budget: Rho, num_samples: int) -> NoReturn:
        """Refuse: there is no mechanism."""
        raise InvalidInput("privacy mode must protect something for a release to be charged, got 'none'.")

    def noise_variance(self, training: Training, budget: FloatArray, num_samples: IntArray) -> FloatArray:
        """Return (clients,) zeros."""
        return np.zeros_like(budget)


NO_PRIVACY = NoPrivacy()
