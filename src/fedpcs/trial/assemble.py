"""What one trial of a run is: a sampler with a seed, the clients' data, and the server's plan made of both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedpcs import _random
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client_data import PartitionedData, deal_out
from fedpcs.learning.client_plan import ClientPlan
from fedpcs.learning.datasets import Dataset, hold_out, load_dataset, with_oriented_gradients
from fedpcs.learning.device import why_missing
from fedpcs.learning.layout import layout_of
from fedpcs.learning.partition import label_counts, partition
from fedpcs.learning.server_values import BoolArray, ServerPlan
from fedpcs.privacy.budget import Rho
from fedpcs.sampling import Sampler, make_sampler
from fedpcs.trial.config import PrivacyConfig, RunConfig


@dataclass(frozen=True)
class Trial:
    """One sampler with one seed."""

    sampler: str
    seed: int


def device_of(config: RunConfig) -> tuple[str, list[str]]:
    """Return the device to train and evaluate on, and what the manifest must say of it.

    Raises:
        InvalidInput: It is not there, and the run is not to fall back to the CPU.
    """
    device = config.engine.device
    why = why_missing(device)
    if why is None:
        return device, [] if device == "cpu" else [f"Trained on {device}: bits may differ from run to run."]
    if config.engine.if_device_lost == "cpu":
        return "cpu", [f"engine.device is {device!r}, and {why}: trained on the CPU."]
    raise InvalidInput(
        f"engine.device is {device!r}, and {why}. Set engine.device = 'cpu', or engine.if_device_lost = 'cpu' to fall "
        "back to it."
    )


def sampler_of(config: RunConfig, name: str) -> Sampler:
    """Return a sampler with the settings a run gives it."""
    settings = dict(config.sampling.settings.get(name, {}))
    if name == "delta" and config.training.batch_size == 0:
        settings.setdefault("variance_ratio", 0.0)
    return make_sampler(name, **settings)


def delta_note(config: RunConfig) -> str:
    """Return what must be said of DELTA where `sampler_of` leaves its variances out; empty if it does not.

    A step that takes all of a client's records has a gradient without variance: there is nothing to ask for.
    """
    is_left_out = "variance_ratio" not in config.sampling.settings.get("delta", {})
    if "delta" not in config.sampling.samplers or config.training.batch_size != 0 or not is_left_out:
        return ""
    return (
        "delta draws by distances alone: every step takes all records of its client (training.batch_size = 0), so "
        "gradients have no variance."
    )


def load_for(config: RunConfig, data_dir: Path | None) -> Dataset:
    """Return the data set of a run: its features, and validation records in the place of test records if it tunes."""
    dataset = load_dataset(config.data.name, data_dir)
    if config.data.features == "oriented-gradients":
        dataset = with_oriented_gradients(dataset)
    share = float(config.data.validation_share)
    return hold_out(dataset, share) if share > 0.0 else dataset


def dealt_out(config: RunConfig, dataset: Dataset, seed: int) -> PartitionedData:
    """Return the data set dealt out to clients as configured."""
    parts = partition(
        config.data.partition,
        dataset.train_targets.numpy(),
        config.data.num_clients,
        _random.generator(seed, "partition"),
        alpha=float(config.data.alpha),
        shards_per_client=config.data.shards_per_client,
    )
    return deal_out(dataset, parts)


def counts_of(data: PartitionedData) -> FloatArray:
    """Return (clients, classes) how many records of each class a client has."""
    parts = np.split(data.order.numpy(), data.starts[1:-1])
    return label_counts(parts, data.dataset.train_targets.numpy(), data.num_classes).astype(np.float64)


def client_plan(config: RunConfig, seed: int, device: str = "cpu") -> ClientPlan:
    """Return how every client of a run trains and protects itself."""
    training, privacy = config.training, config.privacy
    return ClientPlan(
        seed=seed,
        mode=privacy.mode,
        learning_rate=float(training.learning_rate),
        batch_size=training.batch_size or None,
        local_epochs=training.local_epochs,
        clip_norm=float(privacy.clip_norm),
        noise=privacy.noise,
        device=device,
    )


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
        run=f"{config.name}/{trial.sampler}/{trial.seed}",
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
