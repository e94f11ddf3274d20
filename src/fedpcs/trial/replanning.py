"""A population that changes: the game solved anew for whoever is there, and never an answer that is not certified."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from fedpcs.errors import NotConverged
from fedpcs.game.schedule import PATHS, Schedule
from fedpcs.learning.server_values import BoolArray, ServerPlan, ServerState
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig
from fedpcs.trial.schedule import replanned


class Planner(Protocol):
    """Asked before every round for the plan to go on with. What it knows is kept in checkpoints."""

    def __call__(
        self, plan: ServerPlan, state: ServerState, is_present: BoolArray
    ) -> tuple[ServerPlan, dict[str, Any]]:
        """Return the plan for the rounds from now on, and what to log."""

    def memory(self) -> dict[str, Any]:
        """Return what a checkpoint must hold."""

    def recall(self, plan: ServerPlan, memory: dict[str, Any]) -> ServerPlan:
        """Go on from what a checkpoint held; return the plan as it was then."""


class Replanner:
    """Solves the game for the rounds that remain whenever clients have come or gone since it was last solved.

    If no equilibrium is found, the run stops (`if_unsolved = "stop"`), or the last certified schedule stands
    (`"keep"`) and the log says so.
    """

    def __init__(self, config: RunConfig, sampler: Sampler, schedule: Schedule) -> None:
        self._config, self._sampler, self._schedule = config, sampler, schedule
        self._known = np.ones(config.data.num_clients, dtype=np.bool_)

    def __call__(
        self, plan: ServerPlan, state: ServerState, is_present: BoolArray
    ) -> tuple[ServerPlan, dict[str, Any]]:
        """Return the plan for the rounds from now on, and what to log."""
        here = is_present & ~state.has_left
        now = state.next_round
        if np.array_equal(here, self._known) or plan.num_rounds - now < 2 or here.sum() < 2:
            return plan, {}
        self._known = here
        try:
            self._schedule = replanned(self._config, self._sampler, self._schedule, now, here)
        except NotConverged as error:
            if self._config.game.if_unsolved == "stop":
                raise
            return plan, {"replanned": "kept the last certified schedule", "because": str(error)}
        return replace(plan, schedule=self._schedule), {
            "replanned": "solved anew",
            "exploitability": self._schedule.exploitability,
        }

    def memory(self) -> dict[str, Any]:
        """Return what a checkpoint must hold."""
        return {"known": self._known, **self._schedule.paths}

    def recall(self, plan: ServerPlan, memory: dict[str, Any]) -> ServerPlan:
        """Go on from what a checkpoint held; return the plan as it was then."""
        self._known = memory["known"]
        self._schedule = replace(self._schedule, **{name: memory[name] for name in PATHS})
        return replace(plan, schedule=self._schedule)
