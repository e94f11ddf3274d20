"""A server that does not know its clients: it solves the game for a prior, announces, listens, and corrects itself.

Clients answer an announcement with the budgets they will spend. If their mean strays from the φ(t) that was announced,
the prior was wrong: clients respond to a crowd that is not there, and rewards are not the cheapest. The server then
infers from the answers whom it has before it (`fedpcs.game.inference`), solves the game of the rounds that remain, and
announces anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.deploy.beliefs import believed, prior_of
from fedpcs.deploy.node_settings import conditions_of
from fedpcs.engines.flower.announcement import Announcement
from fedpcs.errors import NotConverged, QuorumNotReached
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.schedule import PATHS, Schedule, not_played
from fedpcs.learning.server_values import BoolArray, ServerPlan, ServerState
from fedpcs.privacy.budget import NANOS_PER_UNIT
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig
from fedpcs.trial.schedule import scheduled, selection_of, solve_for

IntArray = NDArray[np.int64]
# (announcement, clients) → the budgets of those that answer, in billionths, by client.
AskTerms = Callable[[Announcement, IntArray], dict[int, IntArray]]
# Answers to a false announcement may leave an aversion open; answers to a better one tell more.
_MOST_CORRECTIONS = 3
# Clients round their budgets down to billionths.
_ROUNDING = 2.0 / NANOS_PER_UNIT


class Announcer:
    """Announces terms, keeps the budgets clients answered with, and watches their mean.

    Args:
        config: The run.
        sampler: Who draws: clients respond to whether it looks at budgets.
        run: Name of the run.
        num_clients: N.
        ask: Puts an announcement to clients.
        say: Told of answers that cannot be.
    """

    def __init__(
        self,
        config: RunConfig,
        sampler: Sampler,
        run: str,
        num_clients: int,
        ask: AskTerms,
        say: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._config, self._sampler, self._run, self._ask, self._say = config, sampler, run, ask, say
        self._num_clients = num_clients
        self.has_answered: BoolArray = np.zeros(num_clients, dtype=np.bool_)
        self._tried: BoolArray | None = None
        lowest = float(config.game.budget_unit) * config.game.bounds[0]
        self._schedule = replace(not_played(config.rounds, num_clients, 1, lowest), standing="converged")
        self._announced = self._announcement(0, self._schedule.reward, self._schedule.mean_budget)

    @property
    def schedule(self) -> Schedule:
        """What was announced, and what clients answered."""
        return self._schedule

    def start(self) -> None:
        """Solve the game for the prior, announce it, and hear what clients answer. Not for a run that has begun.

        Raises:
            NotConverged: The prior's game has no equilibrium that certifies.
            QuorumNotReached: Nobody answers.
        """
        prior = prior_of(self._config, self._num_clients)
        found = solve_for(self._config, self._sampler, prior, self._config.rounds)
        self._announce(0, found, np.ones(self._num_clients, dtype=np.bool_))
        if not self.has_answered.any():
            raise QuorumNotReached("no client answered what was announced. Are clients connected, and may they answer?")

    def ask_missing(self, is_connected: BoolArray) -> None:
        """Put the last announcement to clients that are here and have not answered it."""
        if (is_connected & ~self.has_answered).any():
            self._listen(is_connected & ~self.has_answered)

    def __call__(
        self, plan: ServerPlan, state: ServerState, is_present: BoolArray
    ) -> tuple[ServerPlan, dict[str, Any]]:
        """Return the plan for the rounds from now on, and what to log: how far the crowd is from what was announced."""
        now, here = state.next_round, is_present & ~state.has_left
        extra: dict[str, Any] = {"budget_drift": float(self._drift(now, here)[0])}
        is_tried = self._tried is not None and np.array_equal(here, self._tried)
        if self._config.federation.reannounce == "on-drift" and not is_tried and plan.num_rounds - now >= 2:
            extra |= self._corrected(now, here)
        return replace(plan, schedule=self._schedule), extra

    def _corrected(self, now: int, here: BoolArray) -> dict[str, Any]:
        """Announce anew until the crowd is where it is said to be; return what to log of it."""
        logged: dict[str, Any] = {}
        tolerance = float(self._config.federation.drift_tolerance)
        for count in range(1, _MOST_CORRECTIONS + 1):
            if np.abs(self._drift(now, here)).max() <= tolerance or (here & self.has_answered).sum() < 2:
                return logged
            self._tried = here
            try:
                found = self._solved_anew(now, here)
            except NotConverged as error:
                return {**logged, "unsolved": str(error)}
            self._announce(now, found, here)
            logged = {"announced_anew": count, "greatest_drift": float(np.abs(self._drift(now, here)).max())}
        return logged

    def _solved_anew(self, now: int, here: BoolArray) -> Equilibrium:
        """Solve the game of the rounds that remain. What was promised stands: rewards rise or stay, this round's stays.

        Left to itself, a leader would start afresh and pay nothing to clients who can no longer go back.
        """
        heard, first = here & self.has_answered, self._announced.first_round
        answered = self._schedule.budget[first:, heard] / float(self._config.game.budget_unit)
        crowd = believed(self._announced.terms(), answered, now - first, int(here.sum()))
        found = solve_for(self._config, self._sampler, crowd, self._config.rounds - now)
        promised = self._schedule.reward[now:]
        path = np.maximum(found.reward.path, promised)
        path[0] = promised[0]
        if np.allclose(path, found.reward.path):
            return found
        game = self._config.game.model_copy(update={"reward": path.tolist()})
        return solve_for(self._config.model_copy(update={"game": game}), self._sampler, crowd, path.size)

    def memory(self) -> dict[str, Any]:
        """Return what a checkpoint must hold."""
        announced = self._announced
        return {
            "tried": np.zeros(0, dtype=np.bool_) if self._tried is None else self._tried,
            "announced_from": np.array([announced.first_round]),
            "announced_mean": np.array(announced.mean_budget),
            "announced_exploitability": np.array([self._schedule.exploitability]),
            **self._schedule.paths,
        }

    def recall(self, plan: ServerPlan, memory: dict[str, Any]) -> ServerPlan:
        """Go on from what a checkpoint held; return the plan as it was then.

        Everyone is asked again: a client may have agreed to an announcement that no checkpoint knows of.
        """
        self._tried = memory["tried"] if memory["tried"].size else None
        gain = float(memory["announced_exploitability"][0])
        self._schedule = replace(self._schedule, exploitability=gain, **{name: memory[name] for name in PATHS})
        first = int(memory["announced_from"][0])
        self._announced = self._announcement(first, self._schedule.reward[first:], memory["announced_mean"])
        return replace(plan, schedule=self._schedule)

    def _announce(self, now: int, found: Equilibrium, to: BoolArray) -> None:
        self._schedule = self._schedule.announced_from(now, scheduled(self._config, found))
        self._announced = self._announcement(now, found.reward.path, found.profile.mean_budget)
        self.has_answered = self.has_answered & ~to
        self._listen(to)

    def _announcement(self, first: int, reward: FloatArray, mean: FloatArray) -> Announcement:
        return Announcement(
            self._run,
            first,
            tuple(float(one) for one in reward),
            tuple(float(one) for one in mean),
            tuple(int(one) for one in self._schedule.cohort_size[first:]),
            self._num_clients,
            selection_of(self._config, self._sampler),
            conditions_of(self._config),
        )

    def _listen(self, to: BoolArray) -> None:
        """Ask clients, and write down what those answer that do."""
        first, unit = self._announced.first_round, float(self._config.game.budget_unit)
        budget, pay = self._schedule.budget.copy(), self._schedule.pay.copy()
        has_answered = self.has_answered.copy()
        for client, nanos in self._ask(self._announced, np.flatnonzero(to)).items():
            if (problem := self._impossible(nanos)) is not None:
                self._say(f"client {client} is not drawn: {problem}")
                continue
            budget[first:, client] = nanos / NANOS_PER_UNIT
            pay[first:, client] = self._schedule.reward[first:] * budget[first:, client] / unit
            has_answered[client] = True
        self.has_answered = has_answered
        self._schedule = replace(self._schedule, budget=budget, pay=pay)

    def _impossible(self, nanos: IntArray) -> str | None:
        """Say why no client could have answered so: budgets out of bounds, or moved away from the crowd's mean."""
        unit, announced = float(self._config.game.budget_unit), self._announced
        low, high = (unit * bound for bound in self._config.game.bounds)
        budget = nanos / NANOS_PER_UNIT
        wrong = np.flatnonzero((budget < low - _ROUNDING) | (budget > high + _ROUNDING))
        if wrong.size:
            t = int(wrong[0])
            return f"budget of round {announced.first_round + t} must be in [{low:g}, {high:g}], got {budget[t]:g}."
        mean = unit * np.array(announced.mean_budget[:-1])
        least, most = np.minimum(budget[:-1], mean), np.maximum(budget[:-1], mean)
        room = _ROUNDING + 1e-6 * most
        moved = np.flatnonzero((budget[1:] < least - room) | (budget[1:] > most + room))
        if moved.size:
            t = int(moved[0])
            return (
                f"budget of round {announced.first_round + t + 1} must lie between its own, {budget[t]:g}, and the "
                f"mean, {mean[t]:g}, of the round before, got {budget[t + 1]:g}."
            )
        return None

    def _drift(self, now: int, here: BoolArray) -> FloatArray:
        """Return (rounds from now on,) how far the mean of budgets is from the announced one, relative to it."""
        heard = here & self.has_answered
        if not heard.any():
            return np.zeros(self._schedule.reward.size - now)
        return np.asarray(self._schedule.budget[now:, heard].mean(axis=1) / self._schedule.mean_budget[now:] - 1.0)
