"""What samplers hear and ask in a real run, against clients trained by hand on their records from the same models."""

import math
from functools import cache

import numpy as np
import pytest
import torch

from fedpcs import _random
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.learning import client_plan
from fedpcs.learning.client import ClientSide
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.modes import MODES
from fedpcs.privacy.noise import FastNoise
from fedpcs.trial.assemble import Trial, dealt_out, sampler_of
from fedpcs.trial.config import RunConfig
from fedpcs.trial.rounds import one_round
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.schedule import make_schedule
from fedpcs.trial.server_plan import server_plan
from fedpcs.trial.store import TrialStore

BATCH, RATE, CLIP, CLIENTS = 16, 0.2, 0.3, 12


@cache
def federation(sampler, mode, epochs, batch_size=BATCH):
    """A run on the embedded digits, a linear model, clients of unequal sizes."""
    config = RunConfig.model_validate(
        {
            "name": "probe",
            "rounds": 2,
            "data": {"num_clients": CLIENTS, "partition": "quantity"},
            "training": {"learning_rate": RATE, "batch_size": batch_size, "local_epochs": epochs},
            "privacy": {"mode": mode, "clip_norm": CLIP},
            "game": {"behaviour": "static", "reward": 20.0},
            "sampling": {"samplers": [sampler], "sampling_ratio": 0.25},
        }
    )
    trial, dataset = Trial(sampler, 0), load_dataset("digits")
    made, data = sampler_of(config, sampler), dealt_out(config, dataset, 0)
    model = make_model("linear", dataset.input_shape, 10, seed=0)
    return server_plan(config, trial, made, make_schedule(config, made), data, model), model, data


def rounds_of(folder, monkeypatch, *which):
    """Run it; return what the server had before each round, what it opened and heard, and what it knew after."""
    plan, model, data = federation(*which)
    seen, close = [], one_round.close_round

    def watched(plan, state, opened, heard):
        after, step = close(plan, state, opened, heard)
        seen.append((state, opened, heard, after))
        return after, step

    monkeypatch.setattr(one_round, "close_round", watched)
    store = TrialStore(folder)
    store.create()
    engine = InProcessEngine(ClientSide(plan.client, model, data))
    run_trial(plan, flat_parameters(model), engine, store, one_round.Settings(delta=1e-5))
    assert len(seen) == 2
    return seen


def by_hand(plan, data, parameters, task, *, is_noisy):
    """Train one client in float64; return its update before it is clipped as a whole, and each step's gradient."""
    w, gradients = parameters.astype(np.float64), []
    inputs, targets = (part.numpy() for part in data.records(task.client))
    rows = np.column_stack([inputs.reshape(len(inputs), -1), np.ones(len(inputs))]).astype(np.float64)
    order = _random.generator(plan.seed, "batches", task.round_index, task.client)
    noise = FastNoise(plan.seed, task.round_index, task.client)
    size = plan.batch_size or len(rows)
    for _ in range(plan.local_epochs):
        shuffled = order.permutation(len(rows))
        for start in range(0, len(rows), size):
            chosen = shuffled[start : start + size]
            each = gradients_at(w, rows[chosen], targets[chosen])
            if plan.mode == "record":
                each *= np.minimum(1.0, CLIP / np.linalg.norm(each, axis=1))[:, None]
            gradient = each.mean(axis=0)
            gradients.append(gradient)
            if plan.mode == "record" and is_noisy:
                stddev = math.sqrt(2.0 * CLIP**2 * plan.local_epochs / (len(chosen) ** 2 * float(task.budget)))
                gradient = gradient + stddev * noise.draw(gradient.size)
            w = w - plan.learning_rate * gradient
    return parameters - w, np.array(gradients)


def gradients_at(w, rows, targets):
    """Return (records, parameters): of cross-entropy, (softmax − label)·(record, 1); weights first, then biases."""
    weight, bias = w[:-10].reshape(10, -1), w[-10:]
    score = np.exp(rows[:, :-1] @ weight.T + bias)
    away = score / score.sum(axis=1, keepdims=True) - np.eye(10)[targets]
    return np.column_stack([(away[:, :, None] * rows[:, None, :-1]).reshape(len(rows), -1), away])


