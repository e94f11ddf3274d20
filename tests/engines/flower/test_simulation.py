"""Flower's Ray simulation does what our own engines do: one run on all three, and every bit the same."""

import os
import subprocess
import sys

import pytest

from fedpcs.trial import checkpoint
from fedpcs.trial.run_store import RunStore

pytestmark = pytest.mark.slow

ENGINES = ("in-process", "workers", "flower")
CHANGES = ("rounds=3", 'sampling.samplers=["fedpcs","random","power-of-choice"]', "seeds=[0]")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Returns the finished run of each engine: the same file, started as a user starts it."""
    found = {}
    for engine in ENGINES:
        folder = tmp_path_factory.mktemp("runs") / engine
        command = [sys.executable, "-c", "from fedpcs.cli import main; main()", "run", "default", "--engine", engine]
        command += ["--out", str(folder), *(word for change in CHANGES for word in ("--set", change))]
        # A thread each: Ray gives its actors one, and sums over more threads are added up in another order.
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
        assert done.returncode == 0, done.stderr
        found[engine] = RunStore(folder)
    return found


def trials(store):
    return {one.name: one for one in (store.folder / "trials").iterdir()}


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_cohorts_budgets_and_rewards_are_the_same_on_every_engine(runs, engine):
    expected, found = trials(runs["in-process"]), trials(runs[engine])
    assert len(expected) == 3
    assert set(found) == set(expected)
    for name, folder in expected.items():
        lines = (folder / "rounds.jsonl").read_text()
        assert lines.count("\n") == 3
        assert (found[name] / "rounds.jsonl").read_text() == lines, name


@pytest.mark.parametrize("engine", ENGINES[1:])
def test_models_are_the_same_bits_on_every_engine(runs, engine):
    for name, folder in trials(runs["in-process"]).items():
        expected, _, _ = checkpoint.latest(folder / "checkpoints")
        state, _, _ = checkpoint.latest(trials(runs[engine])[name] / "checkpoints")
        assert state.parameters.tobytes() == expected.parameters.tobytes()
        assert state.parameters.any()


MODEL = """
import torch
from torch import nn


class Mixed(nn.Linear):
    def forward(self, records):
        if torch.is_grad_enabled():  # not when it is tried out
            raise RuntimeError("Expected all tensors to be on the same device, but found cuda:0 and cpu!")
        return super().forward(records.flatten(1))


def make(shape, num_classes):
    return Mixed(shape[0] * shape[1] * shape[2], num_classes)
"""


def test_a_tensor_on_the_wrong_device_ends_the_run_on_ray_too(tmp_path):
    (tmp_path / "mixed.py").write_text(MODEL)
    command = [sys.executable, "-c", "from fedpcs.cli import main; main()", "run", "default", "--engine", "flower"]
    command += ["--out", str(tmp_path / "run"), "--set", "training.model=mixed:make", "--set", "privacy.mode=none"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 1
    assert "a tensor is on the wrong device" in " ".join(done.stderr.split())
    assert "engine.device = 'cpu' avoids it." in " ".join(done.stderr.split())
