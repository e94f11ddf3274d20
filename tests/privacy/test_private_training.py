"""The loop the record guarantee is about: each record once an epoch, noise as announced, cost as charged."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.honesty import NoiseClaim, honest_norms
from fedpcs.privacy.mechanism import RecordMechanism
from fedpcs.privacy.noise import FastNoise, SecureNoise
from fedpcs.privacy.private_training import LocalPlan, PrivateUpdate, disjoint_batches, private_sgd


def softmax_regression() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(20, 4))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def data(num_records: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(num_records, 20, generator=generator)
    return inputs, (inputs[:, :4]).argmax(1)


def trained(budget: float, epochs: int, plan: LocalPlan, num_records: int = 50, seed: int = 0) -> PrivateUpdate:
    return private_sgd(
        softmax_regression(),
        cross_entropy,
        data(num_records),
        plan=plan,
        mechanism=RecordMechanism(Rho.of(budget), epochs),
        source=FastNoise(seed),
        order=np.random.default_rng(seed),
    )


@given(st.integers(1, 60), st.one_of(st.none(), st.integers(1, 70)), st.integers(1, 4))
def test_every_epoch_goes_once_through_all_records(num_records: int, batch_size: int | None, epochs: int) -> None:
    batches = list(disjoint_batches(num_records, batch_size, epochs, np.random.default_rng(0)))
    assert len(batches) % epochs == 0
    each = len(batches) // epochs
    for start in range(0, len(batches), each):
        assert sorted(np.concatenate(batches[start : start + each]).tolist()) == list(range(num_records))


def test_without_noise_to_speak_of_it_is_gradient_descent() -> None:
    inputs, targets = data(50)
    found = trained(1e9, 5, LocalPlan(100.0, 0.5))
    model = softmax_regression()
    for _ in range(5):
        loss = cross_entropy(model(inputs), targets)
        for parameter, gradient in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.data -= 0.5 * gradient
    plain = -nn.utils.parameters_to_vector(model.parameters()).detach().double().numpy()
    assert np.abs(found.value - plain).max() < 1e-3
    assert np.linalg.norm(plain) > 0.1


def test_the_update_holds_the_noise_it_says() -> None:
    """At a tiny budget the update is noise alone: variance σ², to five standard errors over 60 trainings (9 %)."""
    plan = LocalPlan(clip_norm=1.0, learning_rate=0.3, batch_size=25)
    values = np.stack([trained(1e-6, 2, plan, seed=seed).value for seed in range(60)])
    stddev = trained(1e-6, 2, plan).noise_stddev
    # σ² of one step 2C²E/(b²ρ), four steps, learning rate 0.3.
    assert stddev == pytest.approx(0.3 * np.sqrt(4 * 2 * 2 / (25**2 * 1e-6)), rel=1e-9)
    assert abs(values.var() / stddev**2 - 1.0) < 5.0 * np.sqrt(2.0 / values.size)


def test_the_same_seed_gives_the_same_bits_and_secure_noise_never_does() -> None:
    plan = LocalPlan(1.0, 0.1, 10)
    assert np.array_equal(trained(0.5, 2, plan, seed=4).value, trained(0.5, 2, plan, seed=4).value)
    secure = [
        private_sgd(
            softmax_regression(),
            cross_entropy,
            data(20),
            plan=plan,
            mechanism=RecordMechanism(Rho.of(0.5)),
            source=SecureNoise(),
            order=np.random.default_rng(0),
        ).value
        for _ in range(2)
    ]
    assert not np.array_equal(*secure)


def test_the_global_model_is_left_alone() -> None:
    model = softmax_regression()
    private_sgd(
        model,
        cross_entropy,
        data(10),
        plan=LocalPlan(1.0, 1.0),
        mechanism=RecordMechanism(Rho.of(1.0)),
        source=FastNoise(0),
        order=np.random.default_rng(0),
    )
    assert all(float(parameter.detach().abs().max()) == 0.0 for parameter in model.parameters())


def test_a_server_finds_the_update_plausible_and_a_silent_one_not() -> None:
    found = trained(0.01, 3, LocalPlan(1.0, 0.1))
    claim = NoiseClaim(found.noise_stddev, found.signal_bound, is_adaptive=True)
    lowest, highest = honest_norms(found.value.size, claim, 1e-6)
    norm = np.linalg.norm(found.value)
    assert lowest <= norm <= highest
    assert 0.1 * norm < lowest


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1.0, 0.0, True, "1", None])
def test_a_bad_plan_is_refused(bad: object) -> None:
    with pytest.raises(InvalidInput, match="clip_norm"):
        LocalPlan(bad, 0.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="learning_rate"):
        LocalPlan(1.0, bad)  # type: ignore[arg-type]
    if bad is not None:
        with pytest.raises(InvalidInput, match="batch_size"):
            LocalPlan(1.0, 0.1, bad)  # type: ignore[arg-type]
