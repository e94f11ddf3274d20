"""The weighted sum is right to the last digits of float64, and the same whoever computes it with how many threads."""

import math

import numpy as np
import pytest
import threadpoolctl

from fedpcs import _threads
from fedpcs.errors import InvalidInput
from fedpcs.learning.aggregate import StepParts, step, step_parts, weighted_sum

BLOCK = 2**13


def make(num_clients, num_parameters, seed=0):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-4, 4, size=(num_clients, 1))
    updates = (scale * rng.standard_normal((num_clients, num_parameters))).astype(np.float32)
    return list(updates), rng.uniform(-1, 1, num_clients)


@pytest.mark.parametrize("num_clients", [1, 2, 7])
@pytest.mark.parametrize("num_parameters", [1, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 5])
def test_the_sum_is_right_to_float64(num_clients, num_parameters):
    updates, weights = make(num_clients, num_parameters)
    found = weighted_sum(updates, weights)
    # At block edges and here and there: the exact sum of the exact products' roundings.
    for column in {0, num_parameters // 2, num_parameters - 1, min(BLOCK, num_parameters - 1)}:
        terms = [float(w) * float(u[column]) for w, u in zip(weights, updates, strict=True)]
        assert abs(found[column] - math.fsum(terms)) <= num_clients * 2.3e-16 * math.fsum(map(abs, terms))
    whole = np.einsum("i,ij->j", weights, np.array(updates, np.float64))
    assert np.allclose(found, whole, rtol=1e-12, atol=1e-12 * np.abs(whole).max())


def test_many_blocks_are_all_summed():
    updates, weights = make(3, 70 * BLOCK + 11)
    whole = np.einsum("i,ij->j", weights, np.array(updates, np.float64))
    assert np.allclose(weighted_sum(updates, weights), whole, rtol=1e-12, atol=1e-8)


def test_the_sum_does_not_depend_on_how_many_threads_compute_it(monkeypatch):
    updates, weights = make(9, 40 * BLOCK + 77)
    expected = weighted_sum(updates, weights).tobytes()
    for num_threads in (1, 2, 3):
        monkeypatch.setattr(_threads, "_num_threads", lambda count=num_threads: count)
        for num_blas in (1, 2, 3):
            with threadpoolctl.threadpool_limits(num_blas, user_api="blas"):
                assert weighted_sum(updates, weights).tobytes() == expected


def test_updates_are_summed_in_the_order_given_and_left_alone():
    updates, weights = make(4, 100)
    before = [one.copy() for one in updates]
    weighted_sum(updates, weights)
    assert all(np.array_equal(one, other) for one, other in zip(updates, before, strict=True))
    big = [np.array([value], np.float32) for value in (1e30, 1.0, -1e30)]
    assert weighted_sum(big, np.array([1.0, 2.0, 1.0]))[0] in (0.0, 2.0)
    swapped = weighted_sum([updates[1], updates[0]], weights[:2])
    assert not np.allclose(swapped, weighted_sum(updates[:2], weights[:2]))


@pytest.mark.parametrize(("num_updates", "num_weights"), [(2, 3), (0, 0), (1, 0)])
def test_weights_and_updates_must_pair_up(num_updates, num_weights):
    with pytest.raises(InvalidInput, match="pair up"):
        weighted_sum([np.zeros(2, np.float32)] * num_updates, np.ones(num_weights))


def test_a_step_goes_against_the_direction_and_is_rounded_once():
    parameters, direction = np.array([1.0, -2.0], np.float32), np.array([1e-9, 0.5])
    found = step(parameters, direction, 3.0)
    assert found.tolist() == np.float32(np.array([1.0 - 3e-9, -2.0 - 1.5])).tolist()
    assert (parameters.tolist(), direction.tolist()) == ([1.0, -2.0], [1e-9, 0.5])


def test_updates_of_different_lengths_are_refused():
    with pytest.raises(InvalidInput, match="one shape"):
        weighted_sum([np.ones(4, np.float32), np.ones(2, np.float32)], np.ones(2))


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
