"""Many trainings of a problem at once, each round as the bounds suppose it, to hold the bounds against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fedpcs import _validate
from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.theory.federation import Federation
from fedpcs.theory.problems import Problem

_STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Mean:
    """A mean over trajectories, and its standard error; (rounds + 1,) each."""

    value: FloatArray
    standard_error: FloatArray

    @property
    def high(self) -> FloatArray:
        """Mean plus three standard errors: what an upper bound must not be below."""
        return np.asarray(self.value + _STANDARD_ERRORS * self.standard_error)

    @property
    def low(self) -> FloatArray:
        """Mean minus three standard errors: a bound below it is violated."""
        return np.asarray(self.value - _STANDARD_ERRORS * self.standard_error)


@dataclass(frozen=True)
class Trajectories:
    """What was measured along trainings, before each round and after the last.

    Attributes:
        gap: F(w(t)) − F*.
        squared_distance: ‖w(t) − w*‖².
        distance: ‖w(t) − w*‖.
        squared_gradient: ‖∇F(w(t))‖².
        largest_gradient: (clients,) the largest ‖∇F_i‖ that was met anywhere: no trajectory would have gone otherwise
            if gradients were cut off there.
        largest_whole_gradient: The largest ‖∇F‖ that was met.
    """

    gap: Mean
    squared_distance: Mean
    distance: Mean
    squared_gradient: Mean
    largest_gradient: FloatArray
    largest_whole_gradient: float


def simulate(
    problem: Problem, federation: Federation, start: FloatArray, *, num_trajectories: int = 1000, seed: int = 0
) -> Trajectories:
    """Train a problem many times over from the same start."""
    size = _validate.integer("num_trajectories", num_trajectories, low=2)
    rng = generator(seed, "theory-trajectories")
    models = np.tile(_validate.vector("start", start), (size, 1))
    draw = _DRAWS[federation.design]
    largest = np.zeros(federation.num_clients)
    rows = [_measure(problem, models)]
    for t in range(federation.num_rounds):
        largest = np.maximum(largest, problem.gradient_norms(models).max(axis=0))
        factor = draw(federation.expected_count[t], size, rng) * _undoing(federation, t)
        # Independent Gaussians add up to one, whose power per coordinate is the sum of theirs.
        power = (factor**2 @ federation.noise_power[t]) / models.shape[1]
        noise = rng.standard_normal(models.shape) * np.sqrt(power)[:, None]
        models = models - federation.step_size[t] * (_aggregate(problem, federation, models, factor, t) + noise)
        rows.append(_measure(problem, models))
    columns = np.stack(rows)  # (rounds + 1, trajectories, 4)
    gap, squared, distance, gradient = (_mean(columns[:, :, index]) for index in range(4))
    return Trajectories(gap, squared, distance, gradient, largest, float(np.sqrt(columns[:-1, :, 3].max())))


def _undoing(federation: Federation, round_index: int) -> FloatArray:
    """(clients,) θ_i/c_i."""
    count = federation.expected_count[round_index]
    return np.asarray(np.divide(federation.data_weight, count, out=np.zeros_like(count), where=count > 0.0))


def _measure(problem: Problem, models: FloatArray) -> FloatArray:
    whole = problem.summed_gradients(models, np.tile(problem.data_weight, (len(models), 1)))
    squared = ((models - problem.optimum) ** 2).sum(axis=1)
    return np.stack([problem.gaps(models), squared, np.sqrt(squared), (whole**2).sum(axis=1)], axis=1)


def _mean(values: FloatArray) -> Mean:
    spread = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    return Mean(values.mean(axis=1), spread)


def _aggregate(
    problem: Problem, federation: Federation, models: FloatArray, factor: FloatArray, round_index: int
) -> FloatArray:
    """Return Σ_i factor_i times the mean of client i's local gradients, (models, dimension)."""
    steps = federation.local_steps
    if steps == 1:
        return problem.summed_gradients(models, factor)
    rate = federation.step_size[round_index] / steps
    total = problem.client_gradients(models)
    own = models[:, None, :] - rate * total
    for _ in range(steps - 1):
        again = problem.client_gradients(own)
        total = total + again
        own = own - rate * again
    return np.asarray(np.einsum("mc,mcd->md", factor, total) / steps)


def with_replacement(count: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return how often each client is drawn, (size, clients), in K draws with replacement."""
    total = count.sum()
    return rng.multinomial(round(float(total)), count / total, size=size).astype(np.float64)


def poisson(count: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return who is drawn, (size, clients), each for itself."""
    return (rng.random((size, count.size)) < count).astype(np.float64)


def pivotal(count: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return who is drawn, (size, clients): two at a time settle who of them is in, or out (Deville and Tillé 1998)."""
    chance = np.tile(np.minimum(count, 1.0), (size, 1))
    drawn = np.zeros_like(chance)
    rows, holder = np.arange(size), np.zeros(size, dtype=np.int64)
    for index in range(1, count.size):
        first, second = chance[rows, holder], chance[:, index]
        total, luck = first + second, rng.random(size)
        low = total <= 1.0
        # Below one in all, the loser is out and the winner keeps the sum; otherwise one is in, and one keeps the rest.
        safe = np.where(total > 0.0, total, 1.0)
        stays = np.where(low, luck * safe < first, luck * np.maximum(2.0 - total, 1e-300) < 1.0 - second)
        winner = np.where(stays, holder, index)
        loser = np.where(stays, index, holder)
        drawn[rows[~low], winner[~low]] = 1.0
        kept = np.where(low, winner, loser)
        chance[rows, kept] = np.where(low, total, total - 1.0)
        holder = kept
    last = chance[rows, holder]
    drawn[rows, holder] = np.where(rng.random(size) < last, 1.0, drawn[rows, holder])
    return drawn


_DRAWS: dict[str, Callable[[FloatArray, int, np.random.Generator], FloatArray]] = {
    "with-replacement": with_replacement,
    "poisson": poisson,
    "fixed-size": pivotal,
}
