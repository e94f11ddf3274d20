"""Where the loss went: on quadratics, where second order is all there is."""

import numpy as np
import pytest

from fedpcs.theory.account import WatchedRounds, account, progress_bound


def watched(rng, rounds=200, rate=0.1, noise=0.5):
    """Steps along gradients of a quadratic, with spread and noise of known power."""
    bend = np.geomspace(0.1, 2.0, 30)
    w, columns = rng.standard_normal(bend.size), []
    for _ in range(rounds):
        gradient = bend * w
        own = 0.3 * rng.standard_normal(bend.size) / np.sqrt(bend.size)
        random = noise * rng.standard_normal(bend.size) / np.sqrt(bend.size)
        step = rate * gradient + own + random
        loss, after = 0.5 * bend @ w**2, 0.5 * bend @ (w - step) ** 2
        columns.append(
            (
                loss,
                after - loss,
                gradient @ step,
                bend @ step**2,
                bend.max(),
                bend.mean(),
                rate * np.linalg.norm(gradient),
                0.3,
                noise,
                1.0,
                np.linalg.norm(gradient),
            )
        )
        w = w - step
    return WatchedRounds(*np.array(columns).T)


def test_the_account_adds_up_and_leaves_nothing_over_on_a_quadratic():
    rounds = watched(np.random.default_rng(0))
    found = account(rounds)
    np.testing.assert_allclose(sum(found.values()), rounds.change, atol=1e-12)
    np.testing.assert_allclose(found["rest"], 0.0, atol=1e-12)


def test_noise_is_charged_what_it_costs_on_average():
    many = [account(watched(np.random.default_rng(seed), rounds=50, rate=0.0)) for seed in range(200)]
    bend = np.geomspace(0.1, 2.0, 30)
    assert many[0]["noise"] == pytest.approx(np.full(50, 0.5 * bend.mean() * 0.5**2))
    # Without a signal what is left of the bending is the spread's, ½ tr H/d · 0.3².
    assert np.mean([one["sampling"] for one in many]) == pytest.approx(0.5 * bend.mean() * 0.09, rel=0.05)
    assert not np.any([one["overshoot"] for one in many])


def test_the_mean_of_many_runs_stays_under_the_bound():
    runs = [watched(np.random.default_rng(seed), rounds=40) for seed in range(300)]
    change = np.mean([one.change for one in runs], axis=0)
    bound = np.mean([progress_bound(one).value for one in runs], axis=0)
    assert (change <= bound).all()
    # And it would not if noise were left out.
    noise = np.mean(
        [progress_bound(one).terms["noise"] + progress_bound(one).terms["sampling"] for one in runs], axis=0
    )
    assert not (change <= bound - noise).all()
