"""Norms of updates as samplers keep them: without the noise known to be in them, and from round to round."""

from __future__ import annotations

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.sampling.feedback import Feedback
from fedpcs.sampling.view import Memory


def without_noise(norm: FloatArray, noise_power: FloatArray | None) -> FloatArray:
    """Return √max(norm² − noise power, 0): what a norm would be without the noise, on average of squares."""
    if noise_power is None:
        return norm
    noise_norm = np.sqrt(noise_power)
    return np.asarray(np.sqrt(np.maximum(norm - noise_norm, 0.0)) * np.sqrt(norm + noise_norm))


def unknown_norms(num_clients: int) -> Memory:
    """Return the memory of a sampler that has heard nobody yet."""
    return {"norm": np.full(num_clients, np.nan)}


def heard_norms(memory: Memory, feedback: Feedback, *, subtract_noise: bool) -> Memory:
    """Return the memory with the norms of those who answered."""
    norm = memory["norm"].copy()
    if feedback.clients.size:
        noise = feedback.need("noise_power") if subtract_noise else None
        norm[feedback.clients] = without_noise(feedback.need("update_norm"), noise)
    return {"norm": norm}


def filled(norm: FloatArray, otherwise: float = 1.0) -> FloatArray:
    """Return norms with the mean of the known ones in place of the unknown (NaN); `otherwise` if none is known."""
    is_known = ~np.isnan(norm)
    return np.where(is_known, norm, norm[is_known].mean() if is_known.any() else otherwise)
