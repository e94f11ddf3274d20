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

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.learning.client import ClientPlan
from fedpcs.privacy.noise import GRID_PER_STDDEV

# A Gaussian of d coordinates is longer than σ(√d + t) with probability at most exp(−t²/2): less than 1e-21 at ten.
_TAIL = 10.0
_ROUNDING = 1.001  # of float32


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


def _variance(plan: ClientPlan, budget: FloatArray, num_samples: NDArray[np.int64]) -> FloatArray:
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


def largest_norm(plan: ClientPlan, budget: float, num_samples: int, num_parameters: int) -> float:
    """Return the largest norm an honest update can have; infinite where nothing is clipped."""
    if plan.mode == "none":
        return math.inf
    signal = plan.clip_norm
    if plan.mode == "record":
        signal = plan.learning_rate * plan.clip_norm * int(plan.local_steps(np.array([num_samples]))[0])
    power = float(noise_power(plan, np.array([budget]), np.array([num_samples]), num_parameters)[0])
    return (signal + math.sqrt(power) * (1.0 + _TAIL / math.sqrt(num_parameters))) * _ROUNDING
