"""Splits of a data set among clients: alike, by label, by shards of sorted labels, or by size.

A split gives every record one owner. "iid" deals records out like cards. "dirichlet" splits each class by its own
shares ~ Dirichlet(α, …, α) over clients: small α gives a class to few clients, large α to all alike. "shards" sorts
records by label, cuts them into equal shards and deals those. "quantity" draws shares of the whole the same way and
gives each client its share of shuffled records, so that clients differ in size and not in kind.

Where shares leave a client with nothing, it is given one record, taken at random from whichever client then has most.
With at least as many records as clients someone has two, so one pass ends it; nothing is drawn again.

References:
    B. McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017.
    M. Yurochkin et al., Bayesian Nonparametric Federated Learning of Neural Networks, arXiv 1905.12022, Section 4.
    Q. Li et al., Federated Learning on Non-IID Data Silos, arXiv 2102.02079.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

IntArray = NDArray[np.int64]

KINDS = ("iid", "dirichlet", "shards", "quantity")
# Beyond these, shares are one-hot or equal to the last record whatever α is.
_LEAST_ALPHA, _MOST_ALPHA = 1e-9, 1e9


def partition(
    kind: str,
    targets: ArrayLike,
    num_clients: int,
    rng: np.random.Generator,
    *,
    alpha: float = 0.5,
    shards_per_client: int = 2,
) -> tuple[IntArray, ...]:
    """Split records among clients.

    Args:
        kind: One of `KINDS`.
        targets: (records,) labels, whole numbers from zero.
        num_clients: How many parts to make; at most one per record.
        rng: Where all draws come from.
        alpha: Evenness of "dirichlet" and "quantity", in [1e-9, 1e9]; the paper's is 0.5.
        shards_per_client: How many shards each client gets in "shards"; McMahan et al.'s is 2.

    Returns:
        For each client, the indices of its records in ascending order.

    Raises:
        InvalidInput: Names the value, what is allowed, and the remedy.

    Guarantees:
        Every record is in exactly one part, no part is empty, and the same generator gives the same parts.

    Example:
        >>> parts = partition("shards", [1, 0, 1, 0], 2, np.random.default_rng(0), shards_per_client=1)
        >>> sorted(part.tolist() for part in parts)
        [[0, 2], [1, 3]]
    """
    kind = _validate.choice("kind", kind, KINDS)
    labels = _labels(targets)
    num_clients = _validate.integer(
        "num_clients", num_clients, low=1, high=labels.size, remedy="Every client needs a record: use fewer clients."
    )
    alpha = _validate.number("alpha", alpha, low=_LEAST_ALPHA, high=_MOST_ALPHA)
    num_shards = num_clients * _validate.integer("shards_per_client", shards_per_client, low=1)
    if kind == "iid":
        owner = rng.permutation(np.arange(labels.size) % num_clients)
    elif kind == "dirichlet":
        owner = _by_label(labels, num_clients, alpha, rng)
    elif kind == "shards":
        owner = _by_shards(labels, num_clients, num_shards, rng)
    else:
        owner = rng.permutation(_cut(labels.size, _shares(num_clients, alpha, rng)))
    return _parts(_fill_empty(owner, num_clients, rng), num_clients)


def label_counts(parts: Sequence[IntArray], targets: ArrayLike, num_classes: int) -> IntArray:
    """Return (clients, classes) how many records of each class each client holds.

    Example:
        >>> label_counts([np.array([0, 1]), np.array([2])], [0, 0, 1], 2).tolist()
        [[2, 0], [0, 1]]
    """
    labels = _labels(targets)
    num_classes = _validate.integer("num_classes", num_classes, low=1)
    if labels.max() >= num_classes:
        raise InvalidInput(
            f"targets must be below num_classes={num_classes}, got {labels.max()}. Count classes from zero."
        )
    return np.array([np.bincount(labels[part], minlength=num_classes) for part in parts], dtype=np.int64)


def _labels(targets: ArrayLike) -> IntArray:
    labels = np.asarray(targets)
    if labels.ndim != 1 or labels.size == 0 or not np.issubdtype(labels.dtype, np.integer):
        raise InvalidInput(
            f"targets must be a flat list of whole numbers, got shape {labels.shape} of {labels.dtype}. "
            "Give one class per record, counted from zero."
        )
    if labels.min() < 0:
        raise InvalidInput(f"targets must be zero or above, got {labels.min()}. Count classes from zero.")
    return labels.astype(np.int64)


def _by_label(labels: IntArray, num_clients: int, alpha: float, rng: np.random.Generator) -> IntArray:
    owner = np.empty(labels.size, dtype=np.int64)
    for label in np.unique(labels):
        records = rng.permutation(np.flatnonzero(labels == label))
        owner[records] = _cut(records.size, _shares(num_clients, alpha, rng))
    return owner


def _by_shards(labels: IntArray, num_clients: int, num_shards: int, rng: np.random.Generator) -> IntArray:
    if num_shards > labels.size:
        raise InvalidInput(
            f"shards_per_client must leave a record for each shard, got {num_shards // num_clients} for {num_clients} "
            f"clients and {labels.size} records. Use fewer shards or fewer clients."
        )
    shuffled = rng.permutation(labels.size)
    by_label = shuffled[np.argsort(labels[shuffled], kind="stable")]
    shard_owner = rng.permutation(np.arange(num_shards) % num_clients)
    owner = np.empty(labels.size, dtype=np.int64)
    owner[by_label] = shard_owner[np.arange(labels.size) * num_shards // labels.size]
    return owner


def _shares(num_clients: int, alpha: float, rng: np.random.Generator) -> FloatArray:
    """Return one draw of Dirichlet(α, …, α), by logarithms so that a tiny α gives a one-hot draw and never 0/0.

    A Gamma(α) variable is Gamma(α + 1)·U^(1/α) (Marsaglia and Tsang 2000), and −log U is exponential.
    """
    log_gamma = np.log(rng.standard_gamma(alpha + 1.0, num_clients)) - rng.standard_exponential(num_clients) / alpha
    weight = np.exp(log_gamma - log_gamma.max())
    return np.asarray(weight / weight.sum())


def _cut(num_records: int, shares: FloatArray) -> IntArray:
    """Return the owners of a row of records cut by shares: client 0's first, each within one record of its share."""
    ends = np.rint(np.cumsum(shares) * num_records).astype(np.int64)
    return np.repeat(np.arange(shares.size), np.diff(ends, prepend=0))


def _fill_empty(owner: IntArray, num_clients: int, rng: np.random.Generator) -> IntArray:
    """Give each client without records one at random from the client that then has most, the first among equals."""
    size = np.bincount(owner, minlength=num_clients)
    largest_first = [(-int(count), client) for client, count in enumerate(size)]
    heapq.heapify(largest_first)
    filled, parts = owner.copy(), _parts(owner, num_clients)
    left = {}
    for empty in np.flatnonzero(size == 0):
        count, giver = largest_first[0]
        heapq.heapreplace(largest_first, (count + 1, giver))
        if giver not in left:
            left[giver] = iter(rng.permutation(parts[giver]))
        filled[next(left[giver])] = empty
    return filled


def _parts(owner: IntArray, num_clients: int) -> tuple[IntArray, ...]:
    by_owner = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=num_clients))
    return tuple(np.split(by_owner, ends[:-1]))
