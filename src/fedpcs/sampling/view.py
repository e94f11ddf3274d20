"""What a sampler may see before it draws, each field marked public or private.

A *public* field is declared or follows from what was declared: data sizes, budgets, the noise a budget calls for. A
*private* field is computed from a client's data. Reading one is a release, which is charged like any other, or else the
run says that it was not: see `disclosure`. Norms of updates that already carry their noise are post-processing of a
charged release; whoever fills the field says so by naming it in `charged`.

Weights are relative to the clients that can be drawn: θ_i = |D_i| / Σ|D_j| over the available ones, zero for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Memory: TypeAlias = Mapping[str, FloatArray]
Question: TypeAlias = Callable[[IntArray], FloatArray]

_PUBLIC, _PRIVATE = {"access": "public"}, {"access": "private"}


@dataclass(frozen=True, kw_only=True)
class View:
    """What the server knows when it draws the cohort of one round; build it with `make_view`.

    Attributes:
        cohort_size: K, how many clients to draw.
        num_samples: (clients,) |D_i|, above zero.
        round_index: t, from zero.
        is_available: (clients,) who can be drawn at all.
        budget: (clients,) zCDP budget ρ_i declared for this round's release.
        noise_power: (clients,) d·σ_i², the expected squared norm of the noise in client i's release.
        label_counts: (clients, classes) how many records of each class a client holds.
        update_norm: (clients,) norm of the update every client has ready; a run gives that of the update as it would be
            sent, clipped, before its noise.
        gradient_distance: (clients,) ζ_i = ‖∇F_i − ∇f‖ at the current model.
        gradient_variance: (clients,) σ_i², variance of a client's minibatch gradient.
        local_steps: (clients,) how many local steps each takes in a round, from its data size and the training plan.
        loss: Local losses at the current model: (clients,), or a function that asks the clients it is given.
        memory: What this sampler kept from earlier rounds.
        charged: Private fields, of this view or of the feedback, released under an accounted mechanism.
    """

    cohort_size: int
    num_samples: FloatArray = field(metadata=_PUBLIC)
    is_available: BoolArray = field(metadata=_PUBLIC)
    round_index: int = 0
    budget: FloatArray | None = field(default=None, metadata=_PUBLIC)
    noise_power: FloatArray | None = field(default=None, metadata=_PUBLIC)
    label_counts: FloatArray | None = field(default=None, metadata=_PRIVATE)
    update_norm: FloatArray | None = field(default=None, metadata=_PRIVATE)
    gradient_distance: FloatArray | None = field(default=None, metadata=_PRIVATE)
    gradient_variance: FloatArray | None = field(default=None, metadata=_PRIVATE)
    local_steps: FloatArray | None = field(default=None, metadata=_PUBLIC)
    loss: FloatArray | Question | None = field(default=None, metadata=_PRIVATE)
    memory: Memory = field(default_factory=dict)
    charged: frozenset[str] = frozenset()

    @property
    def num_clients(self) -> int:
        """N, available or not."""
        return self.num_samples.size

    @cached_property
    def data_weight(self) -> FloatArray:
        """(clients,) θ_i, adding up to one over the available clients; read-only."""
        held = np.where(self.is_available, self.num_samples, 0.0)
        held = held / held.max()  # so that the sum cannot overflow
        share: FloatArray = held / held.sum()
        share.setflags(write=False)
        return share

    def need(self, name: str) -> FloatArray:
        """Return the array `name`, or say how to provide it."""
        return needed(self, name, "This sampler needs {}, which the view lacks. Pass {}=… to make_view.")

    def losses_of(self, clients: IntArray) -> FloatArray:
        """Return the local losses of `clients`, asking nobody else."""
        if callable(self.loss):
            return _validate.vector("loss", self.loss(clients), length=clients.size)
        return np.asarray(self.need("loss")[clients])


ACCESS: Mapping[str, str] = {item.name: item.metadata["access"] for item in fields(View) if item.metadata}


def make_view(
    cohort_size: int,
    num_samples: ArrayLike,
    *,
    is_available: ArrayLike | None = None,
    round_index: int = 0,
    loss: ArrayLike | Question | None = None,
    label_counts: ArrayLike | None = None,
    memory: Memory | None = None,
    charged: Iterable[str] = (),
    **arrays: ArrayLike | None,
) -> View:
    """Return a checked view. `arrays` are the other fields of `View`, each with one number per client.

    Example:
        >>> view = make_view(2, [50, 30, 20], budget=[0.1, 0.5, 2.0])
        >>> view.data_weight.tolist()
        [0.5, 0.3, 0.2]
    """
    sizes = _validate.vector("num_samples", num_samples, low=0.0)
    if not sizes.all():
        index = int(np.flatnonzero(sizes == 0.0)[0])
        raise InvalidInput(f"num_samples[{index}] must be above 0, got 0. Leave out clients without data.")
    known = set(ACCESS) - {"num_samples", "is_available", "loss", "label_counts"}
    if unknown := set(arrays) - known:
        raise InvalidInput(f"A view has no field {min(unknown)!r}; it has {', '.join(sorted(ACCESS))}.")
    checked: dict[str, Any] = {
        name: _validate.vector(name, value, length=sizes.size, low=1.0 if name == "local_steps" else 0.0)
        for name, value in arrays.items()
        if value is not None
    }
    if loss is not None:
        checked["loss"] = loss if callable(loss) else _validate.vector("loss", loss, length=sizes.size)
    if label_counts is not None:
        checked["label_counts"] = _label_counts(label_counts, sizes.size)
    return View(
        cohort_size=_validate.integer("cohort_size", cohort_size, low=1, high=sizes.size),
        num_samples=sizes,
        is_available=_availability(is_available, sizes.size),
        round_index=_validate.integer("round_index", round_index, low=0, high=2**32 - 1),
        memory={} if memory is None else memory,
        charged=_names(charged),
        **checked,
    )


def needed(record: object, name: str, otherwise: str) -> FloatArray:
    """Return a record's array `name`; if it has none, say `otherwise` with the name in it."""
    value = getattr(record, name)
    if not isinstance(value, np.ndarray):
        raise InvalidInput(otherwise.format(name, name))
    return value


