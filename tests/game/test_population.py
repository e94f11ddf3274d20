"""Populations: one by one, as histograms, compressed; and what is refused."""

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.game import compress, histogram, individuals, uniform, uniform_density


def test_the_default_population_is_the_published_one():
    """numpy.random.default_rng(0): first ψ, then ρ⁰."""
    rng = np.random.default_rng(0)
    crowd = uniform(100, seed=0)
    assert crowd.privacy_aversion == pytest.approx(rng.uniform(0, 1, 100).clip(0.001, 0.999))
    assert crowd.initial_budget == pytest.approx(rng.uniform(0.01, 12, 100))


def test_individuals_weigh_the_same():
    crowd = individuals([0.1, 0.2, 0.3], [1, 2, 3], [10, 20, 30])
    assert crowd.is_individual
    assert crowd.client_count == pytest.approx([1, 1, 1])
    assert crowd.data_weight == pytest.approx([1 / 6, 1 / 3, 1 / 2])


def test_data_weights_of_all_clients_add_up_to_one():
    crowd = histogram([0.1, 0.2], [1, 2], [3, 1], num_clients=40, num_samples=[5, 7])
    assert crowd.client_count @ crowd.data_weight == pytest.approx(1.0)
    assert not crowd.is_individual


@pytest.mark.parametrize("clients", [500, 20_000])
def test_compressing_keeps_the_means(clients):
    crowd = uniform(clients, seed=3)
    small = compress(crowd, (16, 16))
    assert small.num_types <= 256
    assert small.num_clients == clients
    assert small.weight.sum() == pytest.approx(1.0)
    for name in ("privacy_aversion", "initial_budget"):
        assert small.mean(getattr(small, name)) == pytest.approx(crowd.mean(getattr(crowd, name)))


def test_compressing_equals_is_the_identity():
    crowd = individuals([0.5] * 10, [3.0] * 10)
    small = compress(crowd)
    assert small.num_types == 1
    assert small.initial_budget == pytest.approx([3.0])


def test_the_density_has_the_density_s_moments():
    density = uniform_density(1000, (0.0 + 1e-9, 12.0), (50, 50))
    assert density.num_clients == 1000
    assert density.mean(density.initial_budget) == pytest.approx(6.0)
    assert density.mean(density.initial_budget**2) == pytest.approx(48.0, rel=1e-3)


BAD = [
    ({"privacy_aversion": [0.5, np.nan]}, "privacy_aversion"),
    ({"privacy_aversion": [0.5, 0.0]}, "privacy_aversion"),
    ({"privacy_aversion": [0.5, 1.0]}, "privacy_aversion"),
    ({"privacy_aversion": [0.5]}, "initial_budget must have 1 entries"),
    ({"initial_budget": [1.0, -2.0]}, "initial_budget"),
    ({"initial_budget": [1.0, 0.0]}, "initial_budget must be above 0"),
    ({"initial_budget": [1.0, np.inf]}, "initial_budget"),
    ({"num_samples": [1.0, 0.0]}, "num_samples"),
    ({"num_samples": [1.0, 2.0, 3.0]}, "num_samples"),
]


@pytest.mark.parametrize(("change", "words"), BAD)
def test_bad_clients_are_refused(change, words):
    good = {"privacy_aversion": [0.5, 0.6], "initial_budget": [1.0, 2.0], "num_samples": [1.0, 1.0]}
    with pytest.raises(InvalidInput, match=words):
        individuals(**{**good, **change})


@pytest.mark.parametrize(("weight", "clients"), [([0, 0], 5), ([-1, 2], 5), ([np.nan, 1], 5), ([1, 1], 0), ([1], 5)])
def test_bad_histograms_are_refused(weight, clients):
    with pytest.raises(InvalidInput):
        histogram([0.5, 0.6], [1.0, 2.0], weight, num_clients=clients)


@pytest.mark.parametrize("bounds", [(3.0, 1.0), (0.0, 1.0), (1.0, 1.0), (np.nan, 2.0), (-1.0, 2.0)])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(InvalidInput, match="budget_bounds"):
        uniform(10, 0, bounds)


@pytest.mark.parametrize("seed", [-1, 1.5, None, True])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(InvalidInput, match="seed"):
        uniform(10, seed)
