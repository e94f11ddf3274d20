"""What a stock Flower client reports of itself: the metrics of its replies, read and checked.

metric             is                                                         used by
num-examples       |D_i|                                                      all; required, as by FedAvg
budget             ρ_i it will spend if drawn next; 0: it is drawn no more    `fedpcs`
noise-power        d·σ_i² of the noise in its model; 0 if not told            `optimal`, the rule `precision`
label-counts       a list, its records of each class                          `fed-cbs`
train_loss         its mean training loss                                     `power-of-choice`
loss-energy        mean of its records' squared losses                        `oort`
local-steps        how many steps it took                                     `delta`, unless score is authors-code
gradient-variance  of its minibatch gradients                                 the same, unless variance_ratio is 0
duration           seconds it took; all are alike if nobody tells             `oort`
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Message

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.engines.flower.named_arrays import MOST
from fedpcs.errors import InvalidInput

Reported = Mapping[str, Any]

MEASURES = ("loss", "loss_energy", "gradient_variance", "duration")
MAY_BE_SILENT = frozenset({"noise_power", "duration"})
# Fields of a view or of feedback → the metric that tells them.
METRICS: Mapping[str, str] = {
    **{field: field.replace("_", "-") for field in ("budget", "noise_power", "label_counts", "local_steps", *MEASURES)},
    "loss": "train_loss",
}
_MOST_RECORDS = 2**53  # whole numbers beyond are not told apart as floats


def metric_names(others: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the metric of each field, some of them under other names."""
    if unknown := sorted(set(others or {}) - set(METRICS)):
        raise InvalidInput(f"metric_names has no field {unknown[0]!r}; it may name {', '.join(METRICS)}.")
    return {**METRICS, **(others or {})}


def read(reply: Message, size_name: str, names: Mapping[str, str], wanted: Collection[str]) -> Reported:
    """Return what a reply tells, by field, if it can be true.

    Args:
        reply: From a client.
        size_name: The metric that counts its records.
        names: Of the other metrics, by field.
        wanted: Fields to read.

    Raises:
        InvalidInput: It is an error, or lacks what it must hold, or holds what cannot be.
    """
    if reply.has_error():
        raise InvalidInput(" ".join(str(reply.error.reason or "its client app failed.").split()))
    records = reply.content.metric_records
    if len(records) != 1:
        raise InvalidInput(f"reply must hold one MetricRecord, got {len(records)}.")
    (record,) = records.values()
    reported: dict[str, Any] = {"num_samples": _whole(size_name, record.get(size_name))}
    for field, name in names.items():
        if field in wanted and name in record:
            reported[field] = _checked(field, name, record[name])
    if isinstance(record.get("partition-id"), int):
        reported["partition-id"] = record["partition-id"]
    return reported


def column(reported: Sequence[Reported], field: str) -> FloatArray:
    """Return (clients,) what each told of a field; NaN where it told nothing."""
    return np.array([one.get(field, np.nan) for one in reported], dtype=np.float64)


def label_counts(reported: Sequence[Reported]) -> FloatArray:
    """Return (clients, classes): the mean for who has not told; classes that a client does not list, it has not."""
    known = {client: one["label_counts"] for client, one in enumerate(reported) if "label_counts" in one}
    table = np.zeros((len(reported), max([2, *map(len, known.values())])))
    for client, counts in known.items():
        table[client, : len(counts)] = counts
    mean = table.sum(axis=0) / len(known) if known else np.ones(table.shape[1])
    return np.where(np.isin(np.arange(len(table)), list(known))[:, None], table, mean)


def unreported(reported: Sequence[Reported], needed: Collection[str]) -> str | None:
    """Return a field that is needed and that nobody tells, once two clients or all have been heard; None if none is."""
    heard = [one for one in reported if one]
    if len(heard) < min(2, len(reported)):
        return None
    missing = (field for field in needed if not any(field in one for one in heard))
    return min(missing, default=None)


def _whole(name: str, value: Any) -> float:
    count = _validate.number(name, value, low=1.0, high=_MOST_RECORDS)
    if not count.is_integer():
        raise InvalidInput(f"{name} must be a whole number, got {count!r}.")
    return count


def _checked(field: str, name: str, value: Any) -> Any:
    """Return what a metric tells of a field, if it can be true."""
    if field == "local_steps":
        return _whole(name, value)
    if field != "label_counts":
        return _validate.number(name, value, low=-MOST if field == "loss" else 0.0, high=MOST)
    counts = _validate.vector(name, value, low=0.0, high=_MOST_RECORDS)
    if not counts.any():
        raise InvalidInput(f"{name} must count at least one record, got none.")
    return counts
