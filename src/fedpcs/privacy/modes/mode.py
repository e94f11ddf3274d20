"""What a privacy mode is: one object that says whom it protects, what it clips, what noise it adds and what it costs.

Client, server, admission, ledger, pages, doctor and audit ask it. What learning must do differently follows from what
a mode clips (`Clips`), never from its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Level

if TYPE_CHECKING:
    from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism

IntArray = NDArray[np.int64]
# Against whom a mode holds. `local`: noise is added before anything leaves the client, so against the server too;
# `sum`: the server sees sums of updates alone; `aggregator`: the server adds the noise.
Trust = Literal["local", "sum", "aggregator"]


class Clips(StrEnum):
    """What is bounded on the client before noise is added."""

    NOTHING = "nothing"
    UPDATE = "the update"
    GRADIENTS = "every record's gradient"


class Neighbours(StrEnum):
    """Which pair of inputs an audit tries a mode on; `fedpcs.studies.audit.canaries` makes them."""

    OPPOSITE_UPDATES = "opposite updates"
    RELABELLED_RECORD = "one record relabelled, several local epochs"
    REPLACED_IN_FULL_BATCH = "one record of a full batch replaced, one step"
    REPLACED_RECORD = "one record replaced, step by step"
    REPLACED_RECORD_TRAINED = "one record replaced, a whole training"


@dataclass(frozen=True)
class Canary:
    """One audit of a mode.

    Attributes:
        name: As `fedpcs audit --mode` takes it.
        neighbours: What it tries.
        remark: What a reader should know of the outcome.
    """

    name: str
    neighbours: Neighbours
    remark: str = ""


class Training(Protocol):
    """The announced numbers of local training that noise depends on."""

    @property
    def clip_norm(self) -> float:
        """W of the update, or C of a record's gradient."""

    @property
    def learning_rate(self) -> float:
        """Step size."""

    @property
    def batch_size(self) -> int | None:
        """b; None: all records at once."""

    @property
    def local_epochs(self) -> int:
        """E."""


class PrivacyMode(Protocol):
    """A privacy mode. Make one and `fedpcs.privacy.modes.register` it: nothing else has to know."""

    @property
    def name(self) -> str:
        """As run files name it."""

    @property
    def level(self) -> Level | None:
        """Unit and neighbours of the claim; None: nothing is protected, no noise is added and nothing is charged."""

    @property
    def trust(self) -> Trust:
        """Against whom it holds."""

    @property
    def clips(self) -> Clips:
        """What is bounded before noise is added."""

    @property
    def promise(self) -> str:
        """Whom the mechanism protects and against what, in one or two sentences."""

    @property
    def canaries(self) -> tuple[Canary, ...]:
        """How it is audited."""

    def mechanism(self, training: Training, budget: Rho, num_samples: int) -> UpdateMechanism | RecordMechanism:
        """Return what perturbs releases and says what they cost: whole updates, or steps where gradients are clipped.

        Raises:
            InvalidInput: It makes no release of this budget, or none at all.
        """

    def noise_variance(self, training: Training, budget: FloatArray, num_samples: IntArray) -> FloatArray:
        """Return (clients,) σ² in each parameter of the update sent, for noise without a grid."""
