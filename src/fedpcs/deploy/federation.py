"""What the rounds of a deployment are played with: announced terms, and clients on machines of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedpcs.deploy.announcer import Announcer, IntArray
from fedpcs.deploy.roster import Roster
from fedpcs.engines.flower.announcement import Announcement
from fedpcs.engines.flower.directory import Directory
from fedpcs.engines.flower.grid_engine import GridEngine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.learning.models import make_model
from fedpcs.trial.assemble import only_trial, sampler_of, server_side
from fedpcs.trial.config import RunConfig
from fedpcs.trial.server_plan import plan_for
from fedpcs.trial.session import Session
from fedpcs.trial.setup import Setup


@dataclass(frozen=True)
class Federation:
    """Clients on machines of their own.

    Attributes:
        grid: Over which they are reached.
        directory: Which node plays which client.
        roster: Who takes part.
        poll_seconds: How often to look for replies.
        is_announced: Whether clients have agreed to terms in a life before this one: a checkpoint knows of them.
    """

    grid: Grid
    directory: Directory
    roster: Roster
    poll_seconds: float
    is_announced: bool

    @contextmanager
    def set_up(self, config: RunConfig, session: Session) -> Iterator[Setup]:
        """Announce terms, unless that was done; give what the trial is played with."""
        trial = only_trial(config)
        sampler, seconds = sampler_of(config, trial.sampler), float(config.engine.deadline_seconds)

        def ask(announcement: Announcement, clients: IntArray) -> dict[int, IntArray]:
            return self.directory.ask_terms(announcement, clients, seconds)

        def presence(_: int) -> NDArray[np.bool_]:
            connected = self.directory.is_connected()
            announcer.ask_missing(connected)
            return connected & announcer.has_answered

        sizes = self.roster.num_samples
        announcer = Announcer(config, sampler, trial.name_in(config), sizes.size, ask, session.observer.say)
        if not self.is_announced:
            announcer.start()
        dataset = session.dataset
        model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=trial.seed)
        plan = replace(
            plan_for(config, trial, sampler, announcer.schedule, sizes, model, session.device),
            max_samples=self.roster.max_samples,
            largest_weight=float(config.federation.largest_weight),
        )
        engine = GridEngine(
            self.grid,
            self.directory.nodes,
            InProcessEngine(server_side(plan.client, model, dataset)).score,
            deadline_seconds=seconds,
            poll_seconds=self.poll_seconds,
            task_seconds=seconds,
        )
        yield Setup(plan, model, engine, lambda: announcer.schedule, presence, replan=announcer)
