"""Admission: what must hold of a report before it may touch the model. Nothing a client says is believed.

A report is matched to its task by run, round, client and nonce; its layout to the model's, key by key; its size and
budget to what the server has on record. Then the numbers: all finite, mostly normal, and neither longer nor shorter
than an honest update can be, given the noise its budget calls for. A refused report leaves no trace but its reason.
"""

from __future__ import annotations

import functools
import math
import secrets
import struct
import zlib
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.client_plan import ClientPlan
from fedpcs.learning.layout import Layout, Values
from fedpcs.learning.noise_plan import honest_range
from fedpcs.learning.protocol import ClientReport, Task
from fedpcs.privacy.budget import Rho

RefusalKind = Literal[
    "stale", "stranger", "duplicate", "layout", "size", "contract", "numbers", "norm", "noise", "repeat"
]
# An update of which more than this share is denormal is no result of training; arithmetic on it crawls.
_MOST_DENORMAL = 0.5
_LONGEST_REASON = 300
_EXPONENT_BITS = 0x7F800000  # of a float32
_LOOKS = 2**10


@dataclass(frozen=True)
class Refusal:
    """A report that was not admitted.

    Attributes:
        round_index: The round it was received in.
        client: Whom it claims to be from.
        kind: Which check it failed.
        reason: What was expected and what came.
    """

    round_index: int
    client: int
    kind: RefusalKind
    reason: str


@dataclass(frozen=True)
class Admitted:
    """A report that passed, and what was taken on the way.

    Attributes:
        report: It.
        norm: Of its update.
        is_noisy: Whether its update has noise in it, so that no honest one is the same.
    """

    report: ClientReport
    norm: float
    is_noisy: bool = False

    @functools.cached_property
    def digest(self) -> int:
        """64 bits that tell its update from any other: of its norm, and of all of its bytes.

        Two updates that differ have the same by chance alone. Clients could make such a pair on purpose, but it would
        only be refused.
        """
        return zlib.crc32(self.report.values.data) << 32 | zlib.crc32(struct.pack("<d", self.norm))


@dataclass(frozen=True)
class Expected:
    """What the server knows of the report it waits for.

    Attributes:
        task: What was asked.
        num_samples: |D_i| on record.
        layout: The model's.
        plan: How clients train.
        model_norm: Norm of the model that was sent out.
        false_alarm: How often an honest update may be refused for its norm.
    """

    task: Task
    num_samples: int
    layout: Layout
    plan: ClientPlan
    model_norm: float = 0.0
    false_alarm: float = 1e-6


def admit(report: ClientReport, expected: Expected) -> Admitted | Refusal:
    """Return the report with its norm, or the first reason to refuse it."""
    for kind, check in _CHECKS:
        try:
            reason = check(report, expected)
        except Exception as error:  # a report can be built of anything; whatever cannot be read is refused
            reason = f"cannot be read: {type(error).__name__}."
        if reason:
            return Refusal(expected.task.round_index, expected.task.client, kind, reason[:_LONGEST_REASON])
    found = _numbers(report, expected)
    if isinstance(found, Admitted):
        return found
    return Refusal(expected.task.round_index, expected.task.client, *found)


def _wrong_match(report: ClientReport, expected: Expected) -> str:
    task = expected.task
    for name in ("run", "round_index", "client", "nonce"):
        got, wanted = getattr(report, name), getattr(task, name)
        if type(got) is not type(wanted) or got != wanted:
            shown = "another task's" if name == "nonce" else f"{got!r}, expected {wanted!r}"
            return f"{name} is {shown}: it answers something else."
    return ""


def _wrong_layout(report: ClientReport, expected: Expected) -> str:
    if not isinstance(report.layout, Layout) or not isinstance(report.values, np.ndarray):
        return f"update must be a flat array with a layout, got {type(report.values).__name__}."
    wanted = dict(zip(expected.layout.names, expected.layout.shapes, strict=True))
    names, shapes = report.layout.names, report.layout.shapes
    if len(names) != len(shapes) or len(set(names)) != len(names):
        return f"layout must name each parameter once with its shape, got {len(names)} names, {len(shapes)} shapes."
    if missing := [name for name in wanted if name not in names]:
        return f"key {missing[0]!r} is missing, expected shape {wanted[missing[0]]}."
    if extra := [name for name in names if name not in wanted]:
        return f"key {str(extra[0])[:80]!r} is not the model's, expected {len(wanted)} keys."
    for name, shape in zip(names, shapes, strict=True):
        if tuple(shape) != wanted[name]:
            return f"key {name!r} has shape {tuple(shape)}, expected {wanted[name]}."
    if names != expected.layout.names:
        return f"keys are in another order: {names[0]!r} first, expected {expected.layout.names[0]!r}."
    if report.values.dtype != np.float32:
        return f"values are {report.values.dtype}, expected float32."
    if report.values.shape != (expected.layout.num_parameters,) or not report.values.flags.c_contiguous:
        return f"values have shape {report.values.shape}, expected ({expected.layout.num_parameters},) without gaps."
    return ""


