"""The clients' equilibrium for given rewards: φ(t) must equal the mean of the budgets it induces.

One sweep takes an announced path φ to the profile of best responses and the mean it creates. With exact responses the
forward pass uses the crowd's own mean round by round, so a correction reaches all later rounds within the sweep and
only the continuation values lag behind; most games settle in five to ten sweeps.

Exact best responses can jump: a client may be indifferent between staying out and joining the crowd. With finitely many
clients the mean then jumps too and no φ reproduces itself to the last digit, although profiles exist from which nobody
gains more than a trifle. When sweeps stop improving, damped announcements are searched for such a profile and the one
with the least gain is kept. The gain, not the sweep, decides what is an equilibrium (`fedpcs.game.verify`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game import costate, exact
from fedpcs.game.payoffs import Profile, client_utility, profile_from_retention
from fedpcs.game.population import compress
from fedpcs.game.rules import Game

ResponseMode = Literal["exact", "costate", "paper", "paper-backward"]
RESPONSE_MODES: tuple[ResponseMode, ...] = ("exact", "costate", "paper", "paper-backward")
# Algorithm 1 as printed rarely stops by itself. A correction moves one round a sweep, so that of 31 rounds this leaves
# nothing of where it began.
PAPER_SWEEPS = 100

# Beyond this many types φ is first settled on a histogram of them, then finished on all.
_MOST_DIRECT_TYPES = 20_000
_MOST_PLAIN_SWEEPS = 60
_MOST_SEARCH_SWEEPS = 80
_MOST_COSTATE_SWEEPS = 400
_COSTATE_DAMPING = 0.1
# A share of the largest budget; a profile whose mean moves less holds its dynamics as a certificate asks it to.
_AT_REST = 1e-7


@dataclass(frozen=True)
class MeanField:
    """Where the sweeps ended.

    Attributes:
        profile: The last profile, consistent with its own mean.
        is_settled: Whether the last sweep moved φ by no more than the tolerance, or the search found a
            profile from which clients gain no more than that.
        iterations: Sweeps made.
        residual: max_t |Δφ(t)| of the last sweep, in absolute value.
        history: (iterations + 1, rounds) φ before the first sweep and after each.
    """

    profile: Profile
    is_settled: bool
    iterations: int
    residual: float
    history: FloatArray


def settle(
    game: Game,
    reward: FloatArray,
    response: ResponseMode = "exact",
    *,
    tolerance: float = 1e-3,
    start: FloatArray | None = None,
    resolution: exact.Resolution | None = None,
    most_sweeps: int | None = None,
) -> MeanField:
    """Iterate whole paths φ → best responses → new φ until max_t |Δφ(t)| ≤ tolerance.

    Args:
        game: The rules and the population.
        reward: (rounds,) announced rewards.
        response: How clients answer.
        tolerance: Largest change of φ in one sweep that counts as settled.
        start: (rounds,) φ to begin with; the initial mean in every round if absent.
        resolution: How fine the exact response's table is.
        most_sweeps: Stop after so many sweeps and do not search beyond them; for policies that need many
            rough answers.
    """
    population = game.population
    first = np.full(game.last_round + 1, population.mean(population.initial_budget)) if start is None else start
    if response == "costate":
        return _settle_costate(game, reward, first, tolerance)
    if response != "exact":
        return _settle_printed(game, reward, first, tolerance, backward=response == "paper-backward")
    grid = resolution or exact.Resolution()
    if population.num_types > _MOST_DIRECT_TYPES:
        crowd = replace(game, population=compress(population))
        rough = settle(crowd, reward, tolerance=tolerance, start=first, resolution=grid, most_sweeps=most_sweeps)
        first = rough.profile.mean_budget
    return _settle_exact(game, reward, first, tolerance, grid, most_sweeps)


def _settle_exact(
    game: Game,
    reward: FloatArray,
    first: FloatArray,
    tolerance: float,
    resolution: exact.Resolution,
    most_sweeps: int | None,
) -> MeanField:
    population = game.population
    rows = exact.table_rows(population, resolution)

    def tabulate(mean: FloatArray) -> exact.ValueTable:
        terms = game.terms(reward, mean)
        return exact.tabulate(terms, rows, population.initial_budget, resolution)

    def sweep(mean: FloatArray) -> Profile:
        return exact.play(tabulate(mean), game.terms(reward, mean), population, in_order=True)

    outcome = _iterate(sweep, first, tolerance, most_sweeps or _MOST_PLAIN_SWEEPS)
    if outcome.is_settled or most_sweeps is not None:
        return outcome

    def relative_gain(profile: Profile) -> float:
        """Let every type deviate alone against the profile's own mean, and compare what it really earns."""
        terms = game.terms(reward, profile.mean_budget)
        answer = exact.play(tabulate(profile.mean_budget), terms, population, in_order=False)
        aversion = population.privacy_aversion
        best = client_utility(answer.budget, answer.retention, aversion, terms)
        earned = client_utility(profile.budget, profile.retention, aversion, terms)
        gain = population.weight @ np.maximum(0.0, best - earned)
        return float(gain / (population.weight @ np.abs(best)))

    return _search(sweep, relative_gain, outcome, tolerance)


