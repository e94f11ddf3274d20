"""Who plays: clients with their privacy aversion ψ and initial budget ρ⁰, one by one or as a histogram.

A population is a list of *types* with weights. N clients are N types of weight 1/N; a histogram is one type per cell,
however many clients it stands for. Everything in `fedpcs.game` takes either, so cost need not grow with N.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

AVERSION_BOUNDS = (0.001, 0.999)
BUDGET_BOUNDS = (1e-9, 1e9)
MOST_SAMPLES = 1_000_000_000_000
# Types are arrays in memory; how many clients a type stands for is one number.
MOST_TYPES = 10_000_000
MOST_CLIENTS = 10**15
MOST_WEIGHT = 1e100  # sums of larger ones leave the range of floats
DEFAULT_BUDGET_BOUNDS = (0.01, 12.0)
_BY_TYPES = "More clients than that are told apart by type: population.bins, or a weight per entry."


@dataclass(frozen=True)
class Population:
    """Types of clients and how common each is. Build one with the functions of this module.

    Attributes:
        privacy_aversion: (types,) ψ in [0.001, 0.999]: weight of the privacy cost.
        initial_budget: (types,) ρ⁰ > 0.
        weight: (types,) share of the clients that are of this type; adds up to one.
        num_clients: N, how many clients there are in all.
        num_samples: (types,) |D_i|, size of a client's data.
    """

    privacy_aversion: FloatArray
    initial_budget: FloatArray
    weight: FloatArray
    num_clients: int
    num_samples: FloatArray

    @property
    def num_types(self) -> int:
        """How many types are told apart; equals `num_clients` for a population given one by one."""
        return int(self.privacy_aversion.size)

    @property
    def is_individual(self) -> bool:
        """Whether every type is exactly one client."""
        return self.num_types == self.num_clients and bool(np.all(self.weight == self.weight[0]))

    @property
    def client_count(self) -> FloatArray:
        """(types,) how many clients each type stands for; adds up to N."""
        return self.weight * self.num_clients

    @property
    def data_weight(self) -> FloatArray:
        """(types,) θ_i = |D_i| / Σ|D_j| of one client of each type."""
        return self.num_samples / float(self.client_count @ self.num_samples)

    def mean(self, values: FloatArray) -> float:
        """Return the mean over clients of a (types,) array."""
        return float(self.weight @ values)


def individuals(
    privacy_aversion: ArrayLike, initial_budget: ArrayLike, num_samples: ArrayLike | None = None
) -> Population:
    """Return a population with one type per client.

    Example:
        >>> individuals([0.2, 0.9], [1.0, 3.0]).mean(np.array([1.0, 3.0]))
        2.0
    """
    size = np.size(privacy_aversion)
    return histogram(privacy_aversion, initial_budget, np.ones(size), num_clients=size, num_samples=num_samples)


def histogram(
    privacy_aversion: ArrayLike,
    initial_budget: ArrayLike,
    weight: ArrayLike,
    *,
    num_clients: int,
    num_samples: ArrayLike | None = None,
) -> Population:
    """Return a population of weighted types: `weight` is any positive measure of how common each is."""
    low, high = AVERSION_BOUNDS
    aversion = _validate.vector(
        "privacy_aversion",
        privacy_aversion,
        low=low,
        high=high,
        remedy="Clip it: at 0 privacy is free and at 1 resisting the crowd is, and the game degenerates.",
    )
    size = aversion.size
    budget = _validate.vector("initial_budget", initial_budget, length=size, low=0.0)
    mass = _validate.vector("weight", weight, length=size, low=0.0, high=MOST_WEIGHT)
    samples = np.ones(size)
    if num_samples is not None:
        samples = _validate.vector("num_samples", num_samples, length=size, low=1.0, high=MOST_SAMPLES)
    if (broken := np.flatnonzero(samples != np.floor(samples))).size:
        raise InvalidInput(f"num_samples[{broken[0]}] must be a whole number, got {float(samples[broken[0]])!r}.")
    if not budget.min() > 0.0:
        raise InvalidInput(
            f"initial_budget must be above 0, got {float(budget.min())!r}. Use at least budget_bounds[0]."
        )
    if not mass.sum() > 0.0:
        raise InvalidInput("weight must have at least one positive entry, got all zeros.")
    clients = _validate.integer("num_clients", num_clients, low=1, high=MOST_CLIENTS)
    return Population(aversion, budget, mass / mass.sum(), clients, samples)


def uniform(num_clients: int, seed: int, budget_bounds: tuple[float, float] = DEFAULT_BUDGET_BOUNDS) -> Population:
    """Draw the default population: ψ ~ U(0,1) clipped to [0.001, 0.999], then ρ⁰ ~ U(ρ_L, ρ_H).

    Drawn from `numpy.random.default_rng(seed)`, ψ first: the published reference values use this order.

    Example:
        >>> round(float(uniform(100, seed=0).initial_budget.mean()), 3)
        6.376
    """
    clients = _validate.integer("num_clients", num_clients, low=1, high=MOST_TYPES, remedy=_BY_TYPES)
    rng = np.random.default_rng(_validate.integer("seed", seed, low=0))
    low, high = check_bounds(budget_bounds)
    aversion = rng.uniform(0.0, 1.0, clients).clip(*AVERSION_BOUNDS)
    return individuals(aversion, rng.uniform(low, high, clients))


def uniform_density(
    num_clients: int,
    budget_bounds: tuple[float, float] = DEFAULT_BUDGET_BOUNDS,
    bins: tuple[int, int] = (64, 64),
) -> Population:
    """Return the default population's density itself, as a histogram of bins[0] × bins[1] cells."""
    low, high = check_bounds(budget_bounds)
    aversion_bins = _validate.integer("bins[0]", bins[0], low=1, high=MOST_TYPES)
    budget_bins = _validate.integer("bins[1]", bins[1], low=1, high=MOST_TYPES // aversion_bins)
    aversion = ((np.arange(aversion_bins) + 0.5) / aversion_bins).clip(*AVERSION_BOUNDS)
    budget = low + (high - low) * (np.arange(budget_bins) + 0.5) / budget_bins
    grid_aversion, grid_budget = (axis.ravel() for axis in np.meshgrid(aversion, budget, indexing="ij"))
    return histogram(grid_aversion, grid_budget, np.ones(grid_aversion.size), num_clients=num_clients)


def compress(population: Population, bins: tuple[int, int] = (64, 64)) -> Population:
    """Return a histogram of `population`: one type per non-empty cell, at the cell's own mean.

    Cell means keep the population's mean budget and mean aversion exactly.
    """
    mean, mass = mean_by_cell(population, bins)
    return Population(
        mean(population.privacy_aversion).clip(*AVERSION_BOUNDS),
        mean(population.initial_budget),
        mass / mass.sum(),
        population.num_clients,
        mean(population.num_samples),
    )


def mean_by_cell(
    population: Population, bins: tuple[int, int]
) -> tuple[Callable[[FloatArray], FloatArray], FloatArray]:
    """Return what takes (types,) values to their means in the cells that are not empty, and the cells' weights."""
    edges = [
        np.linspace(axis.min(), axis.max(), count + 1)[1:-1]
        for axis, count in zip((population.privacy_aversion, population.initial_budget), bins, strict=True)
    ]
    cell = np.searchsorted(edges[0], population.privacy_aversion) * bins[1]
    cell += np.searchsorted(edges[1], population.initial_budget)
    mass: FloatArray = np.bincount(cell, population.weight).astype(np.float64, copy=False)
    kept = mass > 0
    return lambda values: np.bincount(cell, population.weight * values)[kept] / mass[kept], mass[kept]


def check_bounds(budget_bounds: tuple[float, float]) -> tuple[float, float]:
    """Return budget bounds [ρ_L, ρ_H] with 0 < ρ_L < ρ_H."""
    low, high = (
        _validate.number(f"budget_bounds[{i}]", budget_bounds[i], low=BUDGET_BOUNDS[0], high=BUDGET_BOUNDS[1])
        for i in range(2)
    )
    if not low < high:
        raise InvalidInput(f"budget_bounds must rise, got [{low:g}, {high:g}]. Put the smaller one first.")
    return low, high
