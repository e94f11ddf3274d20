"""What the server hears back from a round, as far as a sampler may learn from it.

Norms and distances are taken of updates *as they arrived*, noise and all: post-processing of a release that was charged
for. That is so where every client releases its own update with its own noise. Under secure aggregation or noise added
by the server it is not: there the server has no single update, and a norm is one more private number. Losses, gradient
variances and loss energies are computed from data and are private like the fields of a view. Durations are neither
declared nor asked for: the server observes them.
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
from fedpcs.sampling.view import IntArray, client_indices, needed

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
        local_length: η·(number of local steps): an update divided by it is a pseudo-gradient.
        gradient_variance: (heard,) variance of the client's minibatch gradients; a client with a single batch reports
            what it had last, or is given the others' median.
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
    indices = client_indices("clients", clients)
    local_length = _validate.positive("local_length", local_length)
    if indices.size == 0:
        return Feedback(clients=indices, local_length=local_length)
    share = _shares(data_weight, indices.size)
    if updates is not None:
        arrays = {**arrays, **_of_updates(_validate.matrix("updates", updates, num_rows=indices.size), share)}
    given = arrays.get("noise_power")
    if given is not None and arrays.get("distance_noise_power") is None:
        noise = _validate.vector("noise_power", given, length=indices.size, low=0.0)
        arrays = {**arrays, "distance_noise_power": _distance_noise(noise, share)}
    checked = {
        name: _validate.vector(name, value, length=indices.size, low=-np.inf if name == "loss" else 0.0)
        for name, value in arrays.items()
        if value is not None
    }
    return Feedback(clients=indices, local_length=local_length, **checked)


def overheard(feedback: Feedback, hears: tuple[str, ...]) -> Feedback:
    """Return the feedback without the fields a sampler did not declare."""
    hidden: dict[str, Any] = {name: None for name in HEARD if name not in hears and name != "local_length"}
    return replace(feedback, **hidden)


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
