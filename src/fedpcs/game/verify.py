"""The certificate: how much could any client gain by deviating, recomputed apart from the solver.

Exploitability of a client is its best achievable utility against the profile's own mean field, less what the
profile gives it. A profile is an equilibrium to tolerance ε when the mean gain is at most ε of the mean best
utility. Nothing in fedpcs is called an equilibrium without this number.

For large populations the best utility is computed on a grid of aversions and read linearly in between. A strategy's
utility is linear in ψ, so the best one is convex in it and that reading errs upward. Moving between nodes only errs
downward, by O(h²): gains of up to about 1e-4 of the mean utility may go unseen in a large population.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpcs._threads import in_threads
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game import _audit_kernels
from fedpcs.game.payoffs import Profile, client_utility
from fedpcs.game.population import Population
from fedpcs.game.rules import Game, Terms

# Up to this many types each gets a grid of its own that contains its own path.
_MOST_OWN_GRIDS = 400


@dataclass(frozen=True)
class Certificate:
    """How far a profile is from equilibrium.

    Attributes:
        mean: Mean gain of a client that deviates alone.
        max: Largest such gain.
        relative: `mean` over the mean absolute best utility.
        inconsistency: Largest distance between a budget and what the retentions and the mean field say it is,
            as a share of the largest budget.
        gain: (types,) each type's gain.
    """

    mean: float
    max: float
    relative: float
    inconsistency: float
    gain: FloatArray

    def is_equilibrium(self, tolerance: float) -> bool:
        """Whether no client gains more than `tolerance` (relative, on average) and the dynamics hold."""
        return self.relative <= tolerance and self.inconsistency <= 1e-6


def certify(profile: Profile, reward: FloatArray, game: Game, *, num_nodes: int = 240) -> Certificate:
    """Return the certificate of `profile` under `reward`, from budgets and retentions alone.

    Args:
        profile: Budgets and retentions; its mean field is recomputed from the budgets.
        reward: (rounds,) announced rewards.
        game: The rules and the population.
        num_nodes: Evenly spread nodes of the checking grid; mean budgets and own paths are added.
    """
    population = game.population
    mean = profile.budget @ population.weight
    terms = game.terms(reward, mean)
    earned = client_utility(profile.budget, profile.retention, population.privacy_aversion, terms)
    best = best_achievable(profile.budget, terms, population, num_nodes=num_nodes)
    gain = np.maximum(0.0, best - earned)
    scale = float(population.weight @ np.abs(best))
    mean_gain = float(population.weight @ gain)
    relative = mean_gain / scale if scale > 0.0 else float(mean_gain > 0.0)
    return Certificate(mean_gain, float(gain.max()), relative, _inconsistency(profile, mean, game), gain)


def best_achievable(paths: FloatArray, terms: Terms, population: Population, *, num_nodes: int = 240) -> FloatArray:
    """Return each type's best utility against the announced mean field: (types,).

    Args:
        paths: (rounds, types) budgets; the first row is where each type starts. With few types the whole
            path joins the grid, so that "change nothing" is always among the deviations.
        terms: What is announced.
        population: The types.
        num_nodes: Evenly spread nodes.
    """
    low = min(float(paths.min()), float(terms.mean_budget.min()))
    high = max(float(paths.max()), float(terms.mean_budget.max()))
    base = np.concatenate((np.linspace(low, high, num_nodes), terms.mean_budget))
    announced = (terms.reward, terms.mean_budget, terms.cohort_size, float(terms.num_clients), terms.is_budget_aware)
    result = np.empty(population.num_types)
    aversion = population.privacy_aversion
    if population.num_types <= _MOST_OWN_GRIDS:
        each = np.broadcast_to(base, (population.num_types, base.size))
        grids = np.ascontiguousarray(np.sort(np.hstack((each, paths.T)), axis=1))

        def own_grid(first: int, last: int) -> None:
            _audit_kernels.best_utility(grids, paths[0], aversion, *announced, result, first, last)

        in_threads(own_grid, population.num_types, smallest_chunk=4)
        return result
    nodes = np.sort(base)
    # Sine spacing puts rows close together at both ends, where few of them would leave large cells.
    span = 0.5 - 0.5 * np.cos(np.pi * np.linspace(0.0, 1.0, 129))
    rows = aversion.min() + (aversion.max() - aversion.min()) * span
    table = np.empty((rows.size, nodes.size))

    def fill(first: int, last: int) -> None:
        for r in range(first, last):
            _audit_kernels.value_on_nodes(table[r], nodes, rows[r], *announced, 1)

    in_threads(fill, rows.size, smallest_chunk=4)
    opening = (float(terms.reward[0]), float(terms.mean_budget[0]), float(terms.cohort_size[0]), *announced[3:])

    def first_move(first: int, last: int) -> None:
        _audit_kernels.best_first_move(nodes, rows, table, paths[0], aversion, *opening, result, first, last)

    in_threads(first_move, population.num_types, smallest_chunk=4096)
    return result


def check_profile(profile: Profile, game: Game) -> None:
    """Refuse budgets or retentions that are not a profile of this game at all.

    Raises:
        InvalidInput: Wrong shape, NaN, a retention outside [0, 1], or a first row that is not the initial budget.
    """
    shape = (game.last_round + 1, game.population.num_types)
    for name, array in (("budget", profile.budget), ("retention", profile.retention)):
        if array.shape != shape:
            raise InvalidInput(f"{name} must have shape {shape} (rounds, clients) for this game, got {array.shape}.")
        if not np.isfinite(array).all():
            raise InvalidInput(
                f"{name} must be finite; it holds {int((~np.isfinite(array)).sum())} NaN or inf entries."
            )
    if not ((profile.retention >= 0.0) & (profile.retention <= 1.0)).all():
        worst = float(profile.retention.flat[np.abs(profile.retention - 0.5).argmax()])
        raise InvalidInput(f"retention must lie in [0, 1], got {worst!r}.")
    low, high = game.budget_bounds
    if not ((profile.budget >= low - 1e-9) & (profile.budget <= high + 1e-9)).all():
        raise InvalidInput(
            f"budget must lie in budget_bounds [{low:g}, {high:g}], got values in "
            f"[{profile.budget.min():g}, {profile.budget.max():g}]."
        )


def _inconsistency(profile: Profile, mean: FloatArray, game: Game) -> float:
    mean = mean[:-1, None]
    expected = mean + profile.retention[:-1] * (profile.budget[:-1] - mean)
    moved = float(np.abs(profile.budget[1:] - expected).max())
    started = float(np.abs(profile.budget[0] - game.population.initial_budget).max())
    return max(moved, started) / float(profile.budget.max())
