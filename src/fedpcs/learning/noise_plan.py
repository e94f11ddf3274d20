"""How much noise each client's update will hold, from public numbers alone: budget, data size, the announced plan.

Samplers and weights need it before anyone has trained, admission needs it to tell a noisy update from an absurd one.

σ² is the privacy mode's (`fedpcs.privacy.modes`). On the grid of `secure` and `exact` noise, m units to one σ, σ is
larger by 1/(1 − √d/(m√(2ρ))) with ρ that of one step (`fedpcs.privacy.mechanism`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.client_plan import ClientPlan
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.noise import GRID_PER_STDDEV

_ROUNDING = 1.001  # of an update's norm, taken in float32
_UNIT_ROUNDOFF = 2.0**-24  # of float32


def noise_power(
    plan: ClientPlan, budget: FloatArray, num_samples: NDArray[np.int64], num_parameters: int
) -> FloatArray:
    """Return (clients,) d·σ², the expected squared norm of the noise in each client's update.

    Args:
        plan: How clients train.
        budget: (clients,) ρ of the release, above zero.
        num_samples: (clients,) |D_i|.
        num_parameters: d.

    Example:
        >>> noise_power(ClientPlan(mode="client", clip_norm=1.0), np.array([0.5]), np.array([10]), 3).tolist()
        [12.0]
    """
    mode = plan.protection
    if mode.level is None:
        return np.zeros_like(budget)
    # 0 where the budget is too small for the grid: the mechanism refuses such a release.
    share = np.sqrt(2.0 * budget / _num_shares(plan))
    kept = np.maximum(0.0, 1.0 - _grid_share(plan, num_parameters) / share)
    with np.errstate(divide="ignore"):
        return np.asarray(num_parameters * mode.noise_variance(plan, budget, num_samples) / kept**2)


def _num_shares(plan: ClientPlan) -> int:
    """Return in how many equal parts the budget of a release is spent: every epoch costs a record the same."""
    return plan.local_epochs if plan.has_noisy_steps else 1


def _grid_share(plan: ClientPlan, num_parameters: int) -> float:
    return 0.0 if plan.is_replayable else math.sqrt(num_parameters) / GRID_PER_STDDEV


@dataclass(frozen=True)
class HonestRange:
    """What the norm of an honest update lies between.

    Attributes:
        least: Zero where nothing is known.
        most: Infinite where nothing is clipped.
        is_noisy: Whether there is noise in it that rounding leaves: then no two updates are the same.
    """

    least: float
    most: float
    is_noisy: bool


def honest_range(
    plan: ClientPlan,
    budget: Rho,
    num_samples: int,
    num_parameters: int,
    *,
    model_norm: float = 0.0,
    false_alarm: float = 1e-6,
) -> HonestRange:
    """Return the least and the greatest norm an honest update can have: from public numbers alone.

    Args:
        plan: How clients train; where nothing is clipped or perturbed, every norm can be honest.
        budget: ρ of the release.
        num_samples: |D_i|.
        num_parameters: d.
        model_norm: Norm of the model that was sent out. Large weights round small noisy steps away.
        false_alarm: How often an honest update may fall outside.

    Raises:
        InvalidInput: No mechanism makes a release of so small a budget.

    Example:
        >>> found = honest_range(ClientPlan(mode="client", clip_norm=1.0), Rho.of(0.5), 10, 1000)
        >>> round(found.least, 1), round(found.most, 1)
        (56.4, 71.3)
    """
    mode = plan.protection
    if mode.level is None:
        return HonestRange(0.0, math.inf, False)
    sizes = np.array([num_samples])
    mode.mechanism(plan, budget, num_samples)  # refuses what no client can release
    spent = np.array([float((budget // _num_shares(plan)) * _num_shares(plan))])
    noise = math.sqrt(float(noise_power(plan, spent, sizes, num_parameters)[0]))
    if not math.isfinite(noise):
        raise InvalidInput(
            f"budget must exceed what the grid takes of {num_parameters:,} parameters, got {budget}. Spend more."
        )
    num_steps = int(plan.local_steps(sizes)[0]) if plan.has_noisy_steps else 1
    bound = plan.clip_norm * (plan.learning_rate * num_steps if plan.has_noisy_steps else 1.0)
    claim = NoiseClaim(noise / math.sqrt(num_parameters), bound, is_adaptive=num_steps > 1)
    # Each step is added to float32 weights. √(steps)·noise is more than the sum of the steps' noise, mostly.
    reach = model_norm + bound + 2.0 * math.sqrt(num_steps) * noise
    rounding = _UNIT_ROUNDOFF * num_steps * reach if plan.has_noisy_steps else 0.0
    least, most = honest_norms(num_parameters, claim, false_alarm)
    return HonestRange(max(0.0, least - rounding) / _ROUNDING, (most + rounding) * _ROUNDING, rounding < noise)
