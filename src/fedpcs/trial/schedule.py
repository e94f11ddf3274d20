"""From the game to a schedule: what each client will spend in each round if drawn, and what it is owed for it.

The game is played in units of its own (`budget_unit` zCDP each), because a client's dislike of spending is a matter of
scale: the default bounds [0.01, 12] with a unit of 0.01 stand for budgets of 0.0001 to 0.12.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fedpcs._validate import FloatArray
from fedpcs.errors import NotConverged
from fedpcs.game import equilibrium
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.population import Population, individuals, uniform
from fedpcs.game.rules import Selection, cohort_from_ratio, make_game
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig

Standing = Literal["converged", "not-played"]


@dataclass(frozen=True)
class Schedule:
    """What was announced, and what clients will do about it.

    Attributes:
        reward: (rounds,) R_t for one unit of budget.
        budget: (rounds, clients) ρ.
        pay: (rounds, clients) what a drawn client is owed.
        announced_mean: (rounds,) φ(t) as ρ.
        cohort_size: (rounds,) K_t of the game, and of the draw.
        standing: Whether budgets are a certified equilibrium, or nobody plays: nothing depends on budgets.
        exploitability: Mean gain by deviating over mean utility; None where nobody plays.
        settled_by: How the mean field came to rest; empty where nobody plays.
    """

    reward: FloatArray
    budget: FloatArray
    pay: FloatArray
    announced_mean: FloatArray
    cohort_size: NDArray[np.int64]
    standing: Standing
    exploitability: float | None
    settled_by: str


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
    num_clients, rounds = config.data.num_clients, config.rounds
    if not is_played(config, sampler):
        nothing = np.zeros(rounds)
        each = np.ones((rounds, num_clients))
        cohort = np.full(rounds, cohort_from_ratio(float(config.sampling.sampling_ratio), num_clients))
        return Schedule(nothing, each, 0.0 * each, 1.0 + nothing, cohort, "not-played", None, "")
    bounds = (float(config.game.budget_bounds[0]), float(config.game.budget_bounds[1]))
    crowd = uniform(num_clients, config.game.population_seed, bounds)
    found = solve_for(config, sampler, crowd, rounds)
    return scheduled(config, found)


def solve_for(config: RunConfig, sampler: Sampler, crowd: Population, rounds: int) -> Equilibrium:
    """Solve the game over `rounds` rounds for a population."""
    game = make_game(
        crowd,
        last_round=rounds - 1,
        cohort_size=cohort_from_ratio(float(config.sampling.sampling_ratio), crowd.num_clients),
        budget_bounds=(float(config.game.budget_bounds[0]), float(config.game.budget_bounds[1])),
        accuracy_priority=float(config.game.accuracy_priority),
        accuracy_scale=float(config.game.accuracy_scale),
        reward_max=float(config.game.reward_max),
        selection=selection_of(config, sampler),
    )
    reward = config.game.reward
    if isinstance(reward, list):  # a path for the whole run: its end is what remains
        reward = reward[-rounds:]
    try:
        return equilibrium.solve(game, reward, tolerance=float(config.game.tolerance))
    except NotConverged as error:
        raise NotConverged(
            f"the game of {crowd.num_clients} clients over {rounds} rounds has no equilibrium that certifies to "
            f"game.tolerance = {config.game.tolerance:g} under rewards {config.game.reward!r}: {error} Raise "
            "game.tolerance, or announce a constant reward, such as game.reward = 6.0, under which small games settle.",
            error.solution,
        ) from None


def scheduled(config: RunConfig, found: Equilibrium) -> Schedule:
    """Return the schedule clients follow under an equilibrium's announcement, behaving as configured."""
    budget = _played(config, found)
    unit = float(config.game.budget_unit)
    return Schedule(
        reward=found.reward.path,
        budget=unit * budget,
        pay=budget * found.reward.path[:, np.newaxis],
        announced_mean=unit * found.profile.mean_budget,
        cohort_size=found.game.cohort_size.astype(np.int64),
        standing="converged",
        exploitability=float(found.certificate.relative),
        settled_by=found.settled_by,
    )


def _played(config: RunConfig, found: Equilibrium) -> FloatArray:
    """Return (rounds, clients) what clients spend, in the game's units."""
    low, high = (float(bound) for bound in config.game.budget_bounds)
    equilibrium_budget, first = found.profile.budget, found.game.population.initial_budget
    if config.game.behaviour == "static":
        return np.broadcast_to(first, equilibrium_budget.shape)
    if config.game.behaviour == "raised":
        return np.array([_scaled_to(first, float(mean), low, high) for mean in equilibrium_budget.mean(axis=1)])
    if config.game.behaviour == "selfish":
        return np.full(equilibrium_budget.shape, low)
    return equilibrium_budget


def _scaled_to(budget: FloatArray, mean: float, low: float, high: float) -> FloatArray:
    """Return budgets times the factor at which their mean, cut off at the bounds, is `mean`."""

    def excess(factor: float) -> float:
        return float(np.clip(factor * budget, low, high).mean()) - mean

    least, most = low / float(budget.max()), high / float(budget.min())
    factor = least if excess(least) >= 0.0 else most if excess(most) <= 0.0 else brentq(excess, least, most)
    return np.asarray(np.clip(factor * budget, low, high))


def replanned(
    config: RunConfig,
    sampler: Sampler,
    before: Schedule,
    now: int,
    is_present: np.ndarray[tuple[int, ...], np.dtype[np.bool_]],
) -> Schedule:
    """Return the schedule with the rounds from `now` on solved anew for the clients that are still there.

    Everyone starts from the budget it had come to; clients that are away keep theirs, and are owed nothing for it.

    Raises:
        NotConverged: No equilibrium was found; the caller decides whether the one before still stands.
    """
    rounds = config.rounds - now
    unit = float(config.game.budget_unit)
    aversion = uniform(
        config.data.num_clients,
        config.game.population_seed,
        (float(config.game.budget_bounds[0]), float(config.game.budget_bounds[1])),
    ).privacy_aversion
    crowd = individuals(aversion[is_present], before.budget[now, is_present] / unit)
    fresh = scheduled(config, solve_for(config, sampler, crowd, rounds))
    reward, mean, cohort = before.reward.copy(), before.announced_mean.copy(), before.cohort_size.copy()
    budget, pay = before.budget.copy(), before.pay.copy()
    reward[now:], mean[now:], cohort[now:] = fresh.reward, fresh.announced_mean, fresh.cohort_size
    budget[now:, is_present], pay[now:, is_present] = fresh.budget, fresh.pay
    return replace(fresh, reward=reward, announced_mean=mean, cohort_size=cohort, budget=budget, pay=pay)
