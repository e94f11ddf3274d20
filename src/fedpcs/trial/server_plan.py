"""The plan by which the server runs a trial, made of its configuration and of what the server knows of clients."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedpcs._validate import FloatArray
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client_data import PartitionedData
from fedpcs.learning.layout import layout_of
from fedpcs.learning.server_values import BoolArray, ServerPlan
from fedpcs.privacy.budget import Rho
from fedpcs.sampling import Sampler
from fedpcs.trial.assemble import Trial, client_plan, counts_of
from fedpcs.trial.config import PrivacyConfig, RunConfig


def server_plan(
    config: RunConfig,
    trial: Trial,
    sampler: Sampler,
    schedule: Schedule,
    data: PartitionedData,
    model: nn.Module,
    device: str = "cpu",
) -> ServerPlan:
    """Return the federation a trial of a run is."""
    counts = counts_of(data) if "label_counts" in sampler.reads else None
    return plan_for(config, trial, sampler, schedule, data.num_samples, model, device, counts)


def plan_for(
    config: RunConfig,
    trial: Trial,
    sampler: Sampler,
    schedule: Schedule,
    num_samples: NDArray[np.int64],
    model: nn.Module,
    device: str = "cpu",
    label_counts: FloatArray | None = None,
) -> ServerPlan:
    """Return the same from what a server knows of clients' data: how many records each has, and counts if asked for."""
    training, privacy = config.training, config.privacy
    return ServerPlan(
        run=trial.name_in(config),
        seed=trial.seed,
        client=client_plan(config, trial.seed, device),
        layout=layout_of(model),
        num_samples=num_samples,
        sampler=sampler,
        rule=config.sampling.rule,
        schedule=schedule,
        limit=_limit(privacy),
        momentum=float(training.server_momentum),
        rate=float(training.server_rate),
        averaging=float(training.averaging),
        outlier_factor=float(config.engine.outlier_factor),
        quorum=float(config.engine.quorum),
        label_counts=label_counts,
        weight_cap=None if config.sampling.weight_cap is None else float(config.sampling.weight_cap),
        by_design=config.sampling.by_design,
    )


def _limit(privacy: PrivacyConfig) -> Rho | None:
    if privacy.limit_epsilon is None:
        return None
    from fedpcs.privacy.conversion import to_rho

    law: Literal["exact", "tight"] = "tight" if privacy.noise == "exact" else "exact"
    return Rho.at_most(to_rho(float(privacy.limit_epsilon), float(privacy.delta), law))


def presence(config: RunConfig, round_index: int) -> BoolArray:
    """Return (clients,) who can be reached in a round."""
    found = np.ones(config.data.num_clients, dtype=np.bool_)
    for one in config.presence:
        found[one.client] = one.joins <= round_index and (one.leaves is None or round_index < one.leaves)
    return found
