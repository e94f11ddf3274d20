"""The client's side of a round: what is sent is the update, clipped and perturbed as its mode says, and no more."""

import copy

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn
from torch.nn import functional
from toy_clients import (
    CLASSES,
    FEATURES,
    answer,
    batch_order,
    linear,
    plain_sgd,
    seeded,
    side_of,
    task,
    toy_data,
    wide,
)

from fedpcs.errors import InvalidInput
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import made_data
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.noise_plan import noise_power
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.mechanism import RecordMechanism
from fedpcs.privacy.noise import FastNoise
from fedpcs.privacy.private_training import LocalPlan, private_sgd

BASE = {"seed": 3, "learning_rate": 0.3, "batch_size": 5, "local_epochs": 2, "clip_norm": 0.4}


def plan_of(mode, **changes):
    return ClientPlan(mode=mode, **{**BASE, **changes})


def exact_update(plan, model, work):
    """w − w_i by torch's own optimiser, in float64."""
    trained, _, _ = plain_sgd(
        model,
        toy_data().records(work.client),
        learning_rate=plan.learning_rate,
        batch_size=plan.batch_size,
        num_epochs=plan.local_epochs,
        order=batch_order(plan, work),
    )
    return flat_parameters(model).astype(np.float64) - flat_parameters(trained)


@pytest.mark.parametrize("make", [linear, wide], ids=lambda make: make.__name__)
@pytest.mark.parametrize("client", [0, 3])
def test_without_privacy_the_update_is_the_way_training_went(make, client):
    plan, model, work = plan_of("none"), make(), task(client, round_index=2)
    report = answer(side_of(plan, model), model, work)
    expected = exact_update(plan, model, work)
    assert np.linalg.norm(report.values - expected) < 2e-5 * np.linalg.norm(expected)
    assert (report.run, report.round_index, report.client, report.nonce) == ("toy", 2, client, "nonce")
    assert (report.budget, report.num_samples, dict(report.measures)) == (None, (12, 7, 20, 5)[client], {})


@pytest.mark.parametrize(("mode", "divisor"), [("paper", 12.0), ("client", 1.0)])
@pytest.mark.parametrize("clip_norm", [0.05, 50.0], ids=["clipped", "not clipped"])
def test_what_is_sent_minus_the_noise_is_the_clipped_update(mode, divisor, clip_norm):
    plan, model, work = plan_of(mode, clip_norm=clip_norm), linear(), task(0, round_index=4, budget=0.3)
    report = answer(side_of(plan, model), model, work)
    noise = FastNoise(plan.seed, 4, 0).draw(report.values.size)
    stddev = np.sqrt(2.0 * clip_norm**2 / 0.3) / divisor
    plain = exact_update(plan, model, work)
    clipped = plain * min(1.0, clip_norm / np.linalg.norm(plain))
    assert np.abs(report.values - stddev * noise - clipped).max() < 1e-6 * max(1.0, 5.0 * stddev)
    assert report.budget == Rho.of(0.3)


@pytest.mark.parametrize("batch_size", [None, 5])
@pytest.mark.parametrize("make", [linear, wide], ids=lambda make: make.__name__)
def test_record_mode_is_private_sgd_bit_for_bit(make, batch_size):
    plan, model, work = plan_of("record", batch_size=batch_size), make(), task(1, round_index=1, budget=0.3)
    side = side_of(plan, model)
    first = answer(side, model, task(2, budget=0.1))  # the side is used again for other clients
    report = answer(side, model, work)
    expected = private_sgd(
        model,
        functional.cross_entropy,
        toy_data().records(1),
        plan=LocalPlan(plan.clip_norm, plan.learning_rate, batch_size),
        mechanism=RecordMechanism(Rho.of(0.3), plan.local_epochs),
        source=FastNoise(plan.seed, 1, 1),
        order=batch_order(plan, work),
    )
    assert report.values.tobytes() == expected.value.astype(np.float32).tobytes()
    assert first.client == 2


def pure_noise(mode, batch_size, local_epochs):
    """Updates of clients whose records are all zeros: gradients vanish, and what is sent is noise alone."""

    def zeros(client):
        return torch.zeros(7, 2000), torch.zeros(7, dtype=torch.long)

    data = made_data(zeros, np.full(12, 7), zeros(0), 2)
    model = nn.Linear(2000, 2, bias=False)
    plan = plan_of(mode, batch_size=batch_size, local_epochs=local_epochs)
    side = side_of(plan, model, data)
    noise = np.concatenate([answer(side, model, task(client, budget=0.2)).values for client in range(12)])
    return noise, float(noise_power(plan, np.array([0.2]), np.array([7]), 4000)[0]) / 4000


@pytest.mark.parametrize(
    ("mode", "batch_size", "local_epochs"),
    [("paper", 5, 2), ("client", 5, 2), ("record", None, 1), ("record", 3, 2)],
)
def test_noise_has_the_variance_that_was_planned(mode, batch_size, local_epochs):
    """n = 48,000 draws, α = 1e-6: an error of 3.2 % in the variance is accepted, one of 5 % is seen; 1.2 × is."""
    noise, planned = pure_noise(mode, batch_size, local_epochs)
    low, high = stats.chi2(noise.size).ppf([5e-7, 1.0 - 5e-7])
    energy = float(np.square(noise, dtype=np.float64).sum())
    assert noise.size == 48_000
    assert low < energy / planned < high
    assert not low < energy / (1.2 * planned) < high
    assert not low < 1.2 * energy / planned < high


def with_dropout():
    return seeded(lambda: nn.Sequential(nn.Linear(FEATURES, 40), nn.Dropout(0.5), nn.Linear(40, CLASSES)))


