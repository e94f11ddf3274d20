"""Curvature by products with vectors, against the whole Hessian."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from fedpcs.learning.curvature import bend_of, mean_curvature, top_curvature


@pytest.fixture
def small():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    return model, torch.randn(40, 4, dtype=torch.float64), torch.randint(0, 3, (40,))


def whole_hessian(model, inputs, targets):
    """Differences of gradients, a parameter at a time."""
    flat = torch.cat([one.detach().reshape(-1) for one in model.parameters()])

    def gradient(vector):
        nn.utils.vector_to_parameters(vector, model.parameters())
        found = torch.autograd.grad(cross_entropy(model(inputs), targets), list(model.parameters()))
        return torch.cat([one.reshape(-1) for one in found]).numpy()

    ways = 1e-5 * torch.eye(flat.numel(), dtype=flat.dtype)
    columns = [(gradient(flat + way) - gradient(flat - way)) / 2e-5 for way in ways]
    nn.utils.vector_to_parameters(flat, model.parameters())
    return np.array(columns)


def test_products_top_and_mean_are_the_hessians(small):
    whole, bend = whole_hessian(*small), bend_of(*small)
    way = np.random.default_rng(1).standard_normal(len(whole))
    np.testing.assert_allclose(bend.times(way), whole @ way, rtol=1e-5, atol=1e-8)
    values = np.linalg.eigvalsh(whole)
    assert top_curvature(bend) == pytest.approx(values[-1], rel=0.01)
    assert mean_curvature(bend, num_probes=2000) == pytest.approx(np.trace(whole) / len(whole), rel=0.05)


def test_the_model_is_left_as_it_is(small):
    model, *records = small
    before = [one.clone() for one in model.parameters()]
    top_curvature(bend_of(model, *records))
    assert all(torch.equal(one, other) for one, other in zip(before, model.parameters(), strict=True))
    assert all(one.grad is None for one in model.parameters())


class Steep:
    """A bend whose largest eigenvalue in size is negative."""

    gradient = np.zeros(3)

    def times(self, way):
        return np.array([-5.0, 2.0, 1.0]) * way


def test_the_largest_is_found_also_where_a_negative_one_is_larger_in_size():
    assert top_curvature(Steep()) == pytest.approx(2.0, rel=0.01)
