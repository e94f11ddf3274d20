"""How every client trains and protects itself: the announced numbers, and what follows from them. It needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs import _validate
from fedpcs.learning.protocol import Task, budget_of
from fedpcs.privacy.events import Event
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism
from fedpcs.privacy.modes import mode_named
from fedpcs.privacy.modes.mode import Clips, PrivacyMode
from fedpcs.privacy.modes.no_privacy import NO_PRIVACY
from fedpcs.privacy.noise import NAMES, NoiseSource, noise_source


@dataclass(frozen=True)
class ClientPlan:
    """How every client trains and protects itself; announced before the first round.

    Attributes:
        seed: Of batches, and of the noise if it is `fast`.
        mode: Of privacy, by name: one of `fedpcs.privacy.modes.MODES`; see docs/guarantees.md.
        learning_rate: Step size.
        batch_size: b; None: all records at once.
        local_epochs: E.
        clip_norm: W of the update, or C of a record's gradient in mode `record`.
        noise: `fast` (seeded, for simulation), `secure` or `exact`.
        device: Where training and evaluation run: `cpu`, `cuda`, `cuda:N` or `mps`. Noise is always drawn on the CPU.
    """

    seed: int = 0
    mode: str = NO_PRIVACY.name
    learning_rate: float = 0.1
    batch_size: int | None = 32
    local_epochs: int = 1
    clip_norm: float = 1.0
    noise: str = "fast"
    device: str = "cpu"

    def __post_init__(self) -> None:
        _validate.integer("seed", self.seed, low=0)
        mode_named(self.mode)
        _validate.positive("learning_rate", self.learning_rate)
        if self.batch_size is not None:
            _validate.integer("batch_size", self.batch_size, low=1, remedy="Leave it out to use all records at once.")
        _validate.integer("local_epochs", self.local_epochs, low=1)
        _validate.positive("clip_norm", self.clip_norm, remedy="Set it near the median norm of what is clipped.")
        _validate.choice("noise", self.noise, NAMES)
        _validate.device("device", self.device)

    @property
    def is_perturbed(self) -> bool:
        """Whether releases carry noise and cost budget."""
        return self.protection.level is not None

    @property
    def protection(self) -> PrivacyMode:
        """The privacy mode."""
        return mode_named(self.mode)

    @property
    def has_noisy_steps(self) -> bool:
        """Whether every local step is clipped and perturbed, and not the update."""
        return self.protection.clips is Clips.GRADIENTS

    @property
    def is_replayable(self) -> bool:
        """Whether a release made again is the same, bit for bit: its noise comes from a seed."""
        return self.noise == "fast"

    def source(self) -> NoiseSource:
        """Return a source of the kind the noise comes from, to describe releases with."""
        return noise_source(self.noise, seed=0 if self.is_replayable else None)

    def noise_for(self, task: Task) -> NoiseSource:
        """Return where the noise of the answer to a task comes from."""
        seed = self.seed if self.is_replayable else None
        return noise_source(self.noise, seed=seed, round_index=task.round_index, client=task.client)

    def mechanism(self, task: Task, num_samples: int) -> UpdateMechanism | RecordMechanism:
        """Return what perturbs the answer to a task."""
        return self.protection.mechanism(self, budget_of(task), num_samples)

    def release_event(self, task: Task, num_samples: int, source: NoiseSource) -> Event:
        """Return what answering a task costs: the same in the server's ledger and in the client's own."""
        return self.mechanism(task, num_samples).event(source)

    def local_steps(self, num_samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return (clients,) how many steps clients with so many records take in a round: epochs × batches.

        Example:
            >>> ClientPlan(batch_size=20, local_epochs=3).local_steps(np.array([10, 64, 30])).tolist()
            [3, 12, 6]
        """
        size = num_samples if self.batch_size is None else np.minimum(num_samples, self.batch_size)
        return np.asarray(self.local_epochs * -(-num_samples // size))
