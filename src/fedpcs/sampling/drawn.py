"""A draw: who is in the cohort, how likely each client was to be, and how many clients each one stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.sampling.designs import Cohort, draw_cohort
from fedpcs.sampling.view import IntArray, View, client_indices


@dataclass(frozen=True)
class Draw:
    """One round's cohort. Weights multiply updates, never parameters: those of one round need not add up to one.

    Attributes:
        clients: (cohort,) distinct, ascending. Empty only under designs of random size.
        weights: (cohort,) the sampler's own weights: unbiased where the design allows it, else its paper's.
        inclusion: (clients,) probability π_i of being in the cohort; None if nobody knows it.
        expansion: (cohort,) how many clients each drawn one stands for, with E[1{i drawn}·expansion_i] = 1: 1/π_i, or
            what the design has in its place. None if the sampler is biased by intention.
        draw_probability: (clients,) x_i of one draw, adding up to one; None if the sampler has none.
        num_draws: How many draws were made: K, fewer if fewer could be drawn, Σπ where the size is random.
        times: (cohort,) how often each client was drawn; None if draws do not repeat.
        survival: (cohort,) how likely each was to answer; None before `arrived` has corrected for drop-outs.
        label: What a report must say of how the cohort was selected; see `Disclosure.label`.
    """

    clients: IntArray
    weights: FloatArray
    inclusion: FloatArray | None
    expansion: FloatArray | None
    draw_probability: FloatArray | None
    num_draws: float
    times: IntArray | None = None
    survival: FloatArray | None = None
    label: str = ""


def draw_by_size(view: View, size: FloatArray, design: str, rng: np.random.Generator) -> Draw:
    """Draw clients in proportion to `size`, as `design` does it, with unbiased weights θ_i·expansion_i.

    Clients that are not available have size zero. If nobody else has a size either, all available ones are alike. A
    client of size zero among others that have one is never drawn: give it one unless its update is known to be zero.
    """
    size = np.where(view.is_available, _validate.vector("size", size, length=view.num_clients, low=0.0), 0.0)
    size = size / size.max() if size.any() else view.is_available.astype(np.float64)
    return weighed(view, draw_cohort(design, size, view.cohort_size, rng), size / size.sum())


def weighed(view: View, cohort: Cohort, draw_probability: FloatArray) -> Draw:
    """Return a cohort as a draw with unbiased weights."""
    return Draw(
        clients=cohort.clients,
        weights=view.data_weight[cohort.clients] * cohort.expansion,
        inclusion=cohort.inclusion,
        expansion=cohort.expansion,
        draw_probability=draw_probability,
        num_draws=float(cohort.inclusion.sum() if cohort.times is None else cohort.times.sum()),
        times=cohort.times,
    )


def mixed_with_uniform(size: FloatArray, is_available: np.ndarray, share: float) -> FloatArray:
    """Return x_i = (1 − share)·size_i/Σsize + share/N over the available clients, so that nobody starves."""
    size = np.where(is_available, size, 0.0)
    uniform = is_available / np.count_nonzero(is_available)
    if not size.any():
        return np.asarray(uniform)
    size = size / size.max()  # so that the sum cannot overflow
    return np.asarray((1.0 - share) * size / size.sum() + share * uniform)


def biased_draw(clients: IntArray, weights: FloatArray) -> Draw:
    """Return the draw of a sampler that is biased by intention and knows no inclusion probabilities.

    Args:
        clients: (cohort,) distinct, in any order.
        weights: (cohort,) of the clients' updates, in the same order.
    """
    members, weight = np.asarray(clients), np.asarray(weights, dtype=np.float64)
    order = np.argsort(members, kind="stable")
    return Draw(members[order], weight[order], None, None, None, float(members.size))


def share_by_size(view: View, clients: IntArray) -> FloatArray:
    """Return θ_i / Σθ over the cohort: federated averaging's weights."""
    held = view.num_samples[clients] / view.num_samples[clients].max(initial=1.0)  # so that the sum cannot overflow
    return np.asarray(held / held.sum())


def check_draw(draw: Draw, view: View) -> Draw:
    """Return the draw if it keeps a sampler's promises, or say which one it breaks."""
    if not isinstance(draw, Draw):
        raise InvalidInput(f"A sampler must return a Draw, got {draw!r}. See draw_by_size and biased_draw.")
    clients = draw.clients
    is_array = isinstance(clients, np.ndarray)
    if not is_array or client_indices("A draw's clients", clients).max(initial=-1) >= view.num_clients:
        raise InvalidInput(f"A draw's clients must be an array in [0, {view.num_clients - 1}], got {clients!r}.")
    if not view.is_available[clients].all():
        raise InvalidInput("A draw holds a client that is not available. Give it size 0, or leave it out.")
    if draw.weights is None or not (np.isfinite(draw.num_draws) and (draw.num_draws > 0.0 or clients.size == 0)):
        got = f"{draw.weights!r}, {draw.num_draws!r}"
        raise InvalidInput(f"A draw must have weights, and num_draws above 0, got {got}.")
    for name in ("weights", "expansion"):
        _check_array(name, getattr(draw, name), clients.size, "finite numbers of at least 0", 0.0, np.finfo(float).max)
    _check_array("times", draw.times, clients.size, "numbers of at least 1", 1.0, np.inf)
    for name in ("inclusion", "draw_probability"):
        _check_array(name, getattr(draw, name), view.num_clients, "numbers in [0, 1]", 0.0, 1.0)
    if draw.inclusion is not None and draw.inclusion.sum() > view.cohort_size * (1.0 + 1e-6):
        most, got = view.cohort_size, f"{draw.inclusion.sum():g}"
        raise InvalidInput(f"A draw's inclusion must add up to at most the cohort size {most}, got {got}.")
    if draw.inclusion is None and clients.size > view.cohort_size:
        raise InvalidInput(f"A draw must hold at most {view.cohort_size} clients, got {clients.size}.")
    if draw.draw_probability is not None and not abs(draw.draw_probability.sum() - 1.0) < 1e-6:
        raise InvalidInput(f"A draw's draw_probability must add up to one, got {draw.draw_probability.sum():g}.")
    return draw


def _check_array(name: str, value: object, length: int, allowed: str, low: float, high: float) -> None:
    is_array = isinstance(value, np.ndarray) and value.shape == (length,)
    if value is not None and not (is_array and ((np.asarray(value) >= low) & (np.asarray(value) <= high)).all()):
        raise InvalidInput(f"A draw's {name} must be an array of {length} {allowed}, got {value!r}.")
