"""`optimal` draws by θ·√(G² + v): exact, of least variance, and the other way round than budgets."""

import numpy as np
import pytest

from fedpcs._inclusion import inclusion_probability
from fedpcs.sampling import biased_draw, draw, make_feedback, make_sampler, make_view, remember


def world(seed=0, num_clients=10):
    rng = np.random.default_rng(seed)
    sizes, norm, noise = (
        rng.integers(20, 200, num_clients),
        rng.uniform(0.5, 3, num_clients),
        rng.pareto(1, num_clients),
    )
    return sizes, norm, noise


def test_draw_probabilities_are_exact():
    view = make_view(1, [10, 20, 70], update_norm=[3.0, 0.0, 1.0], noise_power=[16.0, 4.0, 0.0])
    drawn = draw(make_sampler("optimal", norms="current", floor=0.0), view, np.random.default_rng(0))
    assert drawn.draw_probability == pytest.approx(np.array([0.5, 0.4, 0.7]) / 1.6, rel=1e-12)
    assert drawn.inclusion == pytest.approx(np.array([0.5, 0.4, 0.7]) / 1.6, rel=1e-12)


def test_no_other_inclusion_with_the_same_sum_has_less_variance():
    for seed in range(5):
        sizes, norm, noise = world(seed)
        view = make_view(4, sizes, update_norm=norm, noise_power=noise)
        sampler = make_sampler("optimal", norms="current", floor=0.0)
        inclusion = draw(sampler, view, np.random.default_rng(0)).inclusion
        moment = view.data_weight**2 * (norm**2 + noise)
        rng = np.random.default_rng(seed)
        for _ in range(200):
            other = inclusion_probability(rng.uniform(0.05, 1.0, 10) * rng.choice([1.0, 1 / inclusion.max()]), 4)
            near = inclusion_probability(inclusion * rng.uniform(0.9, 1.1, 10), 4)
            assert min(np.sum(moment / other), np.sum(moment / near)) >= np.sum(moment / inclusion) * (1 - 1e-12)


def test_it_draws_more_of_those_whose_budget_is_small():
    budget = np.geomspace(0.01, 12.0, 8)
    noise = 50.0 / budget
    view = make_view(2, np.full(8, 100), budget=budget, noise_power=noise)
    found = draw(make_sampler("optimal"), view, np.random.default_rng(0)).inclusion
    by_budget = draw(make_sampler("fedpcs"), view, np.random.default_rng(0)).inclusion
    assert (np.diff(found) <= 0.0).all()
    assert (np.diff(by_budget) >= 0.0).all()
    assert np.sum((1 + noise) / found) < np.sum((1 + noise) * 8 / 2) < np.sum((1 + noise) / by_budget)


def test_it_begins_with_the_norm_it_is_given_and_then_goes_by_what_it_heard():
    sampler = make_sampler("optimal", initial_norm=2.0, floor=0.0)
    noise = np.array([0.0, 5.0, 12.0, 32.0])
    view = make_view(1, np.ones(4), noise_power=noise)
    first = draw(sampler, view, np.random.default_rng(0))
    assert first.draw_probability == pytest.approx(np.array([2, 3, 4, 6]) / 15)
    heard = make_feedback(np.array([1, 2]), update_norm=[3.0, 4.0], noise_power=[5.0, 20.0])
    memory = remember(sampler, view, biased_draw(heard.clients, np.ones(2)), heard)
    assert memory["norm"] == pytest.approx([np.nan, 2.0, 0.0, np.nan], nan_ok=True)
    second = draw(sampler, make_view(1, np.ones(4), noise_power=noise, memory=memory), np.random.default_rng(0))
    assert second.draw_probability == pytest.approx(
        np.sqrt([1.0, 9.0, 12.0, 33.0]) / np.sqrt([1.0, 9.0, 12.0, 33.0]).sum()
    )
