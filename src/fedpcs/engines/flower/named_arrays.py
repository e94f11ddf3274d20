"""A user's model as Flower carries it, arrays by name, and as one vector, which is what our server functions take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, RecordDict
from numpy.typing import NDArray

from fedpcs.errors import InvalidInput
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.wire import MessageRefused

MOST = 1e100  # no honest number is larger, and squares of those below are floats


def array_of(array: Array) -> NDArray[Any]:
    """Return an array as it was sent.

    Flower's own `numpy()` lets NumPy allocate whatever the array's header claims, 400 GB for 64 bytes. Here the header
    must claim exactly the bytes that follow it.

    Raises:
        MessageRefused: It does not, or there is no array of numbers.
    """
    data = BytesIO(array.data)
    try:
        if array.stype != "numpy.ndarray" or np.lib.format.read_magic(data) != (1, 0):
            raise ValueError
        shape, is_fortran, kind = np.lib.format.read_array_header_1_0(data)
        start = data.tell()
        if kind.kind not in "fiub" or math.prod(shape) * kind.itemsize != len(array.data) - start:
            raise ValueError
        return np.frombuffer(array.data, kind, offset=start).reshape(shape, order="F" if is_fortran else "C").copy()
    except Exception:  # bytes from elsewhere: whatever reading them raises, they are no array
        raise MessageRefused("an array cannot be read: its header is not that of the numbers that follow.") from None


def flat(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return all numbers as one vector: float32, or float64 if they are not all float32."""
    is_single = all(array.dtype == np.float32 for array in arrays.values())
    return np.concatenate([array.ravel() for array in arrays.values()], dtype=np.float32 if is_single else np.float64)


def update_of(
    arrays: Mapping[str, NDArray[Any]], values: NDArray[Any], content: RecordDict
) -> tuple[NDArray[Any], float]:
    """Return w − w_i as one vector, and its norm; raise if the reply holds no model of this make."""
    records = content.array_records
    if len(records) != 1:
        raise InvalidInput(f"reply must hold one ArrayRecord, got {len(records)}.")
    (record,) = records.values()
    if odd := sorted(set(record) ^ set(arrays)):
        raise InvalidInput(f"key {odd[0][:80]!r} is {'missing' if odd[0] in arrays else 'none of the model'}.")
    update, first = np.empty_like(values), 0
    for name, wanted in arrays.items():
        part, last = array_of(record[name]), first + wanted.size
        if part.shape != wanted.shape or part.dtype != wanted.dtype:
            raise InvalidInput(
                f"key {name!r} is {part.dtype} of shape {part.shape}, expected {wanted.dtype} of {wanted.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(values[first:last], part.ravel(), out=update[first:last])
        first = last
    norm = l2_norm(update)
    if not norm <= MOST:
        bad = [name for name in arrays if not np.isfinite(array_of(record[name])).all()]
        raise InvalidInput(f"key {bad[0]!r} holds numbers that are not finite." if bad else f"norm is {norm:.4g}.")
    return update, norm


def record_of(like: Mapping[str, NDArray[Any]], values: NDArray[Any]) -> ArrayRecord:
    """Return a vector as arrays of these names, shapes and types; whole numbers are rounded."""
    arrays, first = {}, 0
    for name, wanted in like.items():
        part = values[first : first + wanted.size]
        part = part if wanted.dtype.kind == "f" else np.rint(part)
        arrays[name] = Array(part.astype(wanted.dtype).reshape(wanted.shape))
        first += wanted.size
    return ArrayRecord(arrays)
