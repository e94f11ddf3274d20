"""What the server hears back from a round, as far as a sampler may learn from it.

Norms and distances are taken of updates *as they arrived*, noise and all: post-processing of a release that was charged
for. That is so where every client releases its own update with its own noise. Under secure aggregation or noise added
by the server it is not: there the server has no single update, and a norm is one more private number. Losses, gradient
variances and loss energies are computed from data and are private like the fields of a view. Durations are neither
declared nor asked for: the server observes them.

A *pseudo-gradient* is an update over η·(the client's local steps): it has the units of a gradient, however many steps
a client takes. A measure that no client told is an error, never a zero; one that a single client
had none of is given the others' median. What is known of a client that was not heard stays as it was.
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
from fedpcs.sampling.view import IntArray, Memory, client_indices, needed

_RELEASED, _PUBLIC = {"access": "released"}, {"access": "public"}
_OBSERVED, _PRIVATE = {"access": "observed"}, {"access": "private"}


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """What came back from the clients that answered; build it with `make_feedback`.

    Attributes:
        clients: (heard,) distinct, ascending.
        update_norm: (heard,) norm of the update as it arrived.
        update_distance: (heard,) its distance from the cohort's mean weighted by data.
        noise_power: (heard,) d·σ_i² of the noise in it; zeros if it has none.
        distance_noise_power: (heard,) expected square of what the noise adds to the distance.
        local_steps: (heard,) how many local steps it took, from its data size and the training plan.
        gradient_distance: (heard,) distance of its pseudo-gradient from the cohort's mean weighted by data.
        gradient_noise_power: (heard,) expected square of what the noise adds to that.
        gradient_variance: (heard,) variance of the gradients its steps used, around their mean; 0 of a client whose
            every step takes all its records.
        loss: (heard,) mean training loss.
        loss_energy: (heard,) mean of squared losses of the client's records.
        duration: (heard,) seconds from task to answer.
    """

    clients: IntArray
    update_norm: FloatArray | None = field(default=None, metadata=_RELEASED)
    update_distance: FloatArray | None = field(default=None, metadata=_RELEASED)
    noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    distance_noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    local_steps: FloatArray | None = field(default=None, metadata=_PUBLIC)
    gradient_distance: FloatArray | None = field(default=None, metadata=_RELEASED)
    gradient_noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    gradient_variance: FloatArray | None = field(default=None, metadata=_PRIVATE)
    loss: FloatArray | None = field(default=None, metadata=_PRIVATE)
    loss_energy: FloatArray | None = field(default=None, metadata=_PRIVATE)
    duration: FloatArray | None = field(default=None, metadata=_OBSERVED)

    def need(self, name: str) -> FloatArray:
        """Return the array `name`, or say how to provide it."""
        return needed(self, name, "This sampler learns from {}, which the feedback lacks. Pass {}=… to make_feedback.")


HEARD: Mapping[str, str] = {item.name: item.metadata["access"] for item in fields(Feedback) if item.metadata}


def make_feedback(
    clients: ArrayLike,
    *,
    updates: ArrayLike | None = None,
    data_weight: FloatArray | None = None,
    learning_rate: float = 1.0,
    **arrays: ArrayLike | None,
) -> Feedback:
    """Return checked feedback. `arrays` are the other fields of `Feedback`, each with one number per client heard.

    Args:
        clients: (heard,) distinct, ascending.
        updates: (heard, parameters) as they arrived; norms and distances are computed from them.
        data_weight: (heard,) relative weights of the mean the distances are from; equal if absent.
        learning_rate: η of the local steps; with `local_steps`, what is said of pseudo-gradients is computed.
        arrays: The fields of `Feedback` by name.
    """
    if unknown := set(arrays) - set(HEARD):
        raise InvalidInput(f"Feedback has no field {min(unknown)!r}; it has {', '.join(sorted(HEARD))}.")
    indices = client_indices("clients", clients)
    if indices.size == 0:
        return Feedback(clients=indices)
    share = _shares(data_weight, indices.size)
    steps, rate = arrays.get("local_steps"), _validate.positive("learning_rate", learning_rate)
    length = None if steps is None else rate * _validate.vector("local_steps", steps, length=indices.size, low=1.0)
    if updates is not None:
        rows = _validate.matrix("updates", updates, num_rows=indices.size)
        arrays = {**arrays, "update_norm": _norms(rows), "update_distance": _norms(rows - share @ rows)}
        if length is not None:
            rows = rows / length[:, None]
            arrays = {**arrays, "gradient_distance": _norms(rows - share @ rows)}
    if (given := arrays.get("noise_power")) is not None:
        noise = _validate.vector("noise_power", given, length=indices.size, low=0.0)
        computed = {"distance_noise_power": _distance_noise(noise, share)}
        if length is not None:
            computed["gradient_noise_power"] = _distance_noise(noise / length**2, share)
        arrays = {**computed, **{name: value for name, value in arrays.items() if value is not None}}
    checked = {
        name: _validate.vector(name, value, length=indices.size, low=-np.inf if name == "loss" else 0.0)
        for name, value in arrays.items()
        if value is not None
    }
    return Feedback(clients=indices, **checked)


def overheard(feedback: Feedback, hears: tuple[str, ...]) -> Feedback:
    """Return the feedback without the fields a sampler did not declare."""
    hidden: dict[str, Any] = {name: None for name in HEARD if name not in hears}
    return replace(feedback, **hidden)


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


def _shares(data_weight: FloatArray | None, num_heard: int) -> FloatArray:
    if data_weight is None:
        return np.full(num_heard, 1.0 / num_heard)
    weight = _validate.vector("data_weight", data_weight, length=num_heard, low=0.0)
    if not weight.any():
        raise InvalidInput("data_weight must be above 0 for at least one client, got only zeros.")
    return np.asarray(weight / weight.sum())


def _norms(rows: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # a norm too large for a float is refused as infinite
        return np.asarray(np.linalg.norm(rows, axis=1))


def _distance_noise(noise_power: FloatArray, share: FloatArray) -> FloatArray:
    """Return E‖n_i − Σ s_j n_j‖² = (1 − 2s_i)·v_i + Σ s_j² v_j."""
    return np.asarray((1.0 - 2.0 * share) * noise_power + share**2 @ noise_power)
