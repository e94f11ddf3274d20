"""Your own network on your own arrays: two functions, named in the configuration, and a run like any other.

A run finds both by name ("module:function"), also in worker processes and when it is resumed. So this file is one that
Python can import, and what starts the run stands at the end, behind the test of `__name__`.
"""

import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fedpcs.learning.datasets import Dataset, make_dataset
from fedpcs.trial.config import RunConfig
from fedpcs.trial.progress import Display
from fedpcs.trial.run import start_run


class Net(nn.Module):
    """Any module will do whose layers treat records one by one, so that each record's gradient can be clipped."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(num_features, 16)
        self.scores = nn.Linear(16, num_classes)
        self.shortcut = nn.Linear(num_features, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return one score for each class."""
        found: Tensor = self.scores(torch.tanh(self.hidden(inputs))) + self.shortcut(inputs)
        return found


def network(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return a fresh network."""
    return Net(input_shape[0], num_classes)


def readings() -> Dataset:
    """Return your arrays, train and test; here, twelve noisy sensors of a machine in one of five states."""
    rng = np.random.default_rng(0)
    level = rng.normal(size=(5, 12))
    state = rng.integers(5, size=5_000)
    inputs = level[state] + rng.normal(size=(state.size, 12))
    return make_dataset("readings", (inputs[:4_000], state[:4_000]), (inputs[4_000:], state[4_000:]))


if __name__ == "__main__":
    config = RunConfig.model_validate(
        {
            "rounds": 10,
            "data": {"name": "own_model_and_data:readings", "num_clients": 40},
            "training": {"model": "own_model_and_data:network", "learning_rate": 2.0, "batch_size": 0},
            "privacy": {"mode": "record", "clip_norm": 0.5},
            "game": {"budget_unit": 0.02, "reward": 6.0},
            "sampling": {"samplers": ["fedpcs", "random"], "sampling_ratio": 0.3},
            "engine": {"kind": "in-process"},
        }
    )
    with tempfile.TemporaryDirectory() as folder, Display(config) as display:
        result = start_run(config, Path(folder) / "run", None, display).result
    print("sampler   accuracy   ε spent (least / median / greatest client)")
    for trial in result.trials if result is not None else ():
        epsilon = trial.spent.epsilon
        spread = (epsilon.minimum, epsilon.median, epsilon.maximum)
        spent = " / ".join(f"{math.ceil(100 * one) / 100:.2f}" for one in spread)
        print(f"{trial.sampler:8s}  {trial.accuracy:8.1%}   {spent}")
