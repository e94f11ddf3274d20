"""Valid bounds hold: a thousand trajectories of each setting stay below them, and they are not vacuous."""

import functools

import numpy as np
import pytest
from theory_settings import logistics, quadratics, trained, with_gradients_met

from fedpcs.theory import (
    valid_distance,
    valid_distance_not_convex,
    valid_error,
    valid_progress,
    valid_rate,
    valid_reach,
)

SETTINGS = {one.name: one for one in [*quadratics(), *logistics()]}
ROUNDING = 1.0 + 1e-9
# What takes long to simulate.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if "5 steps" in name or "logistic" in name else name for name in SETTINGS
]


@functools.cache
def measured(name):
    return trained(SETTINGS[name])


def bounds_of(name, kind):
    """Both ways of bounding clients' gradients: by how far training is from its end, and by the largest met."""
    setting, found = SETTINGS[name], measured(name)
    constants = setting.problem.constants(setting.start)
    for known in (constants, with_gradients_met(constants, found)):
        bound = kind(setting.federation, known)
        if set(bound.missing) - {word for word in bound.missing if "shrinks" in word}:
            raise AssertionError(bound.missing)
        yield bound


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_stays_below_its_rate(name):
    found = measured(name).gap.high
    for bound in bounds_of(name, valid_rate):
        assert (found <= bound.value * ROUNDING).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_distance_stays_below_its_bound(name):
    found = measured(name).squared_distance.high
    for bound in bounds_of(name, valid_distance):
        assert (found <= bound.value * ROUNDING).all()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_stay_below_the_convergence_error(name):
    found = measured(name).squared_gradient
    rounds = np.arange(1, found.value.size)
    mean = np.cumsum(found.high[:-1]) / rounds
    for bound in bounds_of(name, valid_error):
        assert (mean <= bound.value * ROUNDING).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_round_does_worse_than_one_round_may(name):
    """In the first round, where gradient and gap are known; later ones differ from trajectory to trajectory."""
    setting, found = SETTINGS[name], measured(name)
    constants = setting.problem.constants(setting.start)
    norm = np.sqrt(found.squared_gradient.value[:-1])
    bound = valid_progress(setting.federation, constants, gradient_norm=norm, gap=found.gap.value[:-1])
    assert found.gap.high[1] - found.gap.value[0] <= bound.value[0] + 1e-9
    # Averaged over trajectories it holds in every round: it is linear in the squared gradient and in the gap.
    change = np.diff(found.gap.value)
    slack = 3.0 * (found.gap.standard_error[1:] + found.gap.standard_error[:-1])
    assert (change <= bound.value + slack + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_goes_further_than_it_can(name):
    setting, found = SETTINGS[name], measured(name)
    known = with_gradients_met(setting.problem.constants(setting.start), found)
    assert (found.squared_distance.high <= valid_distance_not_convex(setting.federation, known).value * ROUNDING).all()
    assert (found.distance.high <= valid_reach(setting.federation, known).value * ROUNDING).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_rate_is_not_vacuous(name):
    setting = SETTINGS[name]
    bound = valid_rate(setting.federation, setting.problem.constants(setting.start))
    assert (bound.value / measured(name).gap.value).max() < 100.0


def test_a_bound_with_a_tenth_of_the_noise_would_be_seen_to_fail():
    name = next(name for name in SETTINGS if "spread 0, by budget, with-replacement, 1 steps" in name)
    setting, found = SETTINGS[name], measured(name)
    bound = valid_rate(setting.federation, setting.problem.constants(np.zeros(20)))
    weaker = bound.value - 0.9 * bound.terms["noise"]
    still = trained(type(setting)(name, setting.problem, setting.federation, np.zeros(20)))
    assert (still.gap.low <= bound.value).all()  # after one round it is what happens, on average
    assert not (still.gap.low <= weaker).all()
    assert found.gap.value[-1] < found.gap.value[0]
