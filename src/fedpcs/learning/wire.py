"""A report as bytes, and a task as JSON, for boundaries that do not share memory. Nothing received is ever executed.

    magic (8) | header length (4, big-endian) | header: JSON | values, little-endian | BLAKE2b of all before (16)

`decode` checks length, digest and every field before it builds anything, and refuses what it does not know; Python's
pickle has no part in it. Whether the report is *right* is decided by `fedpcs.learning.admission`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import MEASURES, ClientReport, Task
from fedpcs.privacy.budget import Rho

MAGIC = b"fedpcs\x001"
_DIGEST_BYTES = 16
_LENGTH = struct.Struct(">I")
_MOST_HEADER_BYTES = 2**20
_FIELDS = {
    "run": str,
    "round_index": int,
    "client": int,
    "nonce": str,
    "budget": int | None,
    "num_samples": int,
    "names": list,
    "shapes": list,
    "dtype": str,
    "measures": dict,
}
_TASK_FIELDS = {
    "run": str,
    "round_index": int,
    "client": int,
    "nonce": str,
    "budget": int | None,
    "measures": list,
    "max_samples": int | None,
}
_MOST_NAME = 1000


class MessageRefused(InvalidInput):
    """Bytes that are not a report."""


def header_of(report: ClientReport) -> dict[str, Any]:
    """Return all of a report but its values, as JSON can hold it."""
    return {
        "run": report.run,
        "round_index": report.round_index,
        "client": report.client,
        "nonce": report.nonce,
        "budget": None if report.budget is None else report.budget.nanos,
        "num_samples": report.num_samples,
        "names": list(report.layout.names),
        "shapes": [list(shape) for shape in report.layout.shapes],
        "dtype": str(report.values.dtype),
        "measures": dict(report.measures),
    }


def encode(report: ClientReport) -> bytes:
    """Return a report as bytes.

    Example:
        >>> layout = Layout(("weight",), ((2,),))
        >>> report = ClientReport("run", 0, 3, "nonce", None, 10, layout, np.array([1.0, 2.0], np.float32))
        >>> decode(encode(report)).values.tolist()
        [1.0, 2.0]
    """
    header = json.dumps(header_of(report)).encode()
    values = np.ascontiguousarray(report.values)
    body = b"".join([MAGIC, _LENGTH.pack(len(header)), header, values.astype(values.dtype.newbyteorder("<")).tobytes()])
    return body + _digest(body)


def decode(message: bytes, most_bytes: int = 2**31) -> ClientReport:
    """Return the report that `encode` made these bytes of.

    Raises:
        MessageRefused: They are too many, cut short, damaged, or something else altogether.
    """
    if len(message) > most_bytes:
        raise MessageRefused(f"message must have at most {most_bytes:,} bytes, got {len(message):,}.")
    start = len(MAGIC) + _LENGTH.size
    if len(message) < start + _DIGEST_BYTES or message[: len(MAGIC)] != MAGIC:
        raise MessageRefused(f"message must begin as a fedpcs report, got {bytes(message[:8])!r}.")
    if _digest(message[:-_DIGEST_BYTES]) != message[-_DIGEST_BYTES:]:
        raise MessageRefused("message is damaged: its digest does not match.")
    (length,) = _LENGTH.unpack(message[len(MAGIC) : start])
    if not length <= min(_MOST_HEADER_BYTES, len(message) - start - _DIGEST_BYTES):
        raise MessageRefused(f"message is cut short: its header would have {length:,} bytes.")
    header = parse_header(message[start : start + length])
    payload = message[start + length : -_DIGEST_BYTES]
    if header["dtype"] not in ("float32", "float64", "float16", "int32", "int64") or len(payload) % 8 not in (
        0,
        2,
        4,
        6,
    ):
        raise MessageRefused(f"values must be numbers of a known type, got {header['dtype'][:40]!r}.")
    kind = np.dtype(header["dtype"]).newbyteorder("<")
    if len(payload) % kind.itemsize:
        raise MessageRefused(f"values must fill whole numbers, got {len(payload):,} bytes of {kind}.")
    return report_of(header, np.frombuffer(payload, kind).astype(header["dtype"]))


def parse_header(text: bytes) -> dict[str, Any]:
    """Return a header whose fields all have the right type.

    Raises:
        MessageRefused: It is not one.
    """
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise MessageRefused("message's header is not JSON.") from None
    if not (isinstance(header, dict) and set(header) >= set(_FIELDS)):
        raise MessageRefused("message's header lacks fields of a report.")
    for name, kind in _FIELDS.items():
        if not isinstance(header[name], kind) or isinstance(header[name], bool):
            raise MessageRefused(f"header's {name} is a {type(header[name]).__name__}.")
    are_names = all(isinstance(name, str) for name in header["names"])
    if not (are_names and all(_is_shape(shape) for shape in header["shapes"])):
        raise MessageRefused("header's layout must be names and shapes.")
    if not (header["budget"] is None or 0 <= header["budget"] < 2**63):
        raise MessageRefused(f"header's budget must be billionths of at least 0, got {str(header['budget'])[:40]}.")
    return header


def report_of(header: dict[str, Any], values: np.ndarray[Any, Any]) -> ClientReport:
    """Return the report of a parsed header and its values."""
    return ClientReport(
        header["run"],
        header["round_index"],
        header["client"],
        header["nonce"],
        None if header["budget"] is None else Rho(header["budget"]),
        header["num_samples"],
        Layout(tuple(header["names"]), tuple(tuple(shape) for shape in header["shapes"])),
        values,
        header["measures"],
    )


def task_values(task: Task) -> dict[str, Any]:
    """Return a task as JSON can hold it."""
    return {
        "run": task.run,
        "round_index": task.round_index,
        "client": task.client,
        "nonce": task.nonce,
        "budget": None if task.budget is None else task.budget.nanos,
        "measures": list(task.measures),
        "max_samples": task.max_samples,
    }


def task_of(values: Any) -> Task:
    """Return the task these values describe.

    Raises:
        MessageRefused: They describe none.
    """
    if not (isinstance(values, dict) and set(values) == set(_TASK_FIELDS)):
        raise MessageRefused(f"a task must have the fields {', '.join(_TASK_FIELDS)} and no others.")
    for name, kind in _TASK_FIELDS.items():
        if not isinstance(values[name], kind) or isinstance(values[name], bool):
            raise MessageRefused(f"a task's {name} must not be a {type(values[name]).__name__}.")
    for name in ("round_index", "client", "budget"):
        if values[name] is not None:
            _validate.integer(f"a task's {name}", values[name], low=0, high=2**63 - 1)
    if values["max_samples"] is not None:
        _validate.integer("a task's max_samples", values["max_samples"], low=1)
    for name in ("run", "nonce"):
        if len(values[name]) > _MOST_NAME:
            raise MessageRefused(f"a task's {name} must have at most {_MOST_NAME} characters.")
    for measure in values["measures"]:
        _validate.choice("a task's measure", measure, MEASURES)
    budget = values["budget"]
    return Task(
        values["run"],
        values["round_index"],
        values["client"],
        values["nonce"],
        None if budget is None else Rho(budget),
        tuple(values["measures"]),
        values["max_samples"],
    )


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
