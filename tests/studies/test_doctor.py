"""`fedpcs doctor`: what is broken is found, and what a run will meet is what it meets."""

from __future__ import annotations

import json
import math
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
import torch
from command_line import fedpcs
from torch.nn import functional

from fedpcs import _format
from fedpcs._format import amount
from fedpcs._inclusion import inclusion_probability
from fedpcs._plugins import pip_install
from fedpcs.learning.models import make_model
from fedpcs.privacy import conversion, noise
from fedpcs.privacy.conversion import to_epsilon
from fedpcs.studies.doctor import installation as doctor
from fedpcs.studies.doctor.installation import Check, check_installation
from fedpcs.studies.doctor.noise import aggregated_noise
from fedpcs.studies.doctor.norms import measured_norms
from fedpcs.studies.doctor.run import check_run
from fedpcs.trial.assemble import dealt_out, load_for, sampler_of
from fedpcs.trial.config import RunConfig, load_run_config
from fedpcs.trial.schedule import make_schedule

SMALL = (
    "data.num_clients=6",
    "data.partition=iid",
    "rounds=3",
    "seeds=[0]",
    "training.model=linear",
    "game.reward=6.0",
    "sampling.samplers=['random']",
    "sampling.sampling_ratio=0.5",
)


def configuration(*changes: str) -> RunConfig:
    return load_run_config("default", [*SMALL, *changes])


def by_subject(checks: list[Check]) -> dict[str, Check]:
    return {one.subject: one for one in checks}


def test_a_working_installation_has_nothing_wrong(tmp_path):
    checks = by_subject(check_installation(tmp_path))
    assert [one for one in checks.values() if one.standing == "wrong"] == []
    assert f"torch {torch.__version__}" in checks["libraries"].found
    assert "4.38 exact, 4.73 tight, 5.30 standard" in checks["privacy"].found
    assert f"digits; looked in {tmp_path}" in checks["data"].found


def test_noise_of_the_wrong_strength_is_found(monkeypatch):
    honest = noise.FastNoise.draw
    monkeypatch.setattr(noise.FastNoise, "draw", lambda self, size: 1.05 * honest(self, size))
    found = by_subject(check_installation())["noise"]
    assert (found.standing, "should be 1" in found.found) == ("wrong", True)


def test_an_accountant_that_promises_too_much_is_found(monkeypatch):
    monkeypatch.setitem(conversion._EPSILON_OF, "tight", lambda rho, log_delta: 1.0)
    assert by_subject(check_installation())["privacy"].standing == "wrong"