def _iterate(
    sweep: Callable[[FloatArray], Profile],
    mean: FloatArray,
    tolerance: float,
    most_sweeps: int,
    *,
    may_be_stuck: bool = True,
) -> MeanField:
    """Sweep until φ stands still, or until it has stopped getting closer to that."""
    history, residuals = [mean], []
    while True:
        profile = sweep(mean)
        residuals.append(float(np.abs(profile.mean_budget - mean).max()))
        mean = profile.mean_budget
        history.append(mean)
        is_settled = residuals[-1] <= tolerance
        if is_settled or len(residuals) >= most_sweeps or (may_be_stuck and _is_stuck(residuals)):
            return MeanField(profile, is_settled, len(residuals), residuals[-1], np.array(history))


def _is_stuck(residuals: list[float]) -> bool:
    return len(residuals) >= 12 and min(residuals[-4:]) > 0.5 * min(residuals[-12:-4])


def _search(
    sweep: Callable[[FloatArray], Profile],
    relative_gain: Callable[[Profile], float],
    outcome: MeanField,
    tolerance: float,
) -> MeanField:
    """Look among damped announcements for the profile from which clients gain least."""
    best, least = outcome.profile, relative_gain(outcome.profile)
    residual, iterations, history = outcome.residual, outcome.iterations, list(outcome.history)
    mean, damping = outcome.profile.mean_budget, 0.5
    # Half the tolerance leaves room for what the solver's table and the certificate see differently.
    while least > 0.5 * tolerance and iterations < outcome.iterations + _MOST_SEARCH_SWEEPS:
        profile = sweep(mean)
        iterations += 1
        gain = relative_gain(profile)
        if gain < least:
            best, least = profile, gain
            residual = float(np.abs(profile.mean_budget - mean).max())
            history.append(profile.mean_budget)
        mean = mean + damping * (profile.mean_budget - mean)
        damping = max(0.03, 0.94 * damping)
    return MeanField(best, least <= tolerance, iterations, residual, np.array(history))


def _settle_costate(game: Game, reward: FloatArray, mean: FloatArray, tolerance: float) -> MeanField:
    """Sweep Theorem 1, corrected and damped; the profile is that of the last retentions against their own mean."""
    population = game.population
    retention = np.zeros((game.last_round + 1, population.num_types))

    def sweep(announced: FloatArray) -> Profile:
        nonlocal retention
        terms = game.terms(reward, announced)
        current = profile_from_retention(population, retention, announced)
        asked = costate.stationary_retention(current, population.privacy_aversion, terms, printed=False, backward=True)
        retention = retention + _COSTATE_DAMPING * (asked - retention)
        return profile_from_retention(population, retention, announced)

    outcome = _iterate(sweep, mean, tolerance * _COSTATE_DAMPING, _MOST_COSTATE_SWEEPS, may_be_stuck=False)
    return replace(outcome, profile=profile_from_retention(population, retention))


def _settle_printed(game: Game, reward: FloatArray, mean: FloatArray, tolerance: float, *, backward: bool) -> MeanField:
    """Run Algorithm 1 on whole paths and given rewards; its profile is what was played in the last sweep.

    A sweep plays the factors of the sweep before against its φ (lines 3 and 4), computes new factors (lines 5 to 9) and
    takes the mean of what was played for the new φ (lines 10 and 11). Initial factors are arbitrary in the paper. Here
    they are what Theorem 1 asks of clients who join the crowd: from equal factors the first sweep would move nothing,
    and the loop would end there.
    """
    population = game.population
    retention = np.zeros((game.last_round + 1, population.num_types))

    def sweep(announced: FloatArray) -> Profile:
        nonlocal retention
        played = profile_from_retention(population, retention, announced)
        retention = costate.stationary_retention(
            played, population.privacy_aversion, game.terms(reward, announced), printed=True, backward=backward
        )
        return played

    sweep(mean)
    rest = min(tolerance, _AT_REST * float(population.initial_budget.max()))
    outcome = _iterate(sweep, mean, rest, PAPER_SWEEPS, may_be_stuck=False)
    return replace(outcome, is_settled=outcome.residual <= tolerance)