def test_dropout_depends_on_seed_round_and_client_alone():
    model = with_dropout()
    side, other_side = side_of(plan_of("none"), model), side_of(plan_of("none"), model)
    torch.manual_seed(1)
    found = answer(side, model, task(0, 3)).values
    torch.manual_seed(2)
    answer(other_side, model, task(1, 3))
    assert answer(other_side, model, task(0, 3)).values.tobytes() == found.tobytes()
    # One record: nothing but dropout can tell rounds and seeds apart.
    single = toy_data(sizes=(1, 1))
    seeds = [answer(side_of(plan_of("none", seed=seed), model, single), model, task(0)).values for seed in (3, 4)]
    side = side_of(plan_of("none"), model, single)
    rounds = [answer(side, model, task(0, t)).values for t in (0, 1)]
    assert seeds[0].tobytes() == rounds[0].tobytes()
    assert not np.allclose(seeds[0], seeds[1])
    assert not np.allclose(rounds[0], rounds[1])


@pytest.mark.parametrize("mode", ["none", "client", "record"])
def test_what_the_server_announced_is_left_as_it_was(mode):
    model = wide()
    weights = copy.deepcopy(model.state_dict())
    side = side_of(plan_of(mode), model)
    parameters = torch.from_numpy(flat_parameters(model))
    announced = parameters.clone()
    out = torch.empty_like(parameters)
    report = side.answer(task(0, budget=0.3), parameters, out)
    assert torch.equal(parameters, announced)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert np.shares_memory(report.values, out.numpy())


def test_the_model_trained_is_the_one_announced_not_the_one_left_by_the_last_client():
    plan, model = plan_of("none"), wide()
    side = side_of(plan, model)
    alone = answer(side_of(plan, model), model, task(1)).values
    answer(side, model, task(0))
    assert answer(side, model, task(1)).values.tobytes() == alone.tobytes()


def test_measures_are_sent_if_asked_for_and_as_they_were_before_training():
    plan, model = plan_of("none"), linear()
    side = side_of(plan, model)
    report = answer(side, model, task(2, measures=("loss", "loss_energy", "gradient_variance")))
    inputs, targets = toy_data().records(2)
    with torch.no_grad():
        direct = functional.cross_entropy(model(inputs), targets, reduction="none").numpy().astype(np.float64)
    _, gradients, _ = plain_sgd(
        model, (inputs, targets), learning_rate=0.3, batch_size=5, num_epochs=2, order=batch_order(plan, task(2))
    )
    flat = np.array([np.concatenate([part.numpy().ravel() for part in one]) for one in gradients], np.float64)
    assert report.measures["loss"] == pytest.approx(direct.mean(), rel=1e-6)
    assert report.measures["loss_energy"] == pytest.approx((direct**2).mean(), rel=1e-6)
    assert report.measures["gradient_variance"] == pytest.approx(flat.var(axis=0, ddof=1).sum(), rel=1e-5)
    assert all(type(value) is float for value in report.measures.values())
    assert set(answer(side, model, task(2, measures=("loss_energy",))).measures) == {"loss_energy"}


def test_of_a_model_that_has_run_away_nothing_is_told():
    """A measure that is no number would have the server refuse the update; noise can drive a model there."""
    side = side_of(plan_of("none"), linear())
    parameters = torch.full((side.layout.num_parameters,), float("nan"))
    asked = task(2, measures=("loss", "loss_energy", "gradient_variance"))
    assert dict(side.answer(asked, parameters, torch.empty_like(parameters)).measures) == {}


@pytest.mark.parametrize("mode", ["none", "paper", "client", "record"])
def test_questions_are_answered_by_the_loss_and_by_the_norm_before_noise(mode):
    """How long the signal of each mode is, is shown on whole runs in tests/contract/test_measures_of_a_run.py."""
    plan, model = plan_of(mode, clip_norm=0.05), linear()
    side, parameters = side_of(plan, model), torch.from_numpy(flat_parameters(model))
    inputs, targets = toy_data().records(2)
    with torch.no_grad():
        assert side.ask("loss", task(2), parameters) == pytest.approx(
            float(functional.cross_entropy(model(inputs), targets)), rel=1e-6
        )
    norm = np.linalg.norm(exact_update(plan, model, task(2)))
    found = side.ask("update_norm", task(2), parameters)
    if mode == "record":  # eight steps, each of at most η·C
        assert 0.0 < found <= 0.3 * 0.05 * 8 < norm
    else:
        assert found == pytest.approx(norm if mode == "none" else 0.05, rel=1e-5)


def test_score_counts_what_the_model_gets_right():
    model, data = linear(), toy_data()
    side, parameters = side_of(plan_of("none"), model), torch.from_numpy(flat_parameters(model))
    inputs, targets = data.tests(100, 400)
    with torch.no_grad():
        scores = model(inputs)
    right, loss = side.score(100, 400, parameters)
    assert right == int((scores.argmax(1) == targets).sum())
    assert loss == pytest.approx(float(functional.cross_entropy(scores.double(), targets, reduction="sum")), rel=1e-6)


@pytest.mark.parametrize("mode", ["paper", "client", "record"])
def test_nothing_is_perturbed_without_a_budget(mode):
    model = linear()
    with pytest.raises(InvalidInput, match="budget"):
        answer(side_of(plan_of(mode), model), model, task(0))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", -1),
        ("mode", "best"),
        ("learning_rate", 0.0),
        ("batch_size", 0),
        ("local_epochs", 0),
        ("clip_norm", float("inf")),
        ("noise", "loud"),
    ],
)
def test_plans_that_make_no_sense_are_refused_by_name(name, value):
    with pytest.raises(InvalidInput, match=name):
        ClientPlan(**{name: value})
