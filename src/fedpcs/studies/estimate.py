"""How long a sweep will take, from one client's training and one evaluation measured on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from fedpcs.game.rules import cohort_from_ratio
from fedpcs.learning.client import ClientSide
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.device import no_mistaken_device, one_thread, why_missing
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho
from fedpcs.studies.grid import Cell
from fedpcs.trial.assemble import client_plan, dealt_out, load_for, sampler_of
from fedpcs.trial.config import RunConfig

# A process of its own, the data, the model, results on the disk.
_START_SECONDS = 4.0
_SCORED = 500


@dataclass(frozen=True)
class Pace:
    """What was measured.

    Attributes:
        train_seconds: One client of middling size trains, once.
        score_seconds: One evaluation on all test records.
    """

    train_seconds: float
    score_seconds: float


def estimate(cells: Sequence[Cell], data_dir: Path | None) -> dict[str, float]:
    """Return the seconds each cell will take on one core, by its key."""
    datasets: dict[str, Dataset] = {}
    paces: dict[str, Pace] = {}
    found: dict[str, float] = {}
    for cell in cells:
        data_key, pace_key = _data_key(cell.config), _pace_key(cell.config)
        if pace_key not in paces:
            if data_key not in datasets:
                datasets[data_key] = load_for(cell.config, data_dir)
            paces[pace_key] = measure(cell.config, datasets[data_key])
        found[cell.key] = seconds_of(cell.config, cell.sampler, paces[pace_key])
    return found


def measure(config: RunConfig, dataset: Dataset) -> Pace:
    """Time one client's training and an evaluation; a first step, which compiles kernels, is not counted."""
    data = dealt_out(config, dataset, config.seeds[0])
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=0)
    device = "cpu" if why_missing(config.engine.device) else config.engine.device
    side, parameters = ClientSide(client_plan(config, 0, device), model, data), torch.from_numpy(flat_parameters(model))
    client = int(np.argsort(data.num_samples)[data.num_samples.size // 2])
    budget = Rho.at_most(1.0) if config.privacy.is_private else None
    out = torch.empty_like(parameters)
    num_scored = min(_SCORED, data.num_tests)
    taken = []
    with one_thread(), no_mistaken_device():
        for index in range(2):
            began = time.perf_counter()
            side.answer(Task("estimate", index, client, "", budget), parameters, out)
            trained = time.perf_counter()
            side.score(0, num_scored, parameters)
            taken.append((trained - began, (time.perf_counter() - trained) * data.num_tests / num_scored))
    return Pace(*taken[-1])


def seconds_of(config: RunConfig, sampler: str, pace: Pace) -> float:
    """Return what one seed takes at a pace: whoever is drawn trains; some samplers have everybody train, to ask."""
    num_clients = config.data.num_clients
    per_round = float(cohort_from_ratio(float(config.sampling.sampling_ratio), num_clients))
    if "update_norm" in sampler_of(config, sampler).reads:
        per_round += num_clients
    scored = -(-config.rounds // config.evaluate_every)
    return _START_SECONDS + config.rounds * per_round * pace.train_seconds + scored * pace.score_seconds


def _data_key(config: RunConfig) -> str:
    return f"{config.data.name} {config.data.features} {config.data.validation_share}"


def _pace_key(config: RunConfig) -> str:
    parts = [config.data.model_dump(mode="json"), config.training.model_dump(mode="json"), config.privacy.mode]
    return json.dumps(parts, sort_keys=True)
