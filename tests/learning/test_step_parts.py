"""What an aggregate is made of, against updates whose parts are known."""

import numpy as np
import pytest

from fedpcs.learning.step_parts import StepParts, step_parts


@pytest.mark.parametrize("total", [1.0, 1.7])
def test_parts_are_those_the_updates_were_made_of(total):
    rng = np.random.default_rng(0)
    clients, length, δ, signal = 12, 400, 2.0, 3.0
    noise = rng.uniform(0.5, 4.0, clients)
    weights = rng.dirichlet(np.full(clients, 3.0)) * total
    common = np.full(length, signal / np.sqrt(length))
    found = []
    for _ in range(300):
        own = rng.standard_normal((clients, length)) * δ / np.sqrt(length)
        added = rng.standard_normal((clients, length)) * (noise / np.sqrt(length))[:, None]
        updates = common + own + added
        found.append(
            step_parts(np.linalg.norm(updates, axis=1), noise**2, weights, float(np.linalg.norm(weights @ updates)))
        )
    squares = np.array([[one.signal**2, one.spread**2, one.noise**2] for one in found])
    expected = [(signal * total) ** 2, δ**2 * (weights**2).sum(), weights**2 @ noise**2]
    np.testing.assert_allclose(squares.mean(axis=0), expected, rtol=0.03)


def test_one_client_and_none_have_no_spread():
    assert step_parts(np.array([5.0]), np.array([9.0]), np.array([1.0]), 5.0) == StepParts(4.0, 0.0, 3.0)
    assert step_parts(np.zeros(0), np.zeros(0), np.zeros(0), 0.0) == StepParts(0.0, 0.0, 0.0)
