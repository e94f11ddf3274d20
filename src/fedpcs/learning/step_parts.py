"""What a round's aggregate is made of: what clients agree on, what they differ by, and their noise.

Client i's update is u_i = μ + a deviation of mean square δ² + noise of power p_i, and the aggregate is Σ w_i u_i, with
Σ w_i = 1. Then E Σ w_i‖u_i − Σ w_j u_j‖² = Σ w_i (1 − w_i)(δ² + p_i), and the left side is Σ w_i‖u_i‖² − ‖Σ w_i u_i‖²,
which needs no second look at the updates. What is left of the aggregate's squared norm when both kinds of error are
taken out is that of μ. All three are estimates from one round, cut off at zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedpcs._validate import FloatArray


@dataclass(frozen=True)
class StepParts:
    """Norms of an aggregate's parts, before momentum and the server's rate.

    Attributes:
        signal: Of μ, what all clients have in common.
        spread: Root mean square of what is due to clients differing: the error of the draw.
        noise: Root mean square of what is due to noise.
    """

    signal: float
    spread: float
    noise: float


def step_parts(norms: FloatArray, noise_power: FloatArray, weights: FloatArray, direction_norm: float) -> StepParts:
    """Take an aggregate apart.

    Args:
        norms: (heard,) ‖u_i‖, noise included.
        noise_power: (heard,) p_i.
        weights: (heard,) w_i; their sum may be other than one.
        direction_norm: ‖Σ w_i u_i‖.

    Example:
        >>> import numpy as np
        >>> step_parts(np.array([5.0, 5.0]), np.array([9.0, 9.0]), np.array([0.5, 0.5]), np.sqrt(20.5))
        StepParts(signal=4.0, spread=0.0, noise=2.1213203435596424)
    """
    total = float(weights.sum())
    if total <= 0.0:
        return StepParts(0.0, 0.0, 0.0)
    share = weights / total
    apart = float(share @ norms**2) - (direction_norm / total) ** 2
    inner = share * (1.0 - share)
    whole = float(inner.sum())
    δ2 = max((apart - float(inner @ noise_power)) / whole, 0.0) if whole > 0.0 else 0.0
    noise, spread = float(weights**2 @ noise_power), float(δ2 * (weights**2).sum())
    return StepParts(math.sqrt(max(direction_norm**2 - noise - spread, 0.0)), math.sqrt(spread), math.sqrt(noise))
