"""`aocs` spends a cohort where norms are large: golden vectors, the secure variant, and what noise does to norms."""

import numpy as np
import pytest

from fedpcs.sampling import draw, make_feedback, make_sampler, make_view, remember
from fedpcs.sampling.samplers.aocs import aggregation_only_inclusion, filled, optimal_inclusion

GOLDEN = [
    ([1, 2, 3, 4], 2, [0.2, 0.4, 0.6, 0.8], 20),
    ([1, 1, 1, 10], 2, [1 / 3, 1 / 3, 1 / 3, 1], 6),
    ([1, 2, 4, 8, 16, 32], 3, [1 / 15, 2 / 15, 4 / 15, 8 / 15, 1, 1], 140),
    ([5, 5, 5, 5], 2, [0.5] * 4, 100),
]


def variance(weighted_norm, inclusion):
    """Σ (1 − p)/p·a²: of independent draws with weights θ/p."""
    return np.sum((1 - inclusion) / inclusion * np.square(weighted_norm))


def inclusion_of(norm, cohort_size, sizes=None, **settings):
    view = make_view(cohort_size, np.ones(len(norm)) if sizes is None else sizes, update_norm=norm)
    return draw(make_sampler("aocs", **settings), view, np.random.default_rng(0)).inclusion


def heavy_tailed(seed):
    rng = np.random.default_rng(seed)
    num_clients = int(rng.integers(2, 80))
    norm = rng.lognormal(0.0, rng.uniform(0.5, 3.0), num_clients)
    norm[rng.random(num_clients) < 0.1] = 0.0
    return norm, int(rng.integers(1, num_clients + 1))


@pytest.mark.parametrize(("norm", "cohort_size", "expected", "least"), GOLDEN)
def test_golden_vectors(norm, cohort_size, expected, least):
    found = inclusion_of(norm, cohort_size)
    assert found == pytest.approx(expected, rel=1e-12)
    assert variance(norm, found) == pytest.approx(least, rel=1e-12)
    assert inclusion_of(norm, cohort_size, probabilities="aggregation-only") == pytest.approx(expected, rel=1e-12)


def test_with_sums_alone_and_enough_passes_it_arrives_at_the_exact_probabilities():
    most = 0
    for seed in range(200):
        norm, cohort_size = heavy_tailed(seed)
        if not norm.any():
            continue
        exact = optimal_inclusion(norm, cohort_size)
        assert aggregation_only_inclusion(norm, cohort_size, 1_000) == pytest.approx(exact, rel=1e-9, abs=1e-12)
        gaps = [np.abs(aggregation_only_inclusion(norm, cohort_size, n) - exact).max() for n in range(14)]
        most = max(most, next(n for n, gap in enumerate(gaps) if gap < 1e-9))
    assert 4 < most <= 13


def noisy_norms(clean, noise_power, num_parameters, rng):
    """‖u + n‖ for Gaussian n: the part along u, and the rest."""
    sigma = np.sqrt(noise_power / num_parameters)
    along = clean + sigma * rng.standard_normal(clean.size)
    return np.sqrt(along**2 + sigma**2 * rng.chisquare(num_parameters - 1, clean.size))


def test_noise_makes_the_least_private_look_dull_and_subtracting_it_undoes_that():
    """All have norm 1; noise of norm 6.3 at ρ = 0.01 and 0.18 at ρ = 12 (W = 1, |D| = 500, d = 50,000)."""
    budget = np.array([0.01] * 5 + [12.0] * 5)
    num_parameters = 50_000
    noise_power = num_parameters * 2.0 / (budget * 500**2)
    assert np.sqrt(noise_power[[0, -1]]) == pytest.approx([6.32, 0.183], rel=0.01)
    rng = np.random.default_rng(0)
    found = {}
    for subtract_noise in (False, True):
        sampler = make_sampler("aocs", subtract_noise=subtract_noise, floor=0.0)
        total = np.zeros(10)
        for _ in range(100):
            norm = noisy_norms(np.ones(10), noise_power, num_parameters, rng)
            view = make_view(3, np.full(10, 500), update_norm=norm, noise_power=noise_power)
            total += draw(sampler, view, rng).inclusion
        found[subtract_noise] = total[:5].sum() / total[5:].sum()
    assert found[False] == pytest.approx(6.4 / 1.017, rel=0.02)
    assert found[True] == pytest.approx(1.0, abs=0.05)


def test_last_known_norms_are_those_of_participants_and_their_mean_for_the_rest():
    sampler = make_sampler("aocs", norms="last-known", floor=0.0)
    view = make_view(2, np.ones(4))
    first = draw(sampler, view, np.random.default_rng(0))
    assert first.inclusion == pytest.approx([0.5] * 4)
    memory = remember(sampler, view, first, make_feedback(np.array([1, 3]), updates=[[3.0, 4.0], [0.0, 1.0]]))
    assert memory["norm"] == pytest.approx([np.nan, 5.0, np.nan, 1.0], nan_ok=True)
    assert filled(memory["norm"]).tolist() == [3.0, 5.0, 3.0, 1.0]
    second = draw(sampler, make_view(2, np.ones(4), memory=memory), np.random.default_rng(0))
    assert second.inclusion == pytest.approx([0.5, 5 / 6, 0.5, 1 / 6])