def test_what_raises_is_a_finding_and_the_exit_code_is_1(monkeypatch):
    def broken(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(doctor, "import_module", broken)
    ended = fedpcs("doctor", "--json")
    found = {one["subject"]: one for one in json.loads(ended.stdout)}
    assert (ended.returncode, found["libraries"]["standing"]) == (1, "wrong")
    assert "numpy: cannot open shared object file" in found["libraries"]["found"]
    assert found["libraries"]["remedy"]
    assert found["privacy"]["standing"] == "fine"


def test_extras_that_are_missing_come_with_their_command(monkeypatch):
    def none_of_it(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(doctor, "version", none_of_it)
    found = by_subject(check_installation())["extras"]
    assert (found.standing, found.remedy) == ("note", "If wanted: " + pip_install("flower", "parquet", "tensorboard"))


def test_gradients_are_measured_one_record_at_a_time():
    config = configuration("privacy.mode=record", "privacy.clip_norm=2.5")
    data = dealt_out(config, load_for(config, None), 0)
    found = measured_norms(config, data)
    model = make_model("linear", data.input_shape, data.num_classes, seed=0)
    expected = []
    for client in np.argsort(data.num_samples, kind="stable"):
        inputs, targets = data.records(int(client))
        for row, label in list(zip(inputs, targets, strict=True))[:10]:
            model.zero_grad()
            functional.cross_entropy(model(row[None]), label[None]).backward()
            expected.append(math.sqrt(sum(float(value.grad.square().sum()) for value in model.parameters())))
    np.testing.assert_allclose(found.before, expected, rtol=1e-5)
    above = _format.percent(np.mean(np.array(expected) > 2.5))
    assert f"{above} of gradients are longer" in by_subject(check_run(config, None))["clipping"].found


@pytest.mark.parametrize(("bound", "standing"), [(0.01, "fine"), (1000.0, "note")])
def test_a_bound_that_clips_nothing_is_noise_for_nothing(bound, standing):
    config = configuration("privacy.mode=client", f"privacy.clip_norm={bound}")
    norms = measured_norms(config, dealt_out(config, load_for(config, None), 0))
    np.testing.assert_allclose(norms.update, np.minimum(norms.before, bound), rtol=0.02)
    found = by_subject(check_run(config, None))["clipping"]
    assert found.standing == standing
    assert (f"near {amount(np.median(norms.before))}" in found.remedy) == (bound > 1)


def test_noise_and_epsilon_are_those_of_the_solved_game():
    config = configuration("privacy.mode=client", "privacy.clip_norm=0.01", "privacy.limit_epsilon=5")
    checks = by_subject(check_run(config, None))
    schedule = make_schedule(config, sampler_of(config, "random"))
    num_parameters = 64 * 10 + 10
    first, last = (np.median(np.sqrt(2.0 * num_parameters / schedule.budget[k])) for k in (0, -1))
    said = f"{amount(first)} times its update in the first round, {amount(last)} times in the last"
    assert said in checks["noise, random"].found
    delta = float(config.privacy.delta)
    usual = to_epsilon(float(np.median(0.5 * schedule.budget.sum(axis=0))), delta, "exact")
    always = to_epsilon(float(schedule.budget.sum(axis=0).max()), delta, "exact")
    assert (
        f"others, {_format.rounded_up(usual)}; of whoever is always drawn, at most {_format.rounded_up(always)}"
        in checks["privacy, random"].found
    )
    assert "limit_epsilon = 5" in checks["privacy, random"].found


DROWNING = (
    "sampling.samplers=['fedpcs']",
    "privacy.mode=client",
    "privacy.clip_norm=0.5",
    "game.behaviour=static",
    "data.num_clients=60",
    "game.budget_unit=0.08",
    "game.budget_bounds=[0.001,12]",
)


def expected_noise(rule, *changes):
    """What doctor expects of a cohort's noise; and shares, budgets, norms, and d·σ² of a release at ρ = 1."""
    config = configuration(*DROWNING, f"sampling.rule={rule}", *changes)
    data = dealt_out(config, load_for(config, None), 0)
    norms, schedule = measured_norms(config, data), make_schedule(config, sampler_of(config, "fedpcs"))
    share = data.num_samples / data.num_samples.sum()
    return (
        aggregated_noise("fedpcs", rule, config, schedule, data, norms),
        share,
        schedule.budget,
        norms,
        650 * 2 * 0.25,
    )


def test_with_everyone_drawn_the_noise_of_the_cohort_follows_from_the_weights_alone():
    found, share, budget, _, power = expected_noise("normalised", "sampling.sampling_ratio=1")
    assert found == pytest.approx(math.sqrt(np.mean((share**2 * power / budget).sum(axis=1))))
    found, share, budget, norms, power = expected_noise("precision", "sampling.sampling_ratio=1")
    total = norms.drift + power / budget
    own = share * norms.drift / total
    weights = own + (1.0 - own.sum(axis=1, keepdims=True)) / total / (1.0 / total).sum(axis=1, keepdims=True)
    assert found == pytest.approx(math.sqrt(np.mean((weights**2 * power / budget).sum(axis=1))))


def test_noise_is_expected_over_draws_by_budget():
    """Σ θ²v/π is the mean of Σ w²v under w = θ/π; a hundred draws of each round come near it."""
    found, share, budget, _, power = expected_noise("horvitz-thompson", "game.budget_bounds=[0.5,12]")
    π = np.stack([inclusion_probability(row, 30) for row in budget])
    assert found == pytest.approx(math.sqrt(np.mean((share**2 * power / budget / π).sum(axis=1))), rel=0.15)


@pytest.mark.parametrize(("rule", "standing"), [("hajek", "note"), ("precision", "fine"), ("default", "fine")])
def test_a_rule_that_drowns_is_told_before_the_run_and_one_that_does_not_is_not(rule, standing):
    found = by_subject(check_run(configuration(*DROWNING, f"sampling.rule={rule}"), None))["noise, fedpcs"]
    assert found.standing == standing
    assert f"weighed by {'precision' if rule == 'default' else rule}, " in found.found
    assert ("Set sampling.rule = 'precision'" in found.remedy) == (standing == "note")
    assert found.remedy.count("\n") == 0


def test_where_no_rule_helps_less_noise_is_advised():
    loud = configuration(*DROWNING, "game.budget_unit=0.0005", "sampling.rule=hajek")
    found = by_subject(check_run(loud, None))["noise, fedpcs"]
    assert found.standing == "note"
    assert "Lower privacy.clip_norm" in found.remedy


def test_without_noise_there_is_nothing_to_say_of_it():
    checks = by_subject(check_run(configuration("privacy.mode=none"), None))
    assert set(checks) == {"clients", "time", "privacy"}
    assert "No privacy" in checks["privacy"].found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "rounds=5"), "--set changes a run; name one"),
        (("no-such-preset",), "no such file or preset"),
        (("default", "--set", "privacy.clip_norm=nan"), "privacy.clip_norm"),
        (("default", "--set", "training.model=no-such-model"), "no-such-model"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, words):
    ended = fedpcs("doctor", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert ended.stderr.count("\n") <= 2
