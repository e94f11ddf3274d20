"""Checks on values that come from outside: reject NaN first, then range; name, value and range in every message.

Each check asks "is it good?" because NaN fails every comparison. `bool` is not a number here: `True` as a
budget is a mistake, not a one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedpcs._outside import shown
from fedpcs.errors import InvalidInput

FloatArray = NDArray[np.float64]


def number(name: str, value: Any, *, low: float = -math.inf, high: float = math.inf, remedy: str = "") -> float:
    """Return `value` as a finite float in [low, high].

    Example:
        >>> number("sampling_ratio", 0.2, low=0.0, high=1.0)
        0.2
    """
    result = math.nan
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        with suppress(OverflowError):  # a whole number too long for a float
            result = float(value)
    if not (math.isfinite(result) and low <= result <= high):
        raise InvalidInput(_sentence(name, value, f"a number {_interval(low, high)}", remedy))
    return result


def positive(name: str, value: Any, *, remedy: str = "") -> float:
    """Return `value` as a finite float above zero."""
    result = number(name, value, remedy=remedy)
    if not result > 0.0:
        raise InvalidInput(_sentence(name, value, "a number above 0", remedy))
    return result


def integer(name: str, value: Any, *, low: int, high: int | None = None, remedy: str = "") -> int:
    """Return `value` as an int in [low, high]."""
    is_whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not (is_whole and value >= low and (high is None or value <= high)):
        allowed = f"a whole number {_interval(low, math.inf if high is None else high)}"
        raise InvalidInput(_sentence(name, value, allowed, remedy))
    return int(value)


def boolean(name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(_sentence(name, value, "true or false", ""))
    return bool(value)


def choice(name: str, value: Any, options: Iterable[str], *, or_else: str = "") -> str:
    """Return `value` if it is one of `options`; `or_else` names what the caller would take too, for the message."""
    known = tuple(options)
    if not (isinstance(value, str) and value in known):
        allowed = "one of " + ", ".join(map(repr, known)) + (f", or {or_else}" if or_else else "")
        raise InvalidInput(_sentence(name, value, allowed, did_you_mean(value, known)))
    return value


def device(name: str, value: Any) -> str:
    """Return the name of a device that tensors may live on; whether it is there is another question."""
    if not (isinstance(value, str) and re.fullmatch(r"cpu|mps|cuda(:\d{1,3})?", value, re.ASCII)):
        allowed = "'cpu', 'cuda' (every card), 'cuda:N' (one card, such as 'cuda:0') or 'mps'"
        raise InvalidInput(_sentence(name, value, allowed, ""))
    return value


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return a question with the known word that is nearest to an unknown one; empty if none is near.

    Example:
        >>> did_you_mean("fedpsc", ("random", "fedpcs")), did_you_mean("zebra", ("random", "fedpcs"))
        ("Did you mean 'fedpcs'?", '')
    """
    near = nearest(word, known)
    return "" if near is None else f"Did you mean {near!r}?"


def nearest(word: object, known: Iterable[str]) -> str | None:
    """Return the known word that is nearest to an unknown one; None if none is near."""
    found = difflib.get_close_matches(word[:80].lower(), known, n=1) if isinstance(word, str) else []
    return found[0] if found else None


def vector(
    name: str,
    value: ArrayLike,
    *,
    length: int | None = None,
    low: float = -math.inf,
    high: float = math.inf,
    remedy: str = "",
) -> FloatArray:
    """Return `value` as a one-dimensional float array, all of it finite and in [low, high].

    The result is a fresh array: a caller's later edits cannot reach it.
    """
    array = _numbers(name, value, "a list of numbers", remedy)
    if array.ndim != 1 or array.size == 0:
        raise InvalidInput(f"{name} must be a flat list of numbers, got shape {array.shape}. {remedy}".strip())
    if length is not None and array.size != length:
        raise InvalidInput(f"{name} must have {length} entries, got {array.size}. {remedy}".strip())
    return _all_in_range(name, array, low, high, remedy)


def matrix(
    name: str, value: ArrayLike, *, num_rows: int, low: float = -math.inf, least_columns: int = 1, remedy: str = ""
) -> FloatArray:
    """Return `value` as a fresh two-dimensional float array, all of it finite and at least `low`."""
    array = _numbers(name, value, "a table of numbers", remedy)
    if array.ndim != 2 or array.shape[0] != num_rows or array.shape[1] < least_columns:
        wanted = f"{num_rows} rows of {least_columns} or more numbers"
        raise InvalidInput(f"{name} must be {wanted}, got shape {array.shape}. {remedy}".strip())
    return _all_in_range(name, array, low, math.inf, remedy)


def _all_in_range(name: str, array: FloatArray, low: float, high: float, remedy: str) -> FloatArray:
    bad = np.argwhere(~(np.isfinite(array) & (array >= low) & (array <= high)))
    if bad.size:
        index = tuple(map(int, bad[0]))
        place = f"{name}[{', '.join(map(str, index))}]"
        raise InvalidInput(_sentence(place, float(array[index]), f"a number {_interval(low, high)}", remedy))
    return array


def _numbers(name: str, value: ArrayLike, wanted: str, remedy: str) -> FloatArray:
    raw: NDArray[Any] = np.array(None)
    with suppress(ValueError):  # rows of different lengths
        raw = np.asarray(value)
    if raw.dtype == np.bool_ or not (np.issubdtype(raw.dtype, np.number) and np.isrealobj(raw)):
        raise InvalidInput(_sentence(name, value, wanted, remedy))
    return np.array(raw, dtype=np.float64)


def _interval(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "that is finite"
    if math.isinf(high):
        return f"of at least {low:g}"
    if math.isinf(low):
        return f"of at most {high:g}"
    return f"in [{low:g}, {high:g}]"


def _sentence(name: str, value: object, allowed: str, remedy: str) -> str:
    return f"{name} must be {allowed}, got {shown(value, most=80)}. {remedy}".strip()