def _wrong_size(report: ClientReport, expected: Expected) -> str:
    got: Any = report.num_samples
    if type(got) is not int or got != expected.num_samples:
        return f"num_samples is {got!r}, on record are {expected.num_samples}."
    if set(report.measures) != set(expected.task.measures) & set(report.measures):
        return f"measures are {sorted(report.measures)}, asked for {sorted(expected.task.measures)}."
    for name, value in report.measures.items():
        least = -math.inf if name == "loss" else 0.0
        if not (type(value) is float and math.isfinite(value) and value >= least):
            allowed = "a finite number" if name == "loss" else "a finite number of at least 0"
            return f"measure {name!r} is {str(value)[:80]!r}, expected {allowed}."
    return ""


def _wrong_contract(report: ClientReport, expected: Expected) -> str:
    got, wanted = report.budget, expected.task.budget
    if type(got) is not type(wanted) or got != wanted:
        return f"budget is {got}, contracted was {wanted}."
    return ""


_CHECKS: tuple[tuple[RefusalKind, Any], ...] = (
    ("stale", _wrong_match),
    ("layout", _wrong_layout),
    ("size", _wrong_size),
    ("contract", _wrong_contract),
)


def _numbers(report: ClientReport, expected: Expected) -> Admitted | tuple[RefusalKind, str]:
    """Return the report with its norm, or what is wrong with its numbers."""
    norm = l2_norm(report.values)
    if not math.isfinite(norm):
        index = int(np.flatnonzero(~np.isfinite(report.values))[0])
        where = f"values[{index}] ({_key_of(expected.layout, index)})"
        return "numbers", f"{where} is {report.values[index]}, expected finite."
    if _is_denormal_storm(report.values):
        return "numbers", f"more than {_MOST_DENORMAL:.0%} of the numbers are denormal."
    try:
        honest = honest_range(
            expected.plan,
            Rho(0) if expected.task.budget is None else expected.task.budget,
            expected.num_samples,
            expected.layout.num_parameters,
            model_norm=expected.model_norm,
            false_alarm=expected.false_alarm,
        )
    except InvalidInput as error:
        return "noise", f"no honest client can answer: {error}"
    if not norm <= honest.most:
        return "norm", f"norm is {norm:.4g}, an honest update has at most {honest.most:.4g}."
    if norm < honest.least:
        return "noise", f"norm is {norm:.4g}, with the noise its budget calls for it is at least {honest.least:.4g}."
    return Admitted(report, norm, honest.is_noisy)


def _is_denormal_storm(values: Values) -> bool:
    # A look at a thousand places nobody could foresee: if half of all numbers were denormal, a quarter of these would
    # be, but for a chance below e⁻¹²⁰ (Hoeffding). Only then is everything counted.
    places = np.random.default_rng(secrets.randbits(64)).integers(values.size, size=_LOOKS)
    return _denormal_share(values[places]) > 0.5 * _MOST_DENORMAL and _denormal_share(values) > _MOST_DENORMAL


def _denormal_share(values: Values) -> float:
    """Return how many of the numbers are denormal: not zero, and their exponent has no bits."""
    num_nonzero = int(np.count_nonzero(values))
    num_normal = int(np.count_nonzero(values.view(np.int32) & _EXPONENT_BITS))
    return (num_nonzero - num_normal) / values.size


def _key_of(layout: Layout, index: int) -> str:
    start = 0
    for name, shape in zip(layout.names, layout.shapes, strict=True):
        start += math.prod(shape)
        if index < start:
            return name
    return "?"


def outliers(norms: np.ndarray[tuple[int, ...], np.dtype[np.float64]], factor: float) -> list[int]:
    """Return the positions of norms beyond `factor` times their median: the rule where nothing is clipped.

    Example:
        >>> outliers(np.array([1.0, 1.2, 0.9, 50.0]), 10.0)
        [3]
    """
    # The lower median: of two norms one must not set the measure for the other.
    middle = float(np.sort(norms)[(norms.size - 1) // 2]) if norms.size else 0.0
    limit = _validate.number("factor", factor, low=1.0) * middle
    return [int(index) for index in np.flatnonzero(norms > limit)] if limit > 0.0 else []
