"""What a reward policy returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray

Policy = Literal["commitment", "per-round", "fixed"]


@dataclass(frozen=True)
class RewardPlan:
    """The rewards to announce and how they came about.

    Attributes:
        path: (rounds,) R_t.
        policy: Which policy chose it.
        is_settled: Whether the policy's own iteration came to rest; a per-round path usually does not.
        is_interior: (rounds,) whether R_t solves a first-order condition rather than sits at 0 or reward_max;
            None where no such condition was solved.
        evaluations: How many mean-field equilibria were computed to find it.
    """

    path: FloatArray
    policy: Policy
    is_settled: bool = True
    is_interior: NDArray[np.bool_] | None = None
    evaluations: int = 0
