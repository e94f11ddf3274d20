"""How much noise each client's update will hold, from public numbers alone: budget, data size, the announced plan.

Samplers and weights need it before anyone has trained, admission needs it to tell a noisy update from an absurd one.

    paper    σ² = 2W²/(ρ|D|²)
    client   σ² = 2W²/ρ
    record   σ² = η² E Σ_batches (2C/b)² E/(2ρ)     noise of every local step, batches of b records

On the grid of `secure` and `exact` noise, m units to one σ, σ is larger by 1/(1 − √d/(m√(2ρ))) with ρ that of one step
(`fedpcs.privacy.mechanism`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.releases import source_of
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.mechanism import noise_stddev
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
    if plan.mode == "none":
        return np.zeros_like(budget)
    epochs = plan.local_epochs if plan.mode == "record" else 1
    # 0 where the budget is too small for the grid: the mechanism refuses such a release.
    kept = np.maximum(0.0, 1.0 - _grid_share(plan, num_parameters) / np.sqrt(2.0 * budget / epochs))
    with np.errstate(divide="ignore"):
        return np.asarray(num_parameters * _variance(plan, budget, num_samples) / kept**2)


def _variance(plan: ClientPlan, budget: FloatArray, sizes: NDArray[np.int64]) -> FloatArray:
    num_samples = sizes.astype(np.float64)  # squares of whole numbers would overflow
    if plan.mode == "client":
        return np.asarray(2.0 * plan.clip_norm**2 / budget)
    if plan.mode == "paper":
        return np.asarray(2.0 * plan.clip_norm**2 / (budget * num_samples**2))
    size = num_samples if plan.batch_size is None else np.minimum(num_samples, plan.batch_size)
    num_full, rest = np.divmod(num_samples, size)
    inverse_squares = num_full / size**2 + np.where(rest > 0, 1.0 / np.maximum(rest, 1) ** 2, 0.0)
    one_epoch = (2.0 * plan.clip_norm) ** 2 * inverse_squares * plan.local_epochs / (2.0 * budget)
    return np.asarray(plan.learning_rate**2 * plan.local_epochs * one_epoch)


def _grid_share(plan: ClientPlan, num_parameters: int) -> float:
    return 0.0 if plan.noise == "fast" else math.sqrt(num_parameters) / GRID_PER_STDDEV


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
    """Return the least and the greatest norm an honest update can have: what `check_noise` goes by, from the plan.

    Args:
        plan: How clients train; in mode `none` nothing is clipped or perturbed, and every norm can be honest.
        budget: ρ of the release.
        num_samples: |D_i|.
        num_parameters: d.
        model_norm: Norm of the model that was sent out. In mode `record` large weights round small steps away.
        false_alarm: How often an honest update may fall outside.

    Raises:
        InvalidInput: No mechanism makes a release of so small a budget.

    Example:
        >>> found = honest_range(ClientPlan(mode="client", clip_norm=1.0), Rho.of(0.5), 10, 1000)
        >>> round(found.least, 1), round(found.most, 1)
        (56.4, 71.3)
    """
    if plan.mode == "none":
        return HonestRange(0.0, math.inf, False)
    claim, rounding = _claim(plan, budget, num_samples, num_parameters), 0.0
    if plan.mode == "record":
        num_steps = _num_steps(plan, num_samples)
        noise = math.sqrt(num_steps * num_parameters) * claim.noise_stddev  # more than Σ of the steps' noise, mostly
        rounding = _UNIT_ROUNDOFF * num_steps * (model_norm + claim.signal_bound + 2.0 * noise)
    least, most = honest_norms(num_parameters, claim, false_alarm)
    is_noisy = rounding < math.sqrt(num_parameters) * claim.noise_stddev
    return HonestRange(max(0.0, least - rounding) / _ROUNDING, (most + rounding) * _ROUNDING, is_noisy)


def _claim(plan: ClientPlan, budget: Rho, num_samples: int, num_parameters: int) -> NoiseClaim:
    """Return what an honest update is made of, σ as the mechanism takes it."""
    source, bound = source_of(plan), plan.clip_norm
    if plan.mode == "client":
        return NoiseClaim(noise_stddev(2.0 * bound, budget, num_parameters, source), bound)
    if plan.mode == "paper":
        return NoiseClaim(noise_stddev(2.0 * bound / num_samples, budget, num_parameters, source), bound)
    size = num_samples if plan.batch_size is None else min(num_samples, plan.batch_size)
    num_full, rest = divmod(num_samples, size)
    variance = sum(
        count * noise_stddev(2.0 * bound / batch, budget // plan.local_epochs, num_parameters, source) ** 2
        for count, batch in ((num_full, size), (1, rest))
        if batch > 0
    )
    num_steps = _num_steps(plan, num_samples)
    return NoiseClaim(
        plan.learning_rate * math.sqrt(plan.local_epochs * variance),
        plan.learning_rate * bound * num_steps,
        is_adaptive=num_steps > 1,
    )


def _num_steps(plan: ClientPlan, num_samples: int) -> int:
    return int(plan.local_steps(np.array([num_samples]))[0])
