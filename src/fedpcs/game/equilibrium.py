"""Solve the whole game: rewards, the clients' equilibrium under them, and the certificate that it is one.

`solve` is the front door of `fedpcs.game`. It returns an `Equilibrium` with its status, or raises `NotConverged` (which
carries the same object) when no profile was found that certifies to the tolerance asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import NotConverged
from fedpcs.game import exact, mean_field, verify, welfare
from fedpcs.game.commitment import commit
from fedpcs.game.mean_field import RESPONSE_MODES, MeanField, ResponseMode
from fedpcs.game.payoffs import Profile, server_cost
from fedpcs.game.per_round import per_round
from fedpcs.game.population import compress, mean_by_cell
from fedpcs.game.rules import Game, RewardPlan, Terms

Status = Literal["converged", "not-converged", "not-an-equilibrium", "not-resolved"]

STATUS_MEANING: dict[Status, str] = {
    "converged": "No client gains more than the tolerance by deviating from the profile and its own mean budgets.",
    "not-converged": "The mean budgets still move from sweep to sweep, and no profile found certifies. "
    "Raise `tolerance`, or use response = 'exact' if you did not.",
    "not-an-equilibrium": "The mean budgets stand still, but clients gain more than the tolerance by deviating. "
    "Raise `tolerance`, or use response = 'exact' if you did not.",
    "not-resolved": "The gain that was found is within the tolerance, but gain and resolution together are not: the "
    "certificate may have missed that much. Raise `tolerance` above the sum of both.",
}
_MOST_REFINEMENTS = 2
_MOST_BINS = 32


@dataclass(frozen=True)
class Equilibrium:
    """A solved game.

    Attributes:
        game: What was solved.
        reward: What the server announces, and how it was found.
        profile: What clients do.
        status: See `STATUS_MEANING`.
        iterations: Sweeps over the mean field, for the final rewards.
        residual: max_t |Δφ(t)| of the sweep that led to the profile.
        settled_by: "sweeps" when that change is within the tolerance; "search" when single clients' changes of
            mind keep φ moving and the profile with the least gain was kept; "nothing" otherwise.
        certificate: How much clients could gain by deviating.
        cost: (rounds,) the server's expected cost.
        history: (iterations + 1, rounds) φ sweep by sweep.
    """

    game: Game
    reward: RewardPlan
    profile: Profile
    status: Status
    iterations: int
    residual: float
    settled_by: Literal["sweeps", "search", "nothing"]
    certificate: verify.Certificate
    cost: FloatArray
    history: FloatArray

    @property
    def terms(self) -> Terms:
        """What the server announces to clients."""
        return self.game.terms(self.reward.path, self.profile.mean_budget)

    def welfare(self) -> tuple[welfare.Welfare, welfare.PriceOfAnarchy]:
        """Return welfare and price of anarchy, here and under a sampler that ignores budgets."""
        blind = replace(self.game, selection="budget-blind")
        other = mean_field.settle(blind, self.reward.path).profile
        return welfare.assess(self.profile.budget, other.budget, self.reward.path, self.game)


def solve(
    game: Game,
    reward_policy: str | float | ArrayLike = "commitment",
    *,
    response: ResponseMode = "exact",
    tolerance: float = 1e-3,
    throw: bool = True,
) -> Equilibrium:
    """Solve the two-stage game and certify the answer.

    Args:
        game: The rules and the population.
        reward_policy: "commitment", "per-round", a number, or one number per round.
        response: How clients answer: "exact", "costate" (Theorem 1, corrected), "paper" (Theorem 1 and Algorithm 1 as
            printed) or "paper-backward" (the same, with the factors of each sweep computed from the last round back).
        tolerance: Largest relative exploitability of an equilibrium. Sweeps stop when φ changes by no more than
            this; where it never does, the profile with the least exploitability is kept (`settled_by`).
        throw: Raise `NotConverged` rather than return a result that is not an equilibrium.

    Solves: rewards R and a mean field φ such that clients who best-respond to (R, φ) have mean budget φ.

    Example:
        >>> from fedpcs.game import make_game, uniform
        >>> found = solve(make_game(uniform(50, seed=1), last_round=5), 5.0)
        >>> found.status, found.certificate.relative < 1e-4
        ('converged', True)
    """
    _validate.choice("response", response, RESPONSE_MODES)
    limit = _validate.positive("tolerance", tolerance)
    plan = plan_rewards(game, reward_policy)
    outcome, certificate = _settle_and_certify(game, plan.path, response, limit)
    status = _status(outcome, certificate, limit)
    found = Equilibrium(
        game,
        plan,
        outcome.profile,
        status,
        outcome.iterations,
        outcome.residual,
        _settled_by(outcome, status, limit),
        certificate,
        server_cost(outcome.profile.budget, plan.path, game),
        outcome.history,
    )
    if throw and status != "converged":
        raise NotConverged(
            f"{status}: residual {found.residual:.3g}, relative exploitability {certificate.relative:.3g}, resolution "
            f"{certificate.resolution:.3g}, tolerance {limit:g}. {STATUS_MEANING[status]}",
            found,
        )
    return found


def plan_rewards(game: Game, policy: str | float | ArrayLike) -> RewardPlan:
    """Return the rewards that `policy` announces: "commitment", "per-round", a number or a path.

    The server plans against clients who answer exactly, whatever mode they are then played in.
    """
    if not isinstance(policy, str):
        return RewardPlan(game.reward_path(policy), "fixed")
    _validate.choice("reward", policy, ("commitment", "per-round"), or_else="a number or a list")
    return commit(game) if policy == "commitment" else per_round(game)


def _status(outcome: MeanField, certificate: verify.Certificate, tolerance: float) -> Status:
    """Return what the certificate makes of a profile: it has the last word, however the profile was found."""
    if certificate.is_equilibrium(tolerance):
        return "converged"
    if certificate.is_too_coarse_for(tolerance):
        return "not-resolved"
    return "not-an-equilibrium" if outcome.is_settled else "not-converged"


def _settled_by(outcome: MeanField, status: Status, tolerance: float) -> Literal["sweeps", "search", "nothing"]:
    if not outcome.is_settled and status != "converged":
        return "nothing"
    return "sweeps" if outcome.residual <= tolerance else "search"


def _settle_and_certify(
    game: Game, path: FloatArray, response: ResponseMode, tolerance: float
) -> tuple[MeanField, verify.Certificate]:
    """Settle the mean field; refine the exact response's table until it certifies; return the best profile met."""
    resolution = exact.Resolution()
    start = None
    found: list[tuple[MeanField, verify.Certificate]] = []
    for _ in range(_MOST_REFINEMENTS + 1):
        outcome = mean_field.settle(game, path, response, tolerance=tolerance, start=start, resolution=resolution)
        certificate = verify.certify(outcome.profile, path, game, tolerance=tolerance)
        found.append((outcome, certificate))
        if response != "exact" or certificate.is_equilibrium(tolerance) or certificate.resolution > tolerance:
            break
        resolution, start = resolution.refined(), outcome.profile.mean_budget
    return min(found, key=lambda one: one[1].relative + one[1].resolution)


def merge_types(found: Equilibrium, most_types: int) -> tuple[Game, FloatArray]:
    """Return the game and its (rounds, types) budgets, types merged where there are more than `most_types`.

    Merged types take the mean of theirs, so mean budgets and the mean aversion stay what they were.
    """
    crowd = found.game.population
    if crowd.num_types <= most_types:
        return found.game, found.profile.budget
    side = min(_MOST_BINS, math.isqrt(most_types))
    mean, _ = mean_by_cell(crowd, (side, side))
    few = compress(crowd, (side, side))
    return replace(found.game, population=few), np.array([mean(row) for row in found.profile.budget])


def merge_note(found: Equilibrium, game: Game) -> str:
    """Return what a figure must say when it was computed for `game` in place of `found.game`."""
    if game is found.game:
        return ""
    whole, merged = found.game.population.num_types, game.population.num_types
    return f"Computed with the {whole:,} types merged into {merged:,}."
