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


@settings(max_examples=40, deadline=None)
@given(st.one_of(cohorts(), uneven_cohorts()), st.integers(0, 2**32))
def test_no_other_weights_that_add_up_to_one_do_better(cohort, seed):
    found = precision_weights(*cohort)
    step = np.random.default_rng(seed).normal(size=found.size)
    step -= step.mean()
    least = mean_squared_error(found, *cohort)
    for length in (1e-3, 0.1, 1.0):
        assert mean_squared_error(found + length * step, *cohort) >= least * (1 - 1e-9)


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


@settings(max_examples=40, deadline=None)
@given(cohorts())
def test_without_noise_a_client_speaks_for_itself_and_an_equal_share_of_the_rest(cohort):
    θ, _, δ2 = cohort
    expected = θ + (1 - θ.sum()) / θ.size
    assert precision_weights(θ, np.zeros_like(θ), δ2) == pytest.approx(expected)
    assert precision_weights(θ, np.zeros_like(θ), 0.0) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(cohorts(smallest=0.5))
def test_under_heavy_noise_weights_go_like_one_over_the_noise(cohort):
    θ, v, δ2 = cohort
    expected = (1 / v) / (1 / v).sum()
    assert precision_weights(θ, 1e9 * v, δ2) == pytest.approx(expected, rel=1e-5)
    assert precision_weights(θ, v, 0.0) == pytest.approx(expected, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(uneven_cohorts())
def test_without_noise_the_rest_is_shared_in_favour_of_clients_that_drift_little(cohort):
    θ, _, δ2 = cohort
    expected = θ + (1 - θ.sum()) * (1 / δ2) / (1 / δ2).sum()
    assert precision_weights(θ, np.zeros_like(θ), δ2) == pytest.approx(expected)


@pytest.mark.parametrize("loudness", [1e6, 1e10, 1e14])
def test_one_drowned_client_leaves_the_others_their_weights(loudness):
    θ, v = np.array([0.1, 0.2, 0.1]), np.array([0.0, 3.0, 1.0])
    found = precision_weights(np.append(θ, 0.1), np.append(v, loudness), 1.0)
    assert found == pytest.approx([*precision_weights(θ, v, 1.0), 0.0], abs=1e-5)


def test_without_drift_only_the_noiseless_count():
    found = precision_weights(np.array([0.1, 0.2, 0.3]), np.array([0.0, 5.0, 0.0]), 0.0)
    assert found == pytest.approx([0.4, 0.0, 0.6], abs=1e-9)


@pytest.mark.parametrize("noise", [0.0, 3.0, 1e12])
@pytest.mark.parametrize("drift", [0.0, 1.0])
def test_a_single_client_has_all_the_weight(noise, drift):
    assert precision_weights(np.array([0.1]), np.array([noise]), drift) == pytest.approx([1.0])


@settings(max_examples=40, deadline=None)
@given(cohorts(), st.randoms(use_true_random=False))
def test_weights_go_with_their_clients(cohort, random):
    θ, v, δ2 = cohort
    order = random.sample(range(θ.size), θ.size)
    assert precision_weights(θ[order], v[order], δ2) == pytest.approx(precision_weights(θ, v, δ2)[order])


@settings(max_examples=40, deadline=None)
@given(cohorts(), st.floats(1e-6, 1e6))
def test_the_unit_of_updates_does_not_matter(cohort, unit):
    θ, v, δ2 = cohort
    assert precision_weights(θ, unit * v, unit * δ2) == pytest.approx(precision_weights(θ, v, δ2))


@settings(max_examples=40, deadline=None)
@given(cohorts())
def test_more_noise_never_means_more_weight(cohort):
    θ, v, δ2 = cohort
    louder = v.copy()
    louder[0] += 1.0
    assert precision_weights(θ, louder, δ2)[0] <= precision_weights(θ, v, δ2)[0] * (1 + 1e-9)


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
        ([0.1, 0.2], [1.0, -1e-9], 1.0, r"noise_power\[1\]"),
        ([0.1, 0.2], [1.0, 1.0], -1.0, "drift"),
        ([0.1, 0.2], [1.0, 1.0], np.inf, "drift"),
        ([0.1, 0.2], [1.0, 1.0], [1.0, -1.0], r"drift\[1\]"),
        ([0.1, 0.2], [1.0, 1.0], [1.0, 1.0, 1.0], "drift"),
        ([], [], 1.0, "data_weight"),
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


def test_drift_is_found_without_noise():
    """Then it is the plain sample variance."""
    rng = np.random.default_rng(5)
    updates = rng.normal(size=(20, 30))
    expected = ((updates - updates.mean(axis=0)) ** 2).sum() / 19
    assert estimate_drift(updates, np.zeros(20)) == pytest.approx(expected, rel=1e-8)


def test_drift_is_found_though_most_clients_agree():
    assert estimate_drift([[-1.0], [0.0], [0.0], [0.0], [1.0]], np.zeros(5)) == pytest.approx(0.5, rel=1e-8)


def test_the_spread_left_over_is_what_noise_and_drift_explain():
    """The defining equation, with the mean weighted as it should be, on a cohort with a noiseless client."""
    rng = np.random.default_rng(6)
    noise = np.array([0.0, 0.5, 2.0, 8.0, 1.0])
    updates = noisy_updates(rng, 3.0, noise, 40)
    weight = 1 / (estimate_drift(updates, noise) + noise)
    mean = weight @ updates / weight.sum()
    assert weight @ ((updates - mean) ** 2).sum(axis=1) == pytest.approx(4.0, rel=1e-6)


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


def test_a_single_update_shows_no_drift():
    assert estimate_drift([[1.0, 2.0, 3.0]], [0.5]) == 0.0
    assert estimate_drift([[1.0, 2.0, 3.0]], [0.0]) == 0.0


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_updates_all_alike_show_no_drift(noise):
    updates = np.tile([0.1, -3.0, 1e3], (7, 1))
    assert estimate_drift(updates, np.full(7, noise)) == pytest.approx(0.0, abs=1e-18)
    assert estimate_drift(np.zeros((4, 2)), np.full(4, noise)) == 0.0


@pytest.mark.parametrize("unit", [1e-6, 3.0, 1e5])
def test_drift_has_the_unit_of_squared_updates(unit):
    rng = np.random.default_rng(9)
    noise = rng.uniform(0.0, 3.0, 12)
    updates = noisy_updates(rng, 2.0, noise, 50)
    found = estimate_drift(unit * updates, unit**2 * noise)
    assert found == pytest.approx(unit**2 * estimate_drift(updates, noise), rel=1e-7)


def test_drift_does_not_depend_on_where_the_mean_is_or_who_comes_first():
    rng = np.random.default_rng(10)
    noise = rng.uniform(0.0, 3.0, 12)
    updates = noisy_updates(rng, 2.0, noise, 50)
    found = estimate_drift(updates, noise)
    order = rng.permutation(12)
    assert estimate_drift(updates + rng.normal(size=50) * 100, noise) == pytest.approx(found, rel=1e-7)
    assert estimate_drift(updates[order], noise[order]) == pytest.approx(found, rel=1e-7)


@pytest.mark.parametrize(
    "updates",
    [[1.0, 2.0], np.zeros((0, 3)), [[[1.0]]], [[1.0, np.nan]], [[np.inf, 0.0]], [[1.0, 2.0], [3.0]], [["a", "b"]]],
    ids=["flat", "nobody", "too deep", "NaN", "infinite", "ragged", "text"],
)
def test_impossible_updates_are_refused(updates):
    with pytest.raises(InvalidInput, match=r"^(updates(\[0, \d\])?|noise_power) must be"):
        estimate_drift(updates, np.ones(len(updates)))


@pytest.mark.parametrize("noise", [[1.0], [1.0, -1.0], [1.0, np.nan], [[1.0, 1.0]]])
def test_impossible_noise_is_refused(noise):
    with pytest.raises(InvalidInput, match="noise_power"):
        estimate_drift(np.ones((2, 3)), noise)
