"""A run whose clients Flower simulates: what each of Ray's processes must know to play any client of it."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fedpcs._plugins import pip_install
from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.errors import InvalidInput
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import ClientData
from fedpcs.learning.models import make_model
from fedpcs.trial.assemble import client_plan, dealt_out, load_for
from fedpcs.trial.config import RunConfig

if TYPE_CHECKING:
    from fedpcs.engines.flower.client_app import Member
    from fedpcs.engines.flower.simulation import Federation


@dataclass(frozen=True)
class SimulatedMembers:
    """Makes the client a node plays, from its number and the name of the run alone.

    Attributes:
        config: The run, as JSON: it goes to other processes with every message.
        data_dir: Where data sets lie.
        device: Where clients train.
    """

    config: str
    data_dir: str | None
    device: str

    def __call__(self, context: Any, run: str) -> Member:
        """Return a node's client in a trial, which ends in its seed; nameless, it is only asked for its number."""
        from fedpcs.engines.flower.client_app import Member

        client = int(context.node_config["partition-id"])
        if not run:
            return Member(str(client), None, 1)
        side = _side(self.config, int(run.rpartition("/")[2]), self.data_dir, self.device)
        return Member(str(client), side, int(side.data.num_samples[client]), may_be_asked=True)


@functools.lru_cache(maxsize=1)
def _side(config_json: str, seed: int, data_dir: str | None, device: str) -> ClientSide:
    """Return all clients of a trial; each of Ray's processes makes them once."""
    config = RunConfig.model_validate_json(config_json)
    dataset = load_for(config, None if data_dir is None else Path(data_dir))
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=seed)
    return ClientSide(client_plan(config, seed, device), model, dealt_out(config, dataset, seed))


def check_installed() -> None:
    """Refuse a run on Flower where Flower is not.

    Raises:
        InvalidInput: It cannot be imported.
    """
    try:
        importlib.import_module("fedpcs.engines.flower.simulation")
    except ImportError as error:
        raise InvalidInput(
            f"engine.kind is 'flower', and Flower cannot be imported ({error}). Run `{pip_install('flower')}`."
        ) from None


@contextmanager
def flower_federation(config: RunConfig, data_dir: Path | None, device: str) -> Iterator[Federation]:
    """Give a federation that Flower simulates: all trials of a run share it."""
    from fedpcs.engines.flower.simulation import simulated_federation

    where = None if data_dir is None else str(data_dir.resolve())
    members = SimulatedMembers(config.model_dump_json(), where, device)
    num_cards = torch.cuda.device_count() if device == "cuda" else 0
    with simulated_federation(members, config.data.num_clients, config.engine.num_workers, num_cards) as federation:
        yield federation


def flower_engine(
    federation: Federation, plan: ClientPlan, model: nn.Module, data: ClientData, seconds: float
) -> Engine:
    """Return an engine for one trial; models are evaluated here, on the server's own records."""
    from fedpcs.engines.flower.grid_engine import GridEngine

    here = InProcessEngine(ClientSide(plan, model, data))
    return GridEngine(
        federation.grid, lambda: federation.nodes, here.score, deadline_seconds=seconds, is_simulated=True
    )
