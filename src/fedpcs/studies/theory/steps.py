"""What each round's step met: the loss before it, and how the loss bends under it, measured at the models of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fedpcs._validate import FloatArray
from fedpcs.learning.curvature import Bend, bend_of, mean_curvature, top_curvature
from fedpcs.learning.datasets import Dataset, normalised
from fedpcs.learning.layout import Values, flat_parameters, load_parameters
from fedpcs.learning.models import make_model
from fedpcs.theory.account import WatchedRounds, with_momentum
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import RoundRecord

_MOST_RECORDS = 2000


def watched_rounds(
    config: RunConfig, dataset: Dataset, lines: Sequence[RoundRecord], models: Sequence[Values]
) -> WatchedRounds:
    """Measure the loss and how it bends before each round, on evenly chosen training records."""
    count = min(_MOST_RECORDS, len(dataset.train_targets))
    chosen = torch.linspace(0, len(dataset.train_targets) - 1, count).long()
    inputs, targets = normalised(dataset, dataset.train_inputs[chosen]), dataset.train_targets[chosen]
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=config.seeds[0])
    path = [flat_parameters(model), *models]
    rows, losses = [], []
    for t, now in enumerate(path):
        load_parameters(model, torch.from_numpy(now))
        bend = bend_of(model, inputs, targets)
        losses.append(bend.loss)
        if t < len(models):
            rows.append(_row(bend, now.astype(np.float64) - path[t + 1].astype(np.float64)))
    gain, bent, top, mean, steepness = np.array(rows).T
    rate, momentum = float(config.training.server_rate), float(config.training.server_momentum)
    parts = {
        name: rate
        * with_momentum(
            np.array([getattr(line.step_parts, name) for line in lines]), momentum, is_random=name != "signal"
        )
        for name in ("signal", "spread", "noise")
    }
    effective = np.array([line.draw.effective_sample_size or 1.0 for line in lines])
    return WatchedRounds(
        loss=np.array(losses[:-1]),
        change=np.diff(losses),
        gain=gain,
        bent=bent,
        top_curvature=top,
        mean_curvature=mean,
        gradient_norm=steepness,
        client_spread=parts["spread"] * np.sqrt(effective),
        **parts,
    )


def _row(bend: Bend, step: FloatArray) -> tuple[float, float, float, float, float]:
    return (
        float(bend.gradient @ step),
        float(step @ bend.times(step)),
        top_curvature(bend),
        mean_curvature(bend),
        float(np.linalg.norm(bend.gradient)),
    )
