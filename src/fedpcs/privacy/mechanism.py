"""Mechanisms: a bounded value goes in, a release comes out, and there is no other way to get noise.

Noise of standard deviation σ on a value of sensitivity Δ is ρ-zCDP with ρ = Δ²/(2σ²) (Bun and Steinke 2016, Lemma 2.4;
on whole numbers, Canonne, Kamath and Steinke 2020, Theorem 14). The sensitivity comes from the value's own type, so

    paper    Δ = 2W/|D|    σ² = 2W²/(ρ|D|²)    update clipped to W; the paper's claim, unproven beyond one local step
    client   Δ = 2W        σ² = 2W²/ρ          update clipped to W; any two data sets of the same size look alike
    record   Δ = 2C/b      σ² = 2C²E/(b²ρ)     each step's mean of b per-sample gradients clipped to C, E local epochs

On a grid of unit u, rounding adds at most u√d to Δ. With u = σ/m that is σ√(2ρ) = Δ + σ√d/m, so σ = Δ/(√(2ρ) − √d/m):
noise that pays for its own grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import ClippedMean, ClippedUpdate
from fedpcs.privacy.events import CLIENT_LEVEL, RECORD_LEVEL, Event, Level
from fedpcs.privacy.noise import NoiseSource

# Every σ is raised by more than rounding can have cost it.
_STDDEV_SLACK = 1.0 + 2.0**-40
_RATIO_SLACK = 2.0**-50
# Whole numbers up to twice this are floats, which leaves room for the noise.
_MOST_UNITS = 2.0**52
# Between these σ and the unit of its grid are ordinary floats, whatever the budget.
_LEAST_SENSITIVITY, _MOST_SENSITIVITY = 1e-200, 1e200


@dataclass(frozen=True)
class Release:
    """What may leave a client: the noisy value and what it cost.

    Attributes:
        value: (parameters,) float64, read-only.
        event: What accounting needs to know.
        noise_stddev: σ of the noise in each coordinate; public, for it follows from public numbers.
    """

    value: FloatArray
    event: Event
    noise_stddev: float


@dataclass(frozen=True)
class UpdateMechanism:
    """Perturbs a whole update, of norm at most W.

    By default any two data sets of the same size give releases that are hard to tell apart, 2W being the sensitivity.
    The size leaves beside the update in clear, and weighs it.

    Attributes:
        budget: ρ of one release.
        level: Whom it protects; a divisor above 1 takes a level that accounts for it.
        divisor: What the sensitivity 2W is divided by.
    """

    budget: Rho
    level: Level = CLIENT_LEVEL
    divisor: float = 1.0

    def __post_init__(self) -> None:
        _check_budget(self.budget)
        _validate.number("divisor", self.divisor, low=1e-6, high=1e12)

    def event(self, source: NoiseSource) -> Event:
        """Return what a release will cost, to be charged before it happens."""
        return _event(self.budget, self.level, source)

    def release(self, update: ClippedUpdate, source: NoiseSource) -> Release:
        """Return the update, perturbed."""
        _check_type("update", update, ClippedUpdate)
        stddev = noise_stddev(update.sensitivity / self.divisor, self.budget, update.value.size, source)
        return Release(_perturbed(update, stddev, source), self.event(source), stddev)


@dataclass(frozen=True)
class RecordMechanism:
    """Protects each record, through all steps of one local training.

    An epoch goes through the records once, in disjoint batches. A neighbouring data set differs in one record, hence in
    one batch of each epoch: what a step costs, its epoch costs, ρ/E.

    Attributes:
        budget: ρ of the whole local training.
        local_epochs: E, how often each record is used.
    """

    budget: Rho
    local_epochs: int = 1

    def __post_init__(self) -> None:
        _check_budget(self.budget)
        _validate.integer("local_epochs", self.local_epochs, low=1)
        if self.step_budget.nanos == 0:
            raise InvalidInput(
                f"budget must be at least 1e-9 for each local epoch, got {self.budget} for {self.local_epochs}. "
                "Spend more or train fewer epochs."
            )

    @property
    def step_budget(self) -> Rho:
        """What one epoch, and each of its steps, may cost a record: ρ/E, rounded down."""
        return self.budget // self.local_epochs

    def event(self, source: NoiseSource) -> Event:
        """Return what the whole local training will cost, to be charged before it begins."""
        return _event(self.budget, RECORD_LEVEL, source)

    def release(self, mean: ClippedMean, source: NoiseSource) -> Release:
        """Return one step's mean gradient, perturbed. What follows from it may be released too.

        Its event is what the step costs the records of its batch. That batches of an epoch share no record, and that
        there are no more epochs than announced, is the caller's part; `fedpcs.privacy.private_training` sees to both.
        """
        _check_type("mean", mean, ClippedMean)
        stddev = noise_stddev(mean.sensitivity, self.step_budget, mean.value.size, source)
        return Release(_perturbed(mean, stddev, source), _event(self.step_budget, RECORD_LEVEL, source), stddev)


def noise_stddev(sensitivity: float, budget: Rho, num_parameters: int, source: NoiseSource) -> float:
    """Return σ such that the release is ρ-zCDP, the source's grid included. Rounded up.

    Raises:
        InvalidInput: The budget is too small for a grid over so many parameters.

    Example:
        >>> from fedpcs.privacy.noise import noise_source
        >>> round(noise_stddev(2.0, Rho.of(0.5), 1000, noise_source("fast", seed=0)), 9)
        2.0
    """
    bound = _validate.number("sensitivity", sensitivity, low=_LEAST_SENSITIVITY, high=_MOST_SENSITIVITY)
    _check_budget(budget)
    _check_source(source)
    num_coordinates = _validate.integer("num_parameters", num_parameters, low=1, high=10**12)
    grid_share = 0.0 if source.units_per_stddev is None else math.sqrt(num_coordinates) / source.units_per_stddev
    # Rounded down on its own: where the two nearly cancel, the slack on σ would not make up for it.
    ratio = math.sqrt(2.0 * float(budget)) * (1.0 - _RATIO_SLACK) - grid_share * (1.0 + _RATIO_SLACK)
    if not ratio > 0.0:
        raise InvalidInput(
            f"budget must exceed {0.5 * grid_share**2:.3g} for {num_coordinates:,} parameters on the grid of noise "
            f"{source.name!r}, got {budget}. Spend more."
        )
    return bound / ratio * _STDDEV_SLACK


def _perturbed(clipped: ClippedUpdate | ClippedMean, stddev: float, source: NoiseSource) -> FloatArray:
    value = clipped.value
    if source.units_per_stddev is None:
        noisy = value + stddev * source.draw(value.size)
    else:
        unit = stddev / source.units_per_stddev
        if not clipped.l2_bound / unit <= _MOST_UNITS:
            raise InvalidInput(
                f"budget must leave noise of at least {clipped.l2_bound * source.units_per_stddev / _MOST_UNITS:.3g} "
                f"on the grid of noise {source.name!r}, got {stddev:.3g}. Spend less, or a float cannot hold the sum."
            )
        draws = source.draw(value.size)
        # Whole numbers of units, added exactly; the product with the unit depends on their sum alone.
        noisy = (np.rint(value / unit) + draws) * unit
    noisy.flags.writeable = False
    return noisy


def _event(budget: Rho, level: Level, source: NoiseSource) -> Event:
    _check_source(source)
    return Event(budget, level, source.name, source.family, source.is_replayable)


def _check_budget(budget: Rho) -> None:
    if not (isinstance(budget, Rho) and budget.nanos > 0):
        raise InvalidInput(f"budget must be a Rho above 0, got {budget!r}. Make one with Rho.of(0.1).")


def _check_source(source: NoiseSource) -> None:
    if not isinstance(source, NoiseSource):
        raise InvalidInput(
            f"source must be a NoiseSource, got {type(source).__name__}. Make one with noise_source('secure')."
        )


def _check_type(name: str, value: object, kind: type) -> None:
    if type(value) is not kind:  # a child could lie about its bound
        raise InvalidInput(
            f"{name} must be a {kind.__name__}, got {type(value).__name__}. Noise is matched to the bound it carries."
        )
