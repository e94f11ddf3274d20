"""The noise planned from public numbers is the noise mechanisms add, and no honest update is longer than admitted."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional
from toy_clients import FEATURES, answer, linear, side_of, task, toy_data

from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import made_data
from fedpcs.learning.noise_plan import HonestRange, honest_range, noise_power
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.clipping import clip_update
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.mechanism import RecordMechanism, UpdateMechanism, noise_stddev
from fedpcs.privacy.modes.paper import PAPER
from fedpcs.privacy.noise import ExactNoise, FastNoise, SecureNoise
from fedpcs.privacy.private_training import LocalPlan, private_sgd


def planned(budget, num_samples, num_parameters=1, **how):
    power = noise_power(ClientPlan(**how), np.array([budget]), np.array([num_samples]), num_parameters)[0]
    return math.sqrt(power / num_parameters)


@pytest.mark.parametrize(("budget", "num_samples", "clip_norm"), [(0.3, 40, 1.0), (12.0, 7, 0.1), (1e-4, 600, 25.0)])
def test_plan_is_what_the_update_mechanisms_add(budget, num_samples, clip_norm):
    clipped = clip_update([np.ones(4, np.float32)], clip_norm)
    paper = UpdateMechanism(Rho.of(budget), PAPER.level, num_samples).release(clipped, FastNoise(0)).noise_stddev
    client = UpdateMechanism(Rho.of(budget)).release(clipped, FastNoise(0)).noise_stddev
    assert planned(budget, num_samples, mode="paper", clip_norm=clip_norm) == pytest.approx(paper, rel=1e-9)
    assert planned(budget, num_samples, mode="client", clip_norm=clip_norm) == pytest.approx(client, rel=1e-9)


@pytest.mark.parametrize("local_epochs", [1, 3])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 4, 12, 100])
def test_plan_is_what_private_training_adds(batch_size, local_epochs):
    """Full batches, batches that leave a rest (7 = 2·3 + 1, 7 = 4 + 3), several epochs."""
    for client, num_samples in ((0, 12), (1, 7)):
        update = private_sgd(
            nn.Linear(FEATURES, 3),
            functional.cross_entropy,
            toy_data().records(client),
            plan=LocalPlan(0.4, 0.7, batch_size),
            mechanism=RecordMechanism(Rho.of(0.3), local_epochs),
            source=FastNoise(0),
            order=np.random.default_rng(0),
        )
        how = {"mode": "record", "clip_norm": 0.4, "learning_rate": 0.7}
        found = planned(0.3, num_samples, batch_size=batch_size, local_epochs=local_epochs, **how)
        assert found == pytest.approx(update.noise_stddev, rel=1e-8)
        plan = ClientPlan(batch_size=batch_size, local_epochs=local_epochs, **how)
        claim = NoiseClaim(
            update.noise_stddev, update.signal_bound, is_adaptive=int(plan.local_steps(np.array([num_samples]))[0]) > 1
        )
        expected = honest_norms(21, claim, 1e-6)
        found = honest_range(plan, Rho.of(0.3), num_samples, 21)
        assert (found.least, found.most) == pytest.approx(expected, rel=2e-3)
        assert found.is_noisy


def test_without_privacy_nothing_is_added_and_nothing_bounds_the_norm():
    assert planned(1.0, 10, mode="none") == 0.0
    assert honest_range(ClientPlan(mode="none"), Rho(0), 10, 5) == HonestRange(0.0, math.inf, is_noisy=False)


@pytest.mark.parametrize("num_parameters", [1, 10, 1000])
@pytest.mark.parametrize("mode", ["paper", "client"])
def test_no_honest_update_is_longer_than_admitted_and_the_bound_is_near(mode, num_parameters):
    """5,000 updates as long as clipping allows, plus their noise."""
    plan = ClientPlan(mode=mode, clip_norm=0.5)
    stddev = planned(0.2, 3, mode=mode, clip_norm=0.5)
    noise = stddev * np.random.default_rng(0).standard_normal((5000, num_parameters))
    noise[:, 0] += 0.5
    norms = np.linalg.norm(noise, axis=1)
    limit = honest_range(plan, Rho.of(0.2), 3, num_parameters).most
    assert norms.max() <= limit
    assert limit <= 0.51 + 1.002 * stddev * (math.sqrt(num_parameters) + 10.0)
    assert num_parameters < 1000 or limit < 1.5 * norms.max()


@pytest.mark.parametrize("num_parameters", [26_010, 1_663_370, 11_000_000])
@pytest.mark.parametrize("budget", [1e-4, 0.01, 3.0])
@pytest.mark.parametrize("source", [SecureNoise(), ExactNoise()], ids=["secure", "exact"])
def test_the_grid_is_planned_for(num_parameters, budget, source):
    """The grid raises σ with √d, by 1.4 % at ρ = 1e-4 over 11 million parameters."""
    stddev = noise_stddev(2.0, Rho.of(budget), num_parameters, source)
    how = {"mode": "client", "clip_norm": 1.0, "noise": source.name}
    assert planned(budget, 100, num_parameters, **how) == pytest.approx(stddev, rel=1e-9)
    honest = honest_range(ClientPlan(**how), Rho.of(budget), 100, num_parameters)
    assert honest.least < stddev * math.sqrt(num_parameters) < honest.most < 1.1 * honest.least
    step = noise_stddev(2.0 / 100, Rho.of(budget) // 4, num_parameters, source)
    how = {"mode": "record", "clip_norm": 1.0, "noise": source.name, "local_epochs": 4, "batch_size": None}
    assert planned(budget, 100, num_parameters, learning_rate=0.5, **how) == pytest.approx(0.5 * 2.0 * step, rel=1e-9)


def test_what_the_plan_promises_secure_noise_keeps():
    """n = 100,000 draws of one client, α = 1e-6: 2.2 % in the variance is accepted, 1.2 × is not."""
    model = nn.Linear(50_000, 2, bias=False)
    data = made_data(no_signal, [7], no_signal(0), 2)
    plan = ClientPlan(mode="client", clip_norm=0.4, noise="secure")
    noise = answer(side_of(plan, model, data), model, task(0, budget=0.2)).values
    ratio = (
        float(np.square(noise, dtype=np.float64).sum()) / noise_power(plan, np.array([0.2]), np.array([7]), 10**5)[0]
    )
    low, high = stats.chi2(noise.size).ppf([5e-7, 1.0 - 5e-7]) / noise.size
    assert low < ratio < high < 1.03


def no_signal(client):
    return torch.zeros(7, 50_000), torch.zeros(7, dtype=torch.long)


def test_updates_survive_the_way_to_float32():
    plan, model = ClientPlan(mode="client", clip_norm=1.0), linear()
    values = answer(side_of(plan, model), model, task(0, budget=1e-9)).values
    assert values.dtype == np.float32
    assert torch.isfinite(torch.from_numpy(values)).all()
