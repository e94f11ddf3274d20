"""The error of one round, part by part, against values worked out by hand and gradients that are drawn."""

import numpy as np
import pytest
from theory_settings import federation_of as setting_of

from fedpcs.theory import (
    Constants,
    make_federation,
    make_quadratic,
    simulate,
    valid_distance,
    valid_error,
    valid_progress,
    valid_rate,
)
from fedpcs.theory.sampling_error import gradient_growth, step_error

WEIGHT = np.array([0.5, 0.3, 0.2])


def three_clients(**changed):
    told = {"data_weight": WEIGHT, "draw_probability": np.array([0.2, 0.3, 0.5]), "cohort_size": 2, "num_rounds": 6}
    return make_federation(**{**told, "step_size": 0.1, "noise_power": 0.0, **changed})


def convex(**changed):
    told = {"smoothness": 1.0, "client_smoothness": np.array([1.0, 2.0, 0.5]), "pl": 0.3, "strong_convexity": 0.3}
    told |= {"gradient_at_optimum": np.array([1.0, 2.0, 3.0]), "initial_gap": 2.0, "initial_distance": 1.5}
    return Constants(**{**told, **changed})


@pytest.mark.parametrize("split", [0.1, 1.0, 3.0])
def test_growth_is_slope_and_floor_worked_out_by_hand(split):
    share = np.array([[0.1, 0.2, 0.4]])
    found = gradient_growth(share, three_clients(), convex(), split)
    # max of a β/θ: 0.1·1/0.5, 0.2·2/0.3, 0.4·0.5/0.2.
    assert found.slope[0] == pytest.approx(2 * (1 + split) * (0.4 / 0.3))
    assert found.floor[0] == pytest.approx((1 + 1 / split) * (0.1 * 1 + 0.2 * 4 + 0.4 * 9))


def test_growth_is_met_with_equality_where_it_can_be():
    """One direction, clients alike: ‖∇F_i‖² = 2β(F − F*)."""
    problem = make_quadratic(3, 1, condition=1.0, heterogeneity=0.0, smoothness=2.0)
    share = np.full((6, 3), 1.0 / 3.0)
    federation = three_clients(data_weight=problem.data_weight)
    found = gradient_growth(share, federation, problem.constants(np.ones(1)), 0.0)
    model = np.array([[1.7]])
    assert (problem.gradient_norms(model) ** 2).sum() / 3 == pytest.approx(found.slope[0] * problem.gaps(model)[0])
    assert not found.floor.any()


@pytest.mark.parametrize("split", [0.03, 0.3, 3.0])
def test_no_gradients_grow_beyond_it(split):
    problem = make_quadratic(3, 5, heterogeneity=2.0, even=False, curvature_spread=0.8)
    federation = three_clients(data_weight=problem.data_weight)
    rng = np.random.default_rng(0)
    models = rng.standard_normal((2000, 5)) * rng.uniform(0, 4, (2000, 1))
    share = np.tile([[0.4, 0.1, 0.7]], (6, 1))
    growth = gradient_growth(share, federation, problem.constants(np.ones(5)), split)
    found = problem.gradient_norms(models) ** 2 @ share[0]
    assert (found <= growth.slope[0] * problem.gaps(models) + growth.floor[0] + 1e-9).all()


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_drift_of_two_steps_is_exact_and_of_more_an_upper_bound(steps):
    """Clients alike, one direction: after h steps the gradient is (1 − βη/H)^h times the first."""
    problem = make_quadratic(3, 1, condition=1.0, heterogeneity=0.0)
    η, gradient = 0.8, 1.0
    federation = three_clients(data_weight=problem.data_weight, local_steps=steps, step_size=η)
    error = step_error(federation, problem.constants(np.ones(1)), 0.0)
    mean = np.mean([(1 - η / steps) ** h for h in range(steps)]) * gradient
    allowed = error.drift.slope[0] * 0.5  # the gap at w = 1
    assert (gradient - mean) ** 2 <= allowed * (1 + 1e-12)
    if steps == 2:
        assert (gradient - mean) ** 2 == pytest.approx(allowed)


def test_drift_goes_by_each_clients_own_curvature():
    known = convex(gradient_bound=np.array([1.0, 2.0, 3.0]))
    error = step_error(three_clients(local_steps=2), known, 1.0)
    by_hand = sum(
        θ * (β * 0.1 / 4) ** 2 * D**2 for θ, β, D in zip(WEIGHT, (1.0, 2.0, 0.5), (1.0, 2.0, 3.0), strict=True)
    )
    np.testing.assert_allclose(error.drift.floor, by_hand)


def test_minibatches_err_as_noise_of_the_same_power_does():
    quiet = three_clients()
    noisy = three_clients(noise_power=np.array([1.0, 2.0, 3.0]))
    varied = convex(gradient_variance=np.array([1.0, 2.0, 3.0]))
    for kind in (valid_rate, valid_error, valid_distance):
        np.testing.assert_allclose(kind(quiet, varied).terms["minibatch"], kind(noisy, convex()).terms["noise"])
    told = {"gradient_norm": np.ones(6), "gap": np.ones(6)}
    one, other = valid_progress(quiet, varied, **told), valid_progress(noisy, convex(), **told)
    np.testing.assert_allclose(one.terms["minibatch"], other.terms["noise"])


@pytest.mark.parametrize("steps", [1, 4])
def test_rate_and_error_are_the_recursion_with_all_that_grows_with_the_gap(steps):
    """A slow twin, one number at a time; clients alike, so that only slopes are at work."""
    alike = convex(gradient_at_optimum=np.zeros(3))
    federation = three_clients(local_steps=steps, noise_power=1.0)
    error = step_error(federation, alike, 0.0)
    η, β, μ = 0.1, 1.0, 0.3
    descent = η * (1 - β * η / 2) if steps == 1 else η / 2
    slope = β * η**2 / 2 * error.sampling.slope[0] + η / 2 * error.drift.slope[0]
    assert error.sampling.slope[0] > 0.0
    assert (error.drift.slope[0] > 0.0) == (steps > 1)
    gap, gaps, total = 2.0, [2.0], 0.0
    for _ in range(6):
        added = β * η**2 / 2 * error.noise[0]
        total += slope * gap + added
        gap = gap - 2 * μ * descent * gap + slope * gap + added
        gaps.append(gap)
    np.testing.assert_allclose(valid_rate(federation, alike).value, gaps)
    assert valid_error(federation, alike).value[-1] == pytest.approx((2.0 + total) / (6 * descent))


def test_clients_more_curved_than_their_mean_are_bounded_by_their_own():
    """Local steps drift by β_i, not by β of F, which is far below it where clients bend in different directions."""
    problem = make_quadratic(100, 10, heterogeneity=1.0, curvature_spread=1.0)
    federation = setting_of(problem, local_steps=5, step_size=0.3, num_rounds=20)
    start = np.full(10, 2.0)
    found, known = simulate(problem, federation, start, num_trajectories=500), problem.constants(start)
    assert known.client_smoothness.max() > 3.0 * known.smoothness
    assert (found.gap.high <= valid_rate(federation, known).value * (1 + 1e-9)).all()
    norm = np.sqrt(found.squared_gradient.value[:-1])
    bound = valid_progress(federation, known, gradient_norm=norm, gap=found.gap.value[:-1])
    slack = 3.0 * (found.gap.standard_error[1:] + found.gap.standard_error[:-1])
    assert (np.diff(found.gap.value) <= bound.value + slack).all()
