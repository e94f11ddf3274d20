"""The constants of a problem, when nobody knows them: measured at points, or read from a training's log.

What is measured holds where it was measured. A largest curvature that was met is no more than the true one, and a bound
made of it is a bound for losses that are nowhere more curved; so every estimate comes with the range it was found in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fedpcs import _validate
from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.theory.problems import Problem

_CONFIDENCE = 0.95
_POWER_STEPS = 50
_LEAST_ROUNDS = 3
_NUDGE = 1e-4


@dataclass(frozen=True)
class Estimate:
    """A number and how sure it is.

    Attributes:
        value: What a bound should use: of what was met, the worst; of a regression, its answer.
        low: Lower end of the 95 % range of what was met, or of the confidence interval.
        high: Its upper end.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimates:
    """The constants that bounds need.

    Attributes:
        smoothness: β.
        pl: μ.
        gradient_bound: D, of clients' gradients.
        client_variance: Σ_i θ_i‖∇F_i − ∇F‖²: how much clients differ.
    """

    smoothness: Estimate
    pl: Estimate
    gradient_bound: Estimate
    client_variance: Estimate


def probe(problem: Problem, start: FloatArray, *, num_points: int = 30, seed: int = 0) -> Estimates:
    """Measure a problem's constants at points on the way from a start to its optimum, and around it."""
    rng = generator(seed, "theory-probe")
    count = _validate.integer("num_points", num_points, low=2)
    begun = _validate.vector("start", start)
    way = problem.optimum - begun
    around = rng.standard_normal((count, begun.size)) * np.linalg.norm(way) / (4.0 * np.sqrt(begun.size))
    points = begun + np.linspace(0.0, 0.99, count)[:, None] * way + around

    def whole(models: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("c,mcd->md", problem.data_weight, problem.client_gradients(models)))

    each = problem.client_gradients(points)
    mean = whole(points)
    steepness = (mean**2).sum(axis=1)
    apart = ((each - mean[:, None, :]) ** 2).sum(axis=2) @ problem.data_weight
    return Estimates(
        smoothness=_worst(np.array([top_curvature(whole, point, rng) for point in points]), np.max),
        pl=_worst(steepness / (2.0 * problem.gaps(points)), np.min),
        gradient_bound=_worst(np.linalg.norm(each, axis=2).max(axis=1), np.max),
        client_variance=_worst(apart, np.max),
    )


def top_curvature(gradient: Callable[[FloatArray], FloatArray], point: FloatArray, rng: np.random.Generator) -> float:
    """Return the largest eigenvalue of the Hessian at a point, by power iteration on differences of gradients."""
    way = rng.standard_normal(point.size)
    value = 0.0
    for _ in range(_POWER_STEPS):
        way = way / np.linalg.norm(way)
        ends = gradient(np.stack((point + _NUDGE * way, point - _NUDGE * way)))
        bent = (ends[0] - ends[1]) / (2.0 * _NUDGE)
        value, way = float(way @ bent), bent
        if not np.linalg.norm(way) > 0.0:
            return 0.0
    return value


def from_log(
    *,
    loss: ArrayLike,
    signal: ArrayLike,
    spread: ArrayLike,
    noise: ArrayLike,
    client_spread: ArrayLike,
    step_size: float,
    lowest_loss: float = 0.0,
) -> Estimates:
    """Read constants from a training's log.

    Smoothness is the slope of F(t+1) − F(t) + ‖signal‖²/η over half the squared step: one regression through the
    origin, with its t-interval. PL takes the lowest loss there can be for F*, which errs to the safe side.

    Args:
        loss: (rounds + 1,) F(w(t)), before each round and after the last.
        signal: (rounds,) norm of what clients' updates have in common: η‖∇F‖.
        spread: (rounds,) norm of the draw's error in the step.
        noise: (rounds,) norm of the noise in the step.
        client_spread: (rounds,) root mean squared distance of a client's update from the mean.
        step_size: η.
        lowest_loss: At most F*; zero will do for a cross-entropy.

    Raises:
        InvalidInput: Fewer than three rounds, or something is not a number.
    """
    losses = _validate.vector("loss", loss)
    rounds = losses.size - 1
    if rounds < _LEAST_ROUNDS:
        raise InvalidInput(f"loss must have at least 4 entries for three rounds, got {losses.size}. Train for longer.")
    given = {"signal": signal, "spread": spread, "noise": noise, "client_spread": client_spread}
    parts = {name: _validate.vector(name, value, length=rounds, low=0.0) ** 2 for name, value in given.items()}
    η = _validate.positive("step_size", step_size)
    above = losses[:-1] - _validate.number("lowest_loss", lowest_loss)
    if not (above > 0.0).all():
        raise InvalidInput(f"lowest_loss must be below all losses, got {lowest_loss!r}.")
    moved = 0.5 * (parts["signal"] + parts["spread"] + parts["noise"])
    return Estimates(
        smoothness=_slope(moved, np.diff(losses) + parts["signal"] / η),
        pl=_worst(parts["signal"] / η**2 / (2.0 * above), np.min),
        gradient_bound=_worst(np.sqrt(parts["signal"] + parts["client_spread"]) / η, np.max),
        client_variance=_worst(parts["client_spread"] / η**2, np.max),
    )


def _worst(values: FloatArray, worst: Callable[[FloatArray], float]) -> Estimate:
    low, high = np.quantile(values, [(1.0 - _CONFIDENCE) / 2.0, (1.0 + _CONFIDENCE) / 2.0])
    return Estimate(float(worst(values)), float(low), float(high))


def _slope(x: FloatArray, y: FloatArray) -> Estimate:
    """Return the least-squares slope through the origin, with a t-interval that minds unequal errors.

    Early rounds move far and err much. MacKinnon and White's HC3: a residual counts for more where it had leverage.
    """
    weight = float(x @ x)
    if not weight > 0.0:
        raise InvalidInput("no round moved the model: there is nothing to see its curvature by.")
    slope = float(x @ y) / weight
    leverage = np.minimum(x**2 / weight, 1.0 - 1e-9)
    error = float(np.sqrt((x**2 * ((y - slope * x) / (1.0 - leverage)) ** 2).sum())) / weight
    reach = float(stats.t.ppf((1.0 + _CONFIDENCE) / 2.0, x.size - 1)) * error
    return Estimate(slope, slope - reach, slope + reach)