def client_indices(name: str, value: ArrayLike) -> IntArray:
    """Return client numbers, checked: whole, distinct, ascending, from zero up."""
    raw = np.asarray(value)
    if raw.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if raw.ndim != 1 or not np.issubdtype(raw.dtype, np.integer):
        raise InvalidInput(f"{name} must be a flat list of whole numbers, got {raw.dtype} of shape {raw.shape}.")
    index = raw.astype(np.int64)
    if not (index[0] >= 0 and (np.diff(index) > 0).all()):
        raise InvalidInput(f"{name} must be distinct, ascending and at least 0, got {raw.tolist()!r}.")
    return index


def restricted(view: View, reads: Iterable[str]) -> View:
    """Return the view without the fields a sampler did not declare; data sizes and availability stay."""
    keep = {"num_samples", "is_available", *reads}
    hidden: dict[str, Any] = {name: None for name in ACCESS if name not in keep}
    return replace(view, **hidden)


def _availability(value: ArrayLike | None, num_clients: int) -> BoolArray:
    if value is None:
        return np.ones(num_clients, dtype=np.bool_)
    try:
        mask = np.array(value)
    except ValueError:  # rows of different lengths
        mask = np.zeros(0)
    if mask.dtype != np.bool_ or mask.shape != (num_clients,):
        raise InvalidInput(f"is_available must be {num_clients} booleans, got {mask.dtype} of shape {mask.shape}.")
    if not mask.any():
        raise InvalidInput("is_available must be true for at least one client, got none. Wait for clients, then draw.")
    return mask


def _names(value: Iterable[str]) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput(f"charged must be a list of field names, got {value!r}.")
    return frozenset(value)


def _label_counts(value: ArrayLike, num_clients: int) -> FloatArray:
    remedy = "One row per client, one column per class; counts released with noise go through usable_counts first."
    counts = _validate.matrix("label_counts", value, num_rows=num_clients, low=0.0, least_columns=2, remedy=remedy)
    if (empty := np.flatnonzero(counts.sum(axis=1) == 0.0)).size:
        raise InvalidInput(f"label_counts[{empty[0]}] must hold at least one record, got none.")
    return counts
