"""Where simulated clients run: in this process, in workers, or in processes of Ray's that Flower starts."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import ClientData
from fedpcs.learning.server_values import ServerPlan
from fedpcs.trial.assemble import clients_of
from fedpcs.trial.config import RunConfig
from fedpcs.trial.session import Session

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
    where = None if data_dir is None else Path(data_dir)
    return clients_of(RunConfig.model_validate_json(config_json), seed, where, device)


@contextmanager
def federated(session: Session, config: RunConfig) -> Iterator[None]:
    """Have Flower play the clients of all trials in the block, if the run is to."""
    if config.engine.kind != "flower":
        yield
        return
    from fedpcs.engines.flower.simulation import simulated_federation

    where = None if session.data_dir is None else str(session.data_dir.resolve())
    members = SimulatedMembers(config.model_dump_json(), where, session.device)
    num_cards = torch.cuda.device_count() if session.device == "cuda" else 0
    with simulated_federation(members, config.data.num_clients, config.engine.num_workers, num_cards) as federation:
        session.federation = federation
        yield


@contextmanager
def engine_of(
    config: RunConfig, federation: Federation | None, plan: ServerPlan, model: nn.Module, data: ClientData
) -> Iterator[Engine]:
    """Give the engine for one trial, as configured; models are evaluated here, on the server's own records."""
    engine = _make_engine(config, federation, plan, model, data)
    try:
        yield engine
    finally:
        engine.close()


def _make_engine(
    config: RunConfig, federation: Federation | None, plan: ServerPlan, model: nn.Module, data: ClientData
) -> Engine:
    seconds = float(config.engine.deadline_seconds)
    if federation is not None:
        from fedpcs.engines.flower.grid_engine import GridEngine

        here = InProcessEngine(ClientSide(plan.client, model, data))
        return GridEngine(
            federation.grid, lambda: federation.nodes, here.score, deadline_seconds=seconds, is_simulated=True
        )
    if config.engine.kind == "in-process":
        return InProcessEngine(ClientSide(plan.client, model, data), seconds)
    return WorkerEngine(
        plan.client,
        model,
        data,
        num_workers=config.engine.num_workers,
        num_slots=int(plan.schedule.cohort_size.max()),
        deadline_seconds=seconds,
    )
