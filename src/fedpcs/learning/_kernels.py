"""Compiled loops over the parameters of a model. They release the GIL, and add in one order whatever calls them."""

from __future__ import annotations

from numba import njit

from fedpcs._validate import FloatArray
from fedpcs.learning.layout import Values


@njit(cache=True, nogil=True)
def add_scaled(total: FloatArray, values: Values, weight: float) -> None:
    """Add weight·values to `total` in place, in float64."""
    for index in range(total.size):
        total[index] += weight * values[index]


@njit(cache=True, nogil=True)
def move(moved: Values, values: Values, direction: FloatArray, rate: float) -> None:
    """Write values − rate·direction to `moved`, in float64 until it is rounded."""
    for index in range(moved.size):
        moved[index] = values[index] - rate * direction[index]
