"""What the rounds of a trial are played with: the server's plan, the model, and an engine where its clients run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from torch import nn

from fedpcs.engines.base import Engine
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client_data import PartitionedData
from fedpcs.learning.models import make_model
from fedpcs.learning.server_values import BoolArray, ServerPlan
from fedpcs.trial.assemble import counts_of, dealt_out, only_trial, sampler_of
from fedpcs.trial.config import RunConfig
from fedpcs.trial.replanning import Planner, Replanner
from fedpcs.trial.server_plan import presence, server_plan
from fedpcs.trial.session import Session
from fedpcs.trial.simulated import engine_of

_MOST_COUNTS = 20_000


@dataclass(frozen=True)
class Setup:
    """What the rounds of a trial are played with.

    Attributes:
        plan: The federation.
        model: The network, as it is before the first round.
        engine: Where clients run.
        announced: Gives the schedule that the trial's result names, once its rounds are done.
        presence: round → (clients,) who can be reached; None: everyone.
        replan: Asked before every round for the plan to go on with; None: the plan stands.
        label_counts: (clients, classes) records, for figures.
    """

    plan: ServerPlan
    model: nn.Module
    engine: Engine
    announced: Callable[[], Schedule]
    presence: Callable[[int], BoolArray] | None = None
    replan: Planner | None = None
    label_counts: list[list[int]] | None = None


# (one trial's configuration, session) → what to play it with, for the length of a block.
SetUp = Callable[[RunConfig, Session], AbstractContextManager[Setup]]


@contextmanager
def simulated(config: RunConfig, session: Session) -> Iterator[Setup]:
    """Give what a trial is played with whose clients are simulated here."""
    trial = only_trial(config)
    sampler = sampler_of(config, trial.sampler)
    schedule = session.schedule(config, sampler)
    data = dealt_out(config, session.dataset, trial.seed)
    model = make_model(config.training.model, data.input_shape, data.num_classes, seed=trial.seed)
    plan = server_plan(config, trial, sampler, schedule, data, model, session.device)
    may_replan = config.game.replan == "on-change" and schedule.standing != "not-played"
    with engine_of(config, session.federation, plan, model, data) as engine:
        yield Setup(
            plan,
            model,
            engine,
            announced=lambda: schedule,
            presence=functools.partial(presence, config) if config.presence else None,
            replan=Replanner(config, sampler, schedule) if may_replan else None,
            label_counts=_label_counts(data),
        )


def _label_counts(data: PartitionedData) -> list[list[int]] | None:
    """Return how many records of each class a client has; None of a population too large to show."""
    if data.num_samples.size * data.num_classes > _MOST_COUNTS:
        return None
    found: list[list[int]] = counts_of(data).astype(int).tolist()
    return found
