"""A report as bytes, and a task as JSON, for boundaries that do not share memory. Nothing received is ever executed.

    magic (8) | header length (4, big-endian) | header: JSON | values, little-endian | BLAKE2b of all before (16)

`decode` checks length, digest and the type of every field before it builds anything; Python's pickle has no part in it.
Whether the report is *right* is decided by `fedpcs.learning.admission`.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import MEASURES, ClientReport, Task
from fedpcs.privacy.budget import Rho

MAGIC = b"fedpcs\x001"
_DIGEST_BYTES = 16
_START = len(MAGIC) + 4
_MOST_HEADER_BYTES = 2**20

_Whole = Annotated[int, Field(ge=0, lt=2**63)]
_Name = Annotated[str, Field(max_length=1000)]


class MessageRefused(InvalidInput):
    """Bytes that are not a report."""


class ReportHeader(BaseModel):
    """All of a report but its values; fields as in `ClientReport`, the budget in billionths."""

    model_config = ConfigDict(strict=True, frozen=True)

    run: str
    round_index: int
    client: int
    nonce: str
    budget: _Whole | None
    num_samples: int
    names: tuple[str, ...]
    shapes: tuple[tuple[Annotated[int, Field(ge=0)], ...], ...]
    dtype: Literal["float32", "float64", "float16", "int32", "int64"]
    measures: dict[str, Any]


class _TaskFields(BaseModel):
    """The fields of a `Task`, the budget in billionths."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    run: _Name
    round_index: _Whole
    client: _Whole
    nonce: _Name
    budget: _Whole | None
    measures: list[Literal[MEASURES]]  # type: ignore[valid-type]
    max_samples: Annotated[int, Field(ge=1)] | None


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
    values = report.values.astype(report.values.dtype.newbyteorder("<")).tobytes()
    body = MAGIC + struct.pack(">I", len(header)) + header + values
    return body + _digest(body)


def decode(message: bytes, most_bytes: int = 2**31) -> ClientReport:
    """Return the report that `encode` made these bytes of.

    Raises:
        MessageRefused: They are too many, cut short, damaged, or something else altogether.
    """
    if len(message) > most_bytes:
        raise MessageRefused(f"message must have at most {most_bytes:,} bytes, got {len(message):,}.")
    if len(message) < _START + _DIGEST_BYTES or message[: len(MAGIC)] != MAGIC:
        raise MessageRefused(f"message must begin as a fedpcs report, got {bytes(message[:8])!r}.")
    body = message[:-_DIGEST_BYTES]
    if _digest(body) != message[-_DIGEST_BYTES:]:
        raise MessageRefused("message is damaged: its digest does not match.")
    length = int.from_bytes(body[len(MAGIC) : _START], "big")
    if length > min(_MOST_HEADER_BYTES, len(body) - _START):
        raise MessageRefused(f"message is cut short: its header would have {length:,} bytes.")
    header, values = parse_header(body[_START : _START + length]), body[_START + length :]
    kind = np.dtype(header.dtype).newbyteorder("<")
    if len(values) % kind.itemsize:
        raise MessageRefused(f"values must fill whole numbers, got {len(values):,} bytes of {kind}.")
    return report_of(header, np.frombuffer(values, kind).astype(header.dtype))


def parse_header(text: bytes) -> ReportHeader:
    """Return a header whose fields all have the right type.

    Raises:
        MessageRefused: It is not one.
    """
    try:
        return ReportHeader.model_validate_json(text)
    except ValidationError as error:
        raise _refused("header", error) from None


def report_of(header: ReportHeader, values: np.ndarray[Any, Any]) -> ClientReport:
    """Return the report of a parsed header and its values."""
    return ClientReport(
        run=header.run,
        round_index=header.round_index,
        client=header.client,
        nonce=header.nonce,
        budget=None if header.budget is None else Rho(header.budget),
        num_samples=header.num_samples,
        layout=Layout(header.names, header.shapes),
        values=values,
        measures=header.measures,
    )


def task_values(task: Task) -> dict[str, Any]:
    """Return a task as JSON can hold it."""
    budget = None if task.budget is None else task.budget.nanos
    return {**asdict(task), "budget": budget, "measures": list(task.measures)}


def task_of(values: Any) -> Task:
    """Return the task these values describe.

    Raises:
        MessageRefused: They describe none.
    """
    try:
        found = _TaskFields.model_validate(values)
    except ValidationError as error:
        raise _refused("task", error) from None
    budget = None if found.budget is None else Rho(found.budget)
    return Task(**{**dict(found), "budget": budget, "measures": tuple(found.measures)})


def _refused(what: str, error: ValidationError) -> MessageRefused:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"][:2])) or "text"
    return MessageRefused(f"a {what}'s {where[:80]!r} is wrong: {first['msg'][:200]}.")


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
