"""Bounds at their limits and as one thing changes: properties that any settings must have."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.theory import (
    Constants,
    make_federation,
    make_logistic,
    make_quadratic,
    paper_rate,
    valid_accuracy_loss,
    valid_distance,
    valid_error,
    valid_private_price,
    valid_progress,
    valid_rate,
    valid_reach,
)
from fedpcs.theory.federation import DESIGNS
from fedpcs.theory.sampling_error import step_error, weight_moments
from fedpcs.theory.trajectories import pivotal, poisson, with_replacement

CLIENTS = 30
few = settings(max_examples=40, deadline=None)
positive = st.floats(0.01, 10.0)
designs = st.sampled_from(DESIGNS)


def shares(seed):
    found = np.random.default_rng(seed).uniform(0.5, 2.0, CLIENTS)
    return found / found.sum()


def federation_of(**changed):
    told = {
        "data_weight": np.full(CLIENTS, 1.0 / CLIENTS),
        "draw_probability": np.full(CLIENTS, 1.0 / CLIENTS),
        "cohort_size": 10,
        "num_rounds": 20,
        "step_size": 0.1,
        "noise_power": 1.0,
    }
    return make_federation(**{**told, **changed})


def constants_of(**changed):
    told = {
        "smoothness": 1.0,
        "pl": 0.2,
        "strong_convexity": 0.2,
        "gradient_bound": np.full(CLIENTS, 3.0),
        "initial_gap": 5.0,
        "initial_distance": 4.0,
    }
    return Constants(**{**told, **changed})


def values(federation, constants):
    """All bounds that are of the same federation and constants, at the end."""
    found = {
        "rate": valid_rate(federation, constants),
        "distance": valid_distance(federation, constants),
        "error": valid_error(federation, constants),
        "progress": valid_progress(federation, constants, gradient_norm=np.ones(federation.num_rounds)),
    }
    return {name: float(bound.value[-1]) for name, bound in found.items()}


@few
@given(positive, positive, designs)
def test_less_noise_never_raises_a_bound_and_none_is_the_limit(power, other, design):
    less, more = sorted((power, other))
    low, high, least, none = (
        values(federation_of(noise_power=one, design=design), constants_of()) for one in (less, more, 1e-12, 0.0)
    )
    for name in low:
        assert none[name] <= low[name] <= high[name]
        assert least[name] == pytest.approx(none[name])
    assert not valid_rate(federation_of(noise_power=0.0, design=design), constants_of()).terms["noise"].any()


@few
@given(st.integers(1, CLIENTS), st.integers(1, CLIENTS), designs)
def test_more_clients_never_raise_a_bound(size, other, design):
    fewer, more = sorted((size, other))
    low, high = (values(federation_of(cohort_size=one, design=design), constants_of()) for one in (more, fewer))
    for name in low:
        assert low[name] <= high[name] + 1e-12


@pytest.mark.parametrize("design", ["fixed-size", "poisson"])
def test_without_replacement_nothing_is_left_of_the_draw_once_all_take_part(design):
    error = step_error(federation_of(cohort_size=CLIENTS, design=design), constants_of(), 1.0)
    assert not error.sampling.floor.any()
    fewer = step_error(federation_of(cohort_size=CLIENTS - 1, design=design), constants_of(), 1.0)
    assert 0.0 < fewer.sampling.floor.max() < 0.03
    # All of the noise is left: 1/N² each.
    np.testing.assert_allclose(error.noise, 1.0 / CLIENTS)


def test_with_replacement_the_draw_counts_even_if_as_many_are_drawn_as_there_are():
    error = step_error(federation_of(cohort_size=CLIENTS), constants_of(), 1.0)
    np.testing.assert_allclose(error.sampling.floor, 9.0 / CLIENTS)


@few
@given(st.integers(0, 999), designs)
def test_of_all_draws_the_even_one_brings_the_least_variance_if_clients_are_alike(seed, design):
    even = step_error(federation_of(cohort_size=10, design=design), constants_of(), 1.0)
    other = step_error(federation_of(cohort_size=10, design=design, draw_probability=shares(seed)), constants_of(), 1.0)
    assert (even.sampling.floor <= other.sampling.floor + 1e-12).all()
    assert (even.noise <= other.noise + 1e-12).all()


def test_in_the_long_run_only_what_rounds_add_is_left():
    """F* is reached but for a floor: what one round adds ÷ what it shrinks, and nothing without noise and draw."""
    told = {"num_rounds": 5000}
    bound = valid_rate(federation_of(**told), constants_of())
    assert bound.terms["start"][-1] < 1e-12
    η, β, μ = 0.1, 1.0, 0.2
    error = step_error(federation_of(), constants_of(), 1.0)
    variance = error.sampling.floor[0] + error.noise[0]
    assert bound.value[-1] == pytest.approx(β * η**2 / 2 * variance / (2 * μ * η * (1 - β * η / 2)))
    quiet = federation_of(cohort_size=CLIENTS, design="fixed-size", noise_power=0.0, **told)
    assert valid_rate(quiet, constants_of()).value[-1] < 1e-12
    assert valid_error(quiet, constants_of()).value[-1] == pytest.approx(5.0 / (5000 * η * (1 - β * η / 2)))


@few
@given(st.floats(0.001, 1.9))
def test_plain_gradient_descent_has_its_textbook_rate(step_size):
    federation = federation_of(cohort_size=CLIENTS, design="fixed-size", noise_power=0.0, step_size=step_size)
    bound = valid_rate(federation, constants_of())
    factor = 1 - 2 * 0.2 * step_size * (1 - step_size / 2)
    np.testing.assert_allclose(bound.value, 5.0 * factor ** np.arange(21), rtol=1e-12)


@few
@given(st.integers(2, 20), st.integers(2, 20))
def test_more_local_steps_never_lower_a_bound_and_one_has_no_drift(steps, other):
    fewer, more = sorted((steps, other))
    low, high = (valid_rate(federation_of(local_steps=one), constants_of()) for one in (fewer, more))
    assert low.value[-1] <= high.value[-1] * (1 + 1e-12)
    one = valid_rate(federation_of(), constants_of())
    assert not one.terms["drift"].any()
    assert one.value[-1] <= low.value[-1]


def test_noise_of_the_last_round_counts_most_and_the_paper_has_it_count_least():
    early, late = np.zeros((20, CLIENTS)), np.zeros((20, CLIENTS))
    early[0], late[-1] = 1.0, 1.0
    for rate, later_is_worse in ((valid_rate, True), (paper_rate, False)):
        first, last = (rate(federation_of(noise_power=one), constants_of()).terms["noise"][-1] for one in (early, late))
        assert (last > first) == later_is_worse


def test_the_accuracy_loss_falls_as_one_over_rounds():
    rounds = 400
    constants = constants_of()
    federation = federation_of(num_rounds=rounds, step_size=1.0 / (0.2 * np.arange(1, rounds + 1)))
    bound = valid_accuracy_loss(federation, constants, gradient_norm_bound=3.0)
    assert bound.has_premises
    times = np.arange(2, rounds + 1)
    scaled = bound.value[50:] * times[50:]
    assert scaled.max() / scaled.min() < 1.1


@pytest.mark.parametrize(("draw", "design"), [(with_replacement, 0), (pivotal, 1), (poisson, 2)])
def test_draws_have_the_moments_that_bounds_suppose(draw, design):
    """E m = c, E m² = r c², and the variance of any sum is below that of the multipliers."""
    federation = federation_of(draw_probability=shares(1), design=DESIGNS[design])
    count = federation.expected_count[0]
    drawn = draw(count, 40_000, np.random.default_rng(0))
    spread, repeats = (one[0] for one in weight_moments(federation))
    np.testing.assert_allclose(drawn.mean(axis=0), count, atol=0.02)
    np.testing.assert_allclose((drawn**2).mean(axis=0), repeats * count**2, atol=0.03)
    if design != 2:
        assert (drawn.sum(axis=1) == 10).all()
    if design == 1:
        covariance = np.cov(drawn.T)
        assert (covariance - np.diag(np.diag(covariance))).max() < 0.01
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights = rng.standard_normal(CLIENTS)
        assert (drawn / count @ weights).var() <= 1.05 * (spread * weights**2).sum()


def test_bad_input_is_refused_by_name():
    for changed, words in (
        ({"draw_probability": np.full(CLIENTS, 0.5)}, "draw_probability must sum to 1"),
        ({"noise_power": float("nan")}, "noise_power"),
        ({"step_size": 0.0}, "step_size"),
        ({"step_size": [0.1, 0.2]}, "step_size"),
        ({"cohort_size": 2 * CLIENTS, "design": "poisson"}, "at most 1 without replacement"),
        ({"design": "lottery"}, "design must be one of"),
        ({"local_steps": 0}, "local_steps"),
        ({"cohort_size": 2.6}, "cohort_size must be a whole number"),
        ({"noise_power": np.ones(3)}, "noise_power"),
    ):
        with pytest.raises(InvalidInput, match=words):
            federation_of(**changed)
    with pytest.raises(InvalidInput, match="smoothness"):
        valid_rate(federation_of(), constants_of(smoothness=float("nan")))
    with pytest.raises(InvalidInput, match="pl must be"):
        valid_rate(federation_of(), constants_of(pl=2.0))
    with pytest.raises(InvalidInput, match="gradient_bound is missing"):
        valid_rate(federation_of(), constants_of(gradient_bound=None))
    with pytest.raises(InvalidInput, match="gradient_bound is missing"):
        paper_rate(federation_of(), constants_of(gradient_bound=None))
    quadratic = make_quadratic(CLIENTS).constants(np.ones(20))
    with pytest.raises(InvalidInput, match="gap is missing"):
        valid_progress(federation_of(), quadratic, gradient_norm=np.ones(20))
    everyone = federation_of(cohort_size=CLIENTS, design="fixed-size", local_steps=5)  # only drift grows with the gap
    with pytest.raises(InvalidInput, match="gap is missing"):
        valid_progress(everyone, quadratic, gradient_norm=np.ones(20))
    for bound, name in (
        (valid_rate, "initial_gap"),
        (valid_error, "initial_gap"),
        (valid_distance, "initial_distance"),
    ):
        with pytest.raises(InvalidInput, match=f"{name} is missing"):
            bound(federation_of(), replace(constants_of(), **{name: None}))
        for wrong in (-1.0, float("nan"), float("inf")):
            with pytest.raises(InvalidInput, match=name):
                bound(federation_of(), replace(constants_of(), **{name: wrong}))
    with pytest.raises(InvalidInput, match=r"highest_budget\[1\]"):
        valid_private_price([1.0, 1.0], [0.5], lowest_budget=[0.1, 5.0], highest_budget=[0.5, 2.0])


def test_at_the_optimum_nothing_is_reached_before_the_first_round():
    bound = valid_reach(federation_of(), replace(constants_of(), initial_distance=0.0))
    assert bound.value[0] == 0.0
    assert np.isfinite(bound.value).all()


def test_premises_that_fail_are_named():
    assert "step size × smoothness below 2" in valid_rate(federation_of(step_size=3.0), constants_of()).missing[0]
    assert "Polyak" in " ".join(valid_rate(federation_of(), constants_of(pl=0.0)).missing)
    varied = replace(constants_of(), gradient_variance=np.ones(CLIENTS))
    assert "all of a client's records" in " ".join(valid_rate(federation_of(local_steps=3), varied).missing)


@pytest.mark.parametrize("problem", [make_quadratic(7, 4, even=False), make_logistic(7, 4)])
def test_sums_and_norms_are_those_of_the_gradients_and_gradients_those_of_the_loss(problem):
    rng = np.random.default_rng(0)
    models, factors = rng.standard_normal((3, 4)), rng.uniform(0, 2, (3, 7))
    each = problem.client_gradients(models)
    np.testing.assert_allclose(problem.summed_gradients(models, factors), np.einsum("mc,mcd->md", factors, each))
    np.testing.assert_allclose(problem.gradient_norms(models), np.linalg.norm(each, axis=2))
    whole = problem.summed_gradients(models, np.tile(problem.data_weight, (3, 1)))
    nudge = 1e-6 * np.eye(4)
    slopes = [(problem.gaps(models + way) - problem.gaps(models - way)) / 2e-6 for way in nudge]
    np.testing.assert_allclose(whole, np.array(slopes).T, atol=1e-7)
    np.testing.assert_allclose(problem.gaps(problem.optimum[None]), 0.0, atol=1e-12)
    assert (problem.gaps(models) > 0.0).all()
