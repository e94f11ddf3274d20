"""Estimated constants against exact ones."""

import numpy as np
import pytest
from theory_settings import NUM_CLIENTS, federation_of

from fedpcs.errors import InvalidInput
from fedpcs.theory import make_logistic, make_quadratic, simulate
from fedpcs.theory.estimates import from_log, probe, top_curvature


def test_on_a_quadratic_constants_are_found_exactly():
    problem = make_quadratic(NUM_CLIENTS, 20, condition=5.0)
    exact = problem.constants(np.full(20, 2.0))
    found = probe(problem, np.full(20, 2.0))
    assert found.smoothness.value == pytest.approx(exact.smoothness, rel=0.01)
    assert found.smoothness.low == pytest.approx(found.smoothness.high, rel=0.02)
    assert exact.pl <= found.pl.low <= found.pl.high <= exact.smoothness
    variance = float(problem.data_weight @ exact.gradient_at_optimum**2)
    assert found.client_variance.value == pytest.approx(variance)  # the same everywhere: clients bend alike


def test_on_logistic_regression_they_keep_within_what_holds_everywhere():
    problem = make_logistic(NUM_CLIENTS, 5)
    exact = problem.constants(np.full(5, 2.0))
    found = probe(problem, np.full(5, 2.0))
    assert 0.3 * exact.smoothness < found.smoothness.value <= exact.smoothness
    assert found.smoothness.low < found.smoothness.high
    assert found.pl.value >= exact.pl
    at_points = problem.client_gradients(np.full((1, 5), 2.0))[0]
    assert found.gradient_bound.value >= 0.5 * np.linalg.norm(at_points, axis=1).max()


def test_top_curvature_of_a_known_hessian():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    hessian = basis @ np.diag([9.0, 4.0, 3.0, 1.0, 0.5, 0.1]) @ basis.T
    assert top_curvature(lambda w: w @ hessian, np.ones(6), rng) == pytest.approx(9.0, rel=1e-6)
    assert top_curvature(lambda w: np.zeros_like(w), np.ones(6), rng) == 0.0


def test_a_log_of_noisy_steps_tells_the_curvature():
    """Isotropic, so that noise meets the same curvature as the signal; the interval covers it."""
    problem = make_quadratic(NUM_CLIENTS, 50, condition=1.0, heterogeneity=0.0)
    rounds, η, power = 30, 0.3, 20.0
    federation = federation_of(problem, num_rounds=rounds, step_size=η, noise_power=power, design="fixed-size")
    start = np.full(50, 0.1)
    covered = 0
    for seed in range(20):
        one = simulate(problem, federation, start, num_trajectories=2, seed=seed)
        gradient = np.sqrt(one.squared_gradient.value[:-1])
        noise = np.full(rounds, η * np.sqrt(power / 20))
        found = from_log(
            loss=one.gap.value + 1e-9,
            signal=η * gradient,
            spread=np.zeros(rounds),
            noise=noise,
            client_spread=np.zeros(rounds),
            step_size=η,
        )
        covered += found.smoothness.low <= 1.0 <= found.smoothness.high
        assert found.pl.value == pytest.approx(1.0, rel=0.01)
    assert covered >= 17


def test_bad_logs_are_refused():
    told = dict.fromkeys(("signal", "spread", "noise", "client_spread"), np.ones(5))
    with pytest.raises(InvalidInput, match="three rounds"):
        from_log(loss=np.ones(3), **dict.fromkeys(told, np.ones(2)), step_size=1.0)
    with pytest.raises(InvalidInput, match="signal"):
        from_log(loss=np.ones(6), **{**told, "signal": np.full(5, np.nan)}, step_size=1.0)
    with pytest.raises(InvalidInput, match="lowest_loss"):
        from_log(loss=np.ones(6), **told, step_size=1.0, lowest_loss=2.0)
    with pytest.raises(InvalidInput, match="no round moved"):
        from_log(loss=np.ones(6), **dict.fromkeys(told, np.zeros(5)), step_size=1.0)
