"""How much noise each client's update will hold, from public numbers alone: budget, data size, the announced plan.

Samplers and weights need it before anyone has trained, admission needs it to tell a noisy update from an absurd one.

    paper    σ² = 2W²/(ρ|D|²)
    client   σ² = 2W²/ρ
    record   σ² = η² E Σ_batches (2C/b)² E/(2ρ)     noise of every local step, batches of b records

On the grid of `secure` and `exact` noise σ is larger by less than 0.1 % in ordinary cases; the mechanism itself has the
exact number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.learning.client import ClientPlan

# A Gaussian of d coordinates is longer than σ(√d + t) with probability at most exp(−t²/2): less than 1e-21 at ten.
_TAIL = 10.0
_ROUNDING = 1.001  # the grid of secure noise, and float32


def noise_variance(plan: ClientPlan, budget: FloatArray, num_samples: NDArray[np.int64]) -> FloatArray:
    """Return (clients,) σ² of the noise in each coordinate of a client's update.

    Args:
        plan: How clients train.
        budget: (clients,) ρ of the release, above zero.
        num_samples: (clients,) |D_i|.

    Example:
        >>> noise_variance(ClientPlan(mode="client", clip_norm=1.0), np.array([0.5]), np.array([10])).tolist()
        [4.0]
    """
    if plan.mode == "none":
        return np.zeros_like(budget)
    if plan.mode == "client":
        return np.asarray(2.0 * plan.clip_norm**2 / budget)
    if plan.mode == "paper":
        return np.asarray(2.0 * plan.clip_norm**2 / (budget * num_samples**2))
    size = num_samples if plan.batch_size is None else np.minimum(num_samples, plan.batch_size)
    num_full, rest = np.divmod(num_samples, size)
    inverse_squares = num_full / size**2 + np.where(rest > 0, 1.0 / np.maximum(rest, 1) ** 2, 0.0)
    one_epoch = (2.0 * plan.clip_norm) ** 2 * inverse_squares * plan.local_epochs / (2.0 * budget)
    return np.asarray(plan.learning_rate**2 * plan.local_epochs * one_epoch)


def largest_norm(plan: ClientPlan, budget: float, num_samples: int, num_parameters: int) -> float:
    """Return the largest norm an honest update can have; infinite where nothing is clipped."""
    if plan.mode == "none":
        return math.inf
    signal = plan.clip_norm
    if plan.mode == "record":
        size = num_samples if plan.batch_size is None else min(plan.batch_size, num_samples)
        signal = plan.learning_rate * plan.clip_norm * plan.local_epochs * math.ceil(num_samples / size)
    stddev = math.sqrt(float(noise_variance(plan, np.array([budget]), np.array([num_samples]))[0]))
    return (signal + stddev * (math.sqrt(num_parameters) + _TAIL)) * _ROUNDING
