"""Compiled loops over the parameters of a model. They release the GIL, and add in one order whatever calls them."""

from __future__ import annotations

from typing import Any

from numba import njit
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.learning.layout import Values


@njit(cache=True, nogil=True)
def add_four(
    total: FloatArray, first: Values, second: Values, third: Values, fourth: Values, weight: FloatArray
) -> None:
    """Add four weighted arrays to `total` in place, in float64, one after the other: four for one pass over `total`."""
    for index in range(total.size):
        running = total[index]
        running += weight[0] * first[index]
        running += weight[1] * second[index]
        running += weight[2] * third[index]
        running += weight[3] * fourth[index]
        total[index] = running


@njit(cache=True, nogil=True)
def move(moved: Values, values: Values, direction: FloatArray, rate: float) -> None:
    """Write values − rate·direction to `moved`, in float64 until it is rounded."""
    for index in range(moved.size):
        moved[index] = values[index] - rate * direction[index]


@njit(cache=True, nogil=True)
def add_to_spread(mean: FloatArray, values: NDArray[Any], count: int) -> float:
    """Move a running mean by the `count`-th array of values, in place; return what the sum of squares grows by."""
    grown = 0.0
    for index in range(mean.size):
        away = values[index] - mean[index]
        mean[index] += away / count
        grown += away * (values[index] - mean[index])
    return grown
