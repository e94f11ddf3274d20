"""From a run's configuration to the parts of its trials: data, clients, samplers, and the device to train on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import nn

from fedpcs import _random
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import PartitionedData, deal_out, own_part
from fedpcs.learning.client_plan import ClientPlan
from fedpcs.learning.datasets import Dataset, hold_out, load_dataset, with_oriented_gradients
from fedpcs.learning.device import why_missing
from fedpcs.learning.models import make_model
from fedpcs.learning.partition import label_counts, partition
from fedpcs.sampling import Sampler, make_sampler
from fedpcs.trial.config import RunConfig


@dataclass(frozen=True)
class Trial:
    """One sampler with one seed."""

    sampler: str
    seed: int

    def name_in(self, config: RunConfig) -> str:
        """Return its name in tasks, ledgers and announcements."""
        return f"{config.name}/{self.sampler}/{self.seed}"


def only_trial(config: RunConfig) -> Trial:
    """Return the trial of a configuration that has one sampler and one seed."""
    return Trial(config.sampling.samplers[0], config.seeds[0])


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


def clients_of(config: RunConfig, seed: int, data_dir: Path | None, device: str, only: int | None = None) -> ClientSide:
    """Return the clients of a trial as another process makes them: all, or only one, with its records alone."""
    dataset = load_for(config, data_dir)
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=seed)
    data = dealt_out(config, dataset, seed)
    return ClientSide(client_plan(config, seed, device), model, data if only is None else own_part(data, only))


def server_side(plan: ClientPlan, model: nn.Module, dataset: Dataset) -> ClientSide:
    """Return the server's own part of a data set in a deployment: its test records, and no client's."""
    return ClientSide(plan, model, deal_out(dataset, [np.zeros(1, dtype=np.int64)]))
