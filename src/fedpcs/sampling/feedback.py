"""What the server hears back from a round, as far as a sampler may learn from it.

Norms and distances are taken of updates *as they arrived*, noise and all: post-processing of a release that was charged
for. Losses, gradient variances and loss energies are computed from data and are private like the fields of a view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.view import IntArray

_RELEASED, _PUBLIC, _PRIVATE = {"access": "released"}, {"access": "public"}, {"access": "private"}


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What came back from the clients that answered; build it with `make_feedback`.

    Attributes:
        clients: (heard,) distinct, ascending.
        update_norm: (heard,) norm of the update as it arrived.
        update_distance: (heard,) its distance from the cohort's mean weighted by data.
        noise_power: (heard,) d·σ_i² of the noise in it; none if absent.
        distance_noise_power: (heard,) expected square of what the noise adds to the distance.
        local_length: η·(number of local steps): an update divided by it is a pseudo-gradient.
        gradient_variance: (heard,) variance of the client's minibatch gradients.
        loss: (heard,) mean training loss.
        loss_energy: (heard,) mean of squared losses of the client's records.
        duration: (heard,) seconds from task to answer.
    """

    clients: IntArray
    local_length: float = field(default=1.0, metadata=_PUBLIC)
    update_norm: FloatArray | None = field(default=None, metadata=_RELEASED)
    update_distance: FloatArray | None = field(default=None, metadata=_RELEASED)
    noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    distance_noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    gradient_variance: FloatArray | None = field(default=None, metadata=_PRIVATE)
    loss: FloatArray | None = field(default=None, metadata=_PRIVATE)
    loss_energy: FloatArray | None = field(default=None, metadata=_PRIVATE)
    duration: FloatArray | None = field(default=None, metadata=_PUBLIC)

    def need(self, name: str) -> FloatArray:
        """Return the array `name`, or say how to provide it."""
        value = getattr(self, name)
        if not isinstance(value, np.ndarray):
            raise InvalidInput(
                f"This sampler learns from {name}, which the feedback lacks. Pass {name}=… to make_feedback."
            )
        return value


HEARD: Mapping[str, str] = {item.name: item.metadata["access"] for item in fields(Feedback) if item.metadata}


def make_feedback(
    clients: ArrayLike,
    *,
    updates: ArrayLike | None = None,
    data_weight: FloatArray | None = None,
    local_length: float = 1.0,
    **arrays: ArrayLike | None,
) -> Feedback:
    """Return checked feedback. `arrays` are the other fields of `Feedback`, each with one number per client heard.

    Args:
        clients: (heard,) distinct, ascending.
        updates: (heard, parameters) as they arrived; norms and distances are computed from them.
        data_weight: (heard,) relative weights of the mean the distances are from; equal if absent.
        local_length: Local learning rate times number of local steps.
        arrays: The fields of `Feedback` by name.
    """
    names = set(HEARD) - {"local_length"}
    if unknown := set(arrays) - names:
        raise InvalidInput(f"Feedback has no field {min(unknown)!r}; it has {', '.join(sorted(names))}.")
    indices = _indices(clients)
    if indices.size == 0:
        return Feedback(clients=indices)
    if updates is not None:
        share = _shares(data_weight, indices.size)
        arrays = {**arrays, **_of_updates(_validate.matrix("updates", updates, num_rows=indices.size), share)}
        if (noise := arrays.get("noise_power")) is not None:
            arrays["distance_noise_power"] = _distance_noise(np.asarray(noise, dtype=np.float64), share)
    checked = {
        name: _validate.vector(name, value, length=indices.size, low=-np.inf if name == "loss" else 0.0)
        for name, value in arrays.items()
        if value is not None
    }
    return Feedback(clients=indices, local_length=_validate.positive("local_length", local_length), **checked)


def overheard(feedback: Feedback, hears: tuple[str, ...]) -> Feedback:
    """Return the feedback without the fields a sampler did not declare."""
    hidden: dict[str, Any] = {name: None for name in HEARD if name not in hears and name != "local_length"}
    return replace(feedback, **hidden)


def without_noise(norm: FloatArray, noise_power: FloatArray | None) -> FloatArray:
    """Return √max(norm² − noise power, 0): what a norm would be without the noise, on average of squares."""
    if noise_power is None:
        return norm
    noise_norm = np.sqrt(noise_power)
    return np.asarray(np.sqrt(np.maximum(norm - noise_norm, 0.0)) * np.sqrt(norm + noise_norm))


def _indices(clients: ArrayLike) -> IntArray:
    raw = np.asarray(clients)
    is_empty = raw.shape == (0,)
    if not (is_empty or (raw.ndim == 1 and np.issubdtype(raw.dtype, np.integer))):
        raise InvalidInput(f"clients must be a flat list of whole numbers, got {raw.dtype} of shape {raw.shape}.")
    if not is_empty and not (raw[0] >= 0 and (np.diff(raw) > 0).all()):
        raise InvalidInput(f"clients must be distinct, ascending and at least 0, got {raw.tolist()!r}.")
    return raw.astype(np.int64)


def _shares(data_weight: FloatArray | None, num_heard: int) -> FloatArray:
    if data_weight is None:
        return np.full(num_heard, 1.0 / num_heard)
    weight = _validate.vector("data_weight", data_weight, length=num_heard, low=0.0)
    if not weight.any():
        raise InvalidInput("data_weight must be above 0 for at least one client, got only zeros.")
    return np.asarray(weight / weight.sum())


def _of_updates(updates: FloatArray, share: FloatArray) -> dict[str, FloatArray]:
    with np.errstate(over="ignore"):  # a norm too large for a float is refused as infinite
        distance = np.linalg.norm(updates - share @ updates, axis=1)
        return {"update_norm": np.linalg.norm(updates, axis=1), "update_distance": distance}


def _distance_noise(noise_power: FloatArray, share: FloatArray) -> FloatArray:
    """Return E‖n_i − Σ s_j n_j‖² = (1 − 2s_i)·v_i + Σ s_j² v_j."""
    return np.asarray((1.0 - 2.0 * share) * noise_power + share**2 @ noise_power)
