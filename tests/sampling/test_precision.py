"""Precision weights are those of least mean-squared error, and the drift they need is found from noisy updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from fedpcs.errors import InvalidInput
from fedpcs.sampling.precision import estimate_drift, precision_weights


@st.composite
def cohorts(draw, smallest=0.0):
    """Shares of some of the clients, noise powers, drift."""
    n = draw(st.integers(1, 8))
    part = draw(st.floats(0.05, 1.0))
    share = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=n, max_size=n)))
    noise = np.array(draw(st.lists(st.floats(smallest, 50.0), min_size=n, max_size=n)))
    return part * share / share.sum(), noise, draw(st.floats(0.01, 10.0))


@st.composite
def uneven_cohorts(draw):
    """The same, some clients drifting more than others."""
    θ, noise, _ = draw(cohorts())
    return θ, noise, np.array(draw(st.lists(st.floats(0.01, 10.0), min_size=θ.size, max_size=θ.size)))


def mean_squared_error(w, θ, v, δ2):
    """What depends on the weights of those drawn, given that they add up to one."""
    return float(np.sum((w - θ) ** 2 * δ2) + np.sum(w**2 * v))


def stationary(θ, v, δ2):
    """The same minimum from the linear equations of Lagrange: 2(δ² + v)w − 2δ²θ = λ, Σw = 1."""
    n = θ.size
    matrix = np.block([[np.diag(2 * (δ2 + v)), -np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    return np.linalg.solve(matrix, np.append(2 * δ2 * θ, 1.0))[:n]


def noisy_updates(rng, drift, noise_power, num_parameters, mean=1.0):
    """Updates of the stated model: a common mean, drift and noise shared out evenly over the coordinates."""
    shape = (len(noise_power), num_parameters)
    spread = np.sqrt((drift + np.asarray(noise_power)) / num_parameters)
    return mean + rng.standard_normal(shape) * spread[:, None]


@settings(max_examples=60, deadline=None)
@given(st.one_of(cohorts(), uneven_cohorts()))
def test_weights_solve_the_equations_of_least_error(cohort):
    found = precision_weights(*cohort)
    assert found == pytest.approx(stationary(*cohort), rel=1e-8, abs=1e-10)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_minimiser_that_knows_no_formula_ends_at_the_same_weights():
    θ, v, δ2 = np.array([0.05, 0.1, 0.2, 0.02]), np.array([0.3, 4.0, 0.0, 20.0]), 1.7
    result = optimize.minimize(
        mean_squared_error,
        np.full(4, 0.25),
        (θ, v, δ2),
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0},
        options={"ftol": 1e-14},
    )
    assert result.success
    assert precision_weights(θ, v, δ2) == pytest.approx(result.x, abs=1e-5)


@pytest.mark.parametrize("loudness", [1e6, 1e10, 1e14])
def test_one_drowned_client_leaves_the_others_their_weights(loudness):
    θ, v = np.array([0.1, 0.2, 0.1]), np.array([0.0, 3.0, 1.0])
    found = precision_weights(np.append(θ, 0.1), np.append(v, loudness), 1.0)
    assert found == pytest.approx([*precision_weights(θ, v, 1.0), 0.0], abs=1e-5)


def test_without_drift_only_the_noiseless_count():
    found = precision_weights(np.array([0.1, 0.2, 0.3]), np.array([0.0, 5.0, 0.0]), 0.0)
    assert found == pytest.approx([0.4, 0.0, 0.6], abs=1e-9)


def test_the_error_is_what_the_model_says():
    """Ten clients, four of them drawn, 40,000 rounds: the whole formula, those not drawn included."""
    rng = np.random.default_rng(3)
    θ = rng.dirichlet(np.full(10, 3.0))
    drawn, v, δ2, d = np.array([1, 4, 5, 8]), np.array([0.2, 3.0, 1.0, 8.0]), 2.0, 3
    w = precision_weights(θ[drawn], v, δ2)
    mean = rng.normal(size=d) * 10
    updates = mean + rng.standard_normal((40_000, 10, d)) * np.sqrt(δ2 / d)
    noise = rng.standard_normal((40_000, 4, d)) * np.sqrt(v / d)[:, None]
    error = np.einsum("k,rkd->rd", w, updates[:, drawn] + noise) - np.einsum("n,rnd->rd", θ, updates)
    squared = (error**2).sum(axis=1)
    rest = np.delete(θ, drawn)
    expected = mean_squared_error(w, θ[drawn], v, δ2) + np.sum(rest**2) * δ2
    assert abs(squared.mean() - expected) < 4 * squared.std() / np.sqrt(squared.size)
    assert squared.std() / np.sqrt(squared.size) < 0.01 * expected


@pytest.mark.parametrize(
    ("θ", "v", "δ2", "message"),
    [
        ([0.1, 0.2], [1.0], 1.0, "noise_power must have 2 entries"),
        ([0.1, -0.2], [1.0, 1.0], 1.0, r"data_weight\[1\]"),
        ([0.1, 0.2], [1.0, np.nan], 1.0, r"noise_power\[1\]"),
        ([0.1, 0.2], [1.0, 1.0], -1.0, "drift"),
        ([0.1, 0.2], [1.0, 1.0], [1.0, -1.0], r"drift\[1\]"),
    ],
)
def test_impossible_cohorts_are_refused(θ, v, δ2, message):
    with pytest.raises(InvalidInput, match=message):
        precision_weights(np.array(θ), np.array(v), δ2)


@pytest.mark.parametrize("drift", [0.5, 4.0])
def test_drift_is_found_under_noise_that_differs_from_client_to_client(drift):
    rng = np.random.default_rng(4)
    found = []
    for _ in range(6):
        noise = 10.0 ** rng.uniform(-1, 1.5, 50)
        found.append(estimate_drift(noisy_updates(rng, drift, noise, 2_000), noise))
    assert np.mean(found) == pytest.approx(drift, rel=0.1)
    assert found == pytest.approx(np.full(6, drift), rel=0.2)


def test_noise_alone_is_not_taken_for_drift():
    """Chance puts about half of such cohorts above zero, and none of them far."""
    rng = np.random.default_rng(7)
    noise = np.full(30, 5.0)
    found = np.array([estimate_drift(noisy_updates(rng, 0.0, noise, 1_000), noise) for _ in range(20)])
    assert found.max() < 0.05 * 5.0
    assert (found == 0.0).sum() >= 4
    claimed_louder = [estimate_drift(noisy_updates(rng, 0.0, noise, 1_000), 1.2 * noise) for _ in range(10)]
    assert claimed_louder == [0.0] * 10


@pytest.mark.parametrize("loudness", [1e3, 1e6, 1e9, 1e13])
def test_one_drowned_update_hides_nothing(loudness):
    rng = np.random.default_rng(8)
    noise = rng.uniform(0.5, 2.0, 20)
    updates = noisy_updates(rng, 1.0, noise, 500)
    drowned = noisy_updates(rng, 1.0, [loudness], 500)
    found = estimate_drift(np.vstack([updates, drowned]), np.append(noise, loudness))
    assert found == pytest.approx(estimate_drift(updates, noise), rel=0.05)


@pytest.mark.parametrize("noise", [[1.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]])
def test_impossible_noise_is_refused(noise):
    with pytest.raises(InvalidInput, match="noise_power"):
        estimate_drift(np.ones((2, 3)), noise)