@pytest.mark.parametrize("epochs", [1, 5])
@pytest.mark.parametrize("mode", MODES)
def test_delta_goes_by_its_formula_on_what_clients_measured(tmp_path, monkeypatch, mode, epochs):
    """p_i ∝ √(ζ_i² + σ_i²/(4K_i)), ζ_i of updates over η·K_i with their noise taken off, K_i the steps really taken."""
    plan, _, data = federation("delta", mode, epochs)
    for state, opened, heard, after in rounds_of(tmp_path, monkeypatch, "delta", mode, epochs):
        reports = [item.report for item in heard.admitted]
        sizes, steps, variances = [], [], []
        for report, task in zip(reports, opened.tasks, strict=True):
            _, gradients = by_hand(plan.client, data, state.parameters, task, is_noisy=True)
            inputs, _ = data.records(report.client)
            sizes.append(len(inputs))
            steps.append(len(gradients))
            expected = ((gradients - gradients.mean(axis=0)) ** 2).sum() / max(1, len(gradients) - 1)
            variances.append(report.measures["gradient_variance"])
            assert variances[-1] == pytest.approx(expected if len(inputs) > BATCH else 0.0, rel=1e-4)
        sizes, steps = np.array(sizes), np.array(steps)
        assert len(set(steps)) > 1
        rows = np.array([report.values.astype(np.float64) for report in reports]) / (RATE * steps)[:, None]
        share = sizes / sizes.sum()
        noise = opened.view.noise_power[heard.clients] / (RATE * steps) ** 2
        square = ((rows - share @ rows) ** 2).sum(axis=1)
        square = np.maximum(square - ((1.0 - 2.0 * share) * noise + share**2 @ noise), 0.0)
        score = np.sqrt(square + np.array(variances) / (4 * steps))
        before = np.full(CLIENTS, 1 / CLIENTS) if not state.memory else state.memory["probability"]
        mass = before[heard.clients].sum()
        found = after.memory["probability"]
        assert found[heard.clients] / found.sum() == pytest.approx(mass * score / score.sum(), rel=1e-12)
        absent = np.setdiff1d(np.arange(CLIENTS), heard.clients)
        assert found[absent] == pytest.approx(before[absent], rel=1e-12)


@pytest.mark.parametrize("epochs", [1, 5])
def test_where_every_step_takes_all_records_nobody_is_asked_for_variances(tmp_path, monkeypatch, epochs):
    for _, opened, heard, _ in rounds_of(tmp_path, monkeypatch, "delta", "record", epochs, 0):
        assert {task.measures for task in opened.tasks} == {()}
        assert {tuple(item.report.measures) for item in heard.admitted} == {()}


class Silence:
    """Noise that is none."""

    name, family, is_replayable, is_guarantee, units_per_stddev = "fast", FastNoise.family, True, False, None

    def draw(self, size):
        return np.zeros(size)


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_aocs_goes_by_the_norm_of_what_would_be_sent_before_its_noise(tmp_path, monkeypatch, mode, epochs):
    plan, model, data = federation("aocs", mode, epochs)
    seen = rounds_of(tmp_path, monkeypatch, "aocs", mode, epochs)
    monkeypatch.setattr(client_plan, "noise_source", lambda *_, **__: Silence())
    side = ClientSide(plan.client, model, data)
    for state, opened, *_ in seen:
        parameters = torch.from_numpy(state.parameters)
        for client, norm in list(enumerate(opened.view.update_norm))[::3]:
            task = Task(plan.run, opened.round_index, client, "", None if mode == "none" else Rho.of(0.5))
            sent = side.answer(task, parameters, torch.empty_like(parameters)).values
            assert norm == pytest.approx(np.linalg.norm(sent.astype(np.float64)), rel=1e-6)
            update, _ = by_hand(plan.client, data, state.parameters, task, is_noisy=False)
            expected = np.linalg.norm(update)
            assert norm == pytest.approx(min(CLIP, expected) if mode in ("paper", "client") else expected, rel=1e-4)
