"""Values with a bound: what a client computed, clipped, carrying the norm that noise will be matched to.

A mechanism takes only these, so a clip norm and a noise scale cannot disagree: there is no second number to type.
Values are kept in float64, where scaling down to a bound and rounding cannot step over it; a release is cast
afterwards.

Rows or updates that are not finite become zero. A zero is within every bound, so privacy holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

# Scaled values are shrunk by this much more, so that rounding in the norm cannot lift them over the bound.
_SHRINK = 1.0 - 2.0**-44
# What a bounded value's norm may exceed its bound by: rounding when the norm is taken again.
_ROUNDING = 2.0**-46
# Bounds between these leave room for σ, a grid of σ/2²⁴ and sums of squares: nothing overflows or turns denormal.
_LEAST_BOUND, _MOST_BOUND = 1e-150, 1e150
_MOST_RECORDS = 10**9
# A sum of squares of which the root is above this has lost nothing to underflow that matters.
_VISIBLE = 1e-140


@dataclass(frozen=True)
class ClippedUpdate:
    """A client's whole update, of norm at most `l2_bound`.

    Attributes:
        value: (parameters,) float64, read-only.
        l2_bound: No data set whatever makes the norm exceed this.
    """

    value: FloatArray
    l2_bound: float

    def __post_init__(self) -> None:
        _check_bound(self.value, self.l2_bound)
        object.__setattr__(self, "value", _sealed(self.value))

    @property
    def sensitivity(self) -> float:
        """How far apart the updates of any two data sets can be."""
        return 2.0 * self.l2_bound


@dataclass(frozen=True)
class ClippedMean:
    """A mean over records, each of norm at most `l2_bound`.

    Attributes:
        value: (parameters,) float64, read-only.
        l2_bound: Bound on one record's contribution, before it is divided by the number of records.
        num_records: What the sum was divided by: the batch size, public.
    """

    value: FloatArray
    l2_bound: float
    num_records: int

    def __post_init__(self) -> None:
        num_records = _checked_count(self.num_records)
        _check_bound(self.value, self.l2_bound, num_additions=num_records)
        object.__setattr__(self, "value", _sealed(self.value))

    @property
    def sensitivity(self) -> float:
        """How far apart the means of two batches can be that differ in one record, replaced by another."""
        # One record changes how every later addition of the sum rounds: by 2⁻⁵³ of a partial sum, itself at most
        # b·C, in each of b additions and on either side. Together b²·2⁻⁵² of C, doubled here.
        return 2.0 * (self.l2_bound / self.num_records * (1.0 + self.num_records**2 * 2.0**-51))


def clip_update(arrays: Sequence[ArrayLike], l2_bound: float) -> ClippedUpdate:
    """Return an update, given as one array for each parameter, scaled down to the bound if it is longer.

    The norm is that of all arrays together. Arrays without dimensions count like any other.

    Guarantees:
        The norm of the result is at most `l2_bound`, whatever the input: NaN, infinities, denormals, float16.

    Example:
        >>> clip_update([[3.0], 4.0], 1.0).value.round(6).tolist()
        [0.6, 0.8]
    """
    bound = _checked_bound(l2_bound)
    if not isinstance(arrays, Sequence):
        raise InvalidInput(f"arrays must be a list, one for each parameter, got {type(arrays).__name__}.")
    parts = [_as_float64(array).ravel() for array in arrays]
    flat = np.concatenate(parts) if parts else np.empty(0)
    if flat.size == 0:
        raise InvalidInput("update must hold at least one parameter, got none. Pass the model's parameters.")
    if not np.isfinite(flat).all():
        return ClippedUpdate(_frozen(np.zeros_like(flat)), bound)
    return ClippedUpdate(_frozen(_scaled_down(flat[np.newaxis], bound)[0]), bound)


def clip_rows(rows: ArrayLike, l2_bound: float, num_records: int | None = None) -> ClippedMean:
    """Return the mean of rows, each scaled down to the bound if it is longer.

    Args:
        rows: (records, parameters), one record's contribution a row.
        l2_bound: Bound on each.
        num_records: What to divide the sum by, if not by the number of rows: the batch size announced beforehand.

    Example:
        >>> clip_rows([[30.0, 40.0], [0.0, 0.5]], 1.0).value.round(6).tolist()
        [0.3, 0.65]
    """
    bound = _checked_bound(l2_bound)
    matrix = _as_float64(rows)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InvalidInput(
            f"rows must be (records, parameters), got shape {matrix.shape}. Pass one row for each record."
        )
    divisor = max(len(matrix), 1) if num_records is None else _checked_count(num_records)
    if divisor < len(matrix):
        raise InvalidInput(f"num_records must be at least {len(matrix)}, the number of rows, got {divisor}.")
    is_finite = np.asarray(np.isfinite(matrix).all(axis=1))
    clipped = _scaled_down(np.where(is_finite[:, np.newaxis], matrix, 0.0), bound)
    return ClippedMean(_frozen(clipped.sum(axis=0) / divisor), bound, divisor)


def bounded_mean(clipped_sum: FloatArray, l2_bound: float, num_records: int) -> ClippedMean:
    """Return a sum of already clipped contributions as their mean; checked against the bound it can at most have."""
    divisor = _checked_count(num_records)
    mean = _as_float64(clipped_sum)  # a copy
    mean /= divisor
    return ClippedMean(_frozen(mean), _checked_bound(l2_bound), divisor)


def _scaled_down(rows: FloatArray, bound: float) -> FloatArray:
    # Divide by the largest entry first: squares of 1e200 or 1e-200 would overflow or vanish.
    largest = np.abs(rows).max(axis=1, initial=0.0)
    unit = np.divide(rows, largest[:, np.newaxis], out=np.zeros_like(rows), where=largest[:, np.newaxis] > 0.0)
    unit_norm = _norms(unit)
    is_long = largest > (bound / np.maximum(unit_norm, 1.0)) * _SHRINK
    factor = np.divide(bound * _SHRINK, unit_norm, out=np.zeros_like(largest), where=unit_norm > 0.0)
    return np.where(is_long[:, np.newaxis], unit * factor[:, np.newaxis], rows)


def _norms(rows: FloatArray) -> FloatArray:
    # np.sum adds in pairs along rows in memory order: its error grows with the logarithm of their length, where that
    # of einsum or dot grows with the length and passes _SHRINK at 200,000 parameters.
    return np.asarray(np.sqrt(np.sum(np.square(rows), axis=1)))


def _as_float64(array: ArrayLike) -> FloatArray:
    try:
        raw = np.asarray(array)
    except (RuntimeError, TypeError, ValueError) as error:  # ragged, or a tensor that requires gradients
        raise InvalidInput(f"values to clip must be arrays of real numbers: {error}") from error
    if raw.dtype == np.bool_ or not (np.issubdtype(raw.dtype, np.number) and np.isrealobj(raw)):
        raise InvalidInput(f"values to clip must be real numbers, got dtype {raw.dtype}. Convert them first.")
    return raw.astype(np.float64, order="C")


def _checked_bound(l2_bound: float) -> float:
    remedy = "Noise is scaled by it; set it near the median norm of what is clipped."
    return _validate.number("l2_bound", l2_bound, low=_LEAST_BOUND, high=_MOST_BOUND, remedy=remedy)


def _checked_count(num_records: int) -> int:
    return _validate.integer("num_records", num_records, low=1, high=_MOST_RECORDS)


def _check_bound(value: FloatArray, l2_bound: float, num_additions: int = 0) -> None:
    bound = _checked_bound(l2_bound)
    if not (isinstance(value, np.ndarray) and value.dtype == np.float64 and value.ndim == 1 and value.size > 0):
        raise InvalidInput(
            f"value must be a flat array of float64, got {type(value).__name__}. Make it with clip_update or clip_rows."
        )
    if value.flags.writeable:
        raise InvalidInput("value must be read-only, or it could outgrow its bound. Make it with clip_update.")
    # einsum, not dot: BLAS would start threads that go on spinning beside torch's.
    rough = math.sqrt(float(np.einsum("i,i->", value, value)))
    if _VISIBLE < rough <= 0.999 * bound:  # no rounding in the sum of squares comes near a thousandth
        return
    largest = float(np.abs(value).max())
    if not math.isfinite(largest):
        norm = largest
    else:
        norm = largest * float(_norms(value[np.newaxis] / largest)[0]) if largest > 0.0 else 0.0
    if not norm <= bound * (1.0 + _ROUNDING + num_additions * 2.0**-52):
        raise InvalidInput(
            f"value must have a norm of at most l2_bound = {bound!r}, got {norm!r}. Make it with clip_update or "
            "clip_rows."
        )


def _sealed(value: FloatArray) -> FloatArray:
    """Return a value nobody can write to, so that a bound once checked holds for good: a copy if it is not ours."""
    return value if isinstance(value.base, memoryview) else _frozen(value.copy())


def _frozen(value: FloatArray) -> FloatArray:
    """Return an array of ours as one that cannot be made writeable again."""
    return np.frombuffer(np.ascontiguousarray(value).data.toreadonly(), dtype=np.float64)
