"""From a run's configuration to the game its clients play, and to their schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedpcs.errors import NotConverged
from fedpcs.game import equilibrium
from fedpcs.game.assemble import game_from
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.population import Population, individuals, uniform
from fedpcs.game.rules import Selection, cohort_from_ratio
from fedpcs.game.schedule import Schedule, not_played, schedule_of
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig


def selection_of(config: RunConfig, sampler: Sampler) -> Selection:
    """Return how clients believe to be drawn, which is what they respond to: as they are, unless the run says other."""
    if config.game.selection != "as-drawn":
        return config.game.selection
    return "budget-aware" if "budget" in sampler.reads else "budget-blind"


def is_played(config: RunConfig, sampler: Sampler) -> bool:
    """Say whether budgets matter at all: they set the draw, the noise, or both."""
    return config.privacy.is_private or "budget" in sampler.reads


def make_schedule(config: RunConfig, sampler: Sampler) -> Schedule:
    """Solve the game a sampler's clients face, and let them behave as configured.

    Raises:
        NotConverged: No equilibrium was found to the tolerance asked for.
    """
    clients = config.data.num_clients
    if not is_played(config, sampler):
        return not_played(config.rounds, clients, cohort_from_ratio(float(config.sampling.sampling_ratio), clients))
    return scheduled(config, solve_for(config, sampler, _population(config), config.rounds))


def solve_for(config: RunConfig, sampler: Sampler, crowd: Population, rounds: int) -> Equilibrium:
    """Solve the game over the last `rounds` rounds for a population."""
    game = game_from(
        config.game,
        crowd,
        last_round=rounds - 1,
        selection=selection_of(config, sampler),
        sampling_ratio=float(config.sampling.sampling_ratio),
    )
    reward = config.game.reward
    try:
        return equilibrium.solve(
            game, reward[-rounds:] if isinstance(reward, list) else reward, tolerance=float(config.game.tolerance)
        )
    except NotConverged as error:
        raise NotConverged(
            f"the game of {crowd.num_clients} clients over {rounds} rounds has no equilibrium that certifies to "
            f"game.tolerance = {config.game.tolerance:g} under rewards {config.game.reward!r}: {error} Raise "
            "game.tolerance, or announce a constant reward, such as game.reward = 6.0, under which small games settle.",
            error.solution,
        ) from None


def scheduled(config: RunConfig, found: Equilibrium) -> Schedule:
    """Return the schedule clients follow under an equilibrium's announcement, behaving as configured."""
    return schedule_of(found, budget_unit=float(config.game.budget_unit), behaviour=config.game.behaviour)


def replanned(
    config: RunConfig, sampler: Sampler, before: Schedule, now: int, is_present: NDArray[np.bool_]
) -> Schedule:
    """Return the schedule with the rounds from `now` on solved anew for the clients that are still there.

    Everyone starts from the budget it had come to; clients that are away keep theirs, and are owed nothing for it.

    Raises:
        NotConverged: No equilibrium was found; the caller decides whether the one before still stands.
    """
    unit, aversion = float(config.game.budget_unit), _population(config).privacy_aversion
    crowd = individuals(aversion[is_present], before.budget[now, is_present] / unit)
    fresh = scheduled(config, solve_for(config, sampler, crowd, config.rounds - now))
    return before.followed_by(now, fresh, is_present)


def _population(config: RunConfig) -> Population:
    return uniform(config.data.num_clients, config.game.population_seed, config.game.bounds)
