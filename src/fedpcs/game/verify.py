"""The certificate: how much could any client gain by deviating, recomputed apart from the solver.

Exploitability of a client is its best achievable utility against the profile's own mean field, less what the
profile gives it. A profile is an equilibrium to tolerance ε when the mean gain is at most ε of the mean best
utility. Nothing in fedpcs is called an equilibrium without this number.

The best utility is held from two sides. From below by a path the client could play: what it earns more is a gain for
certain. From above by a bound that holds however coarse the checking grid is (`fedpcs.game._audit_kernels`). What lies
between them is the certificate's *resolution*: gains that it cannot rule out. Grids are refined until the resolution is
a fifth of the tolerance. A profile counts as an equilibrium only if what was seen and what may be unseen together stay
within the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fedpcs._threads import in_threads
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game import _audit_kernels
from fedpcs.game.payoffs import Profile, client_utility
from fedpcs.game.population import Population
from fedpcs.game.rules import Game, Terms

# More types than the first number share grids first; those left undecided, up to the second number, get their own.
_FEWEST_SHARING, _MOST_OWN_GRIDS = 2_000, 10_000
_MOST_PASSES, _MOST_NODES = 24, 480
# Rows of aversion and nodes per round that a crowd shares, tried in turn.
_SHARED_SIZES = ((129, 400), (257, 800), (513, 1_600))
# Of the tolerance: how much may stay unseen before grids are refined no further.
_UNSEEN_SHARE = 0.2
_MOST_INCONSISTENT = 1e-6


@dataclass(frozen=True)
class Certificate:
    """How far a profile is from equilibrium.

    Attributes:
        mean: Mean gain of a client that deviates alone.
        max: Largest such gain.
        relative: `mean` over the mean absolute best utility.
        resolution: How much larger than `relative` the true figure may be, at most.
        inconsistency: Largest distance between a budget and what the retentions and the mean field say it is,
            as a share of the client's largest budget.
        gain: (types,) each type's gain.
    """

    mean: float
    max: float
    relative: float
    resolution: float
    inconsistency: float
    gain: FloatArray

    def is_equilibrium(self, tolerance: float) -> bool:
        """Whether gains, seen and unseen, are at most `tolerance` (relative, on average), and the dynamics hold."""
        return self.relative + self.resolution <= tolerance and self.inconsistency <= _MOST_INCONSISTENT

    def is_too_coarse_for(self, tolerance: float) -> bool:
        """Whether what was seen is within `tolerance` and only what cannot be seen may exceed it."""
        return self.relative <= tolerance < self.relative + self.resolution and self.inconsistency <= _MOST_INCONSISTENT


@dataclass(frozen=True)
class Achievable:
    """The best utility of each type against what is announced, from both sides.

    Attributes:
        shown: (types,) what a path that was found earns.
        at_most: (types,) what no path can exceed.
    """

    shown: FloatArray
    at_most: FloatArray


@dataclass(frozen=True)
class _Looked:
    """What is known of every type's best utility so far: `shown` is raised and `at_most` lowered in place."""

    paths: FloatArray
    terms: Terms
    aversion: FloatArray
    slack: float
    shown: FloatArray
    at_most: FloatArray


def certify(profile: Profile, reward: FloatArray, game: Game, *, tolerance: float = 1e-3) -> Certificate:
    """Return the certificate of `profile` under `reward`, from budgets and retentions alone.

    Args:
        profile: Budgets and retentions; its mean field is recomputed from the budgets.
        reward: (rounds,) announced rewards.
        game: The rules and the population.
        tolerance: What the certificate will be held against: it is made fine enough to see a fifth of it.
    """
    population = game.population
    mean = profile.budget @ population.weight
    terms = game.terms(reward, mean)
    earned = client_utility(profile.budget, profile.retention, population.privacy_aversion, terms)
    reach = best_achievable(profile.budget, terms, population, earned=earned, accuracy=_UNSEEN_SHARE * tolerance)
    gain = reach.shown - earned
    mean_gain = float(population.weight @ gain)
    relative = _share(mean_gain, float(population.weight @ np.abs(reach.shown)))
    # The true best lies between `shown` and `at_most`; its size is least where both leave it nearest to zero.
    least = float(population.weight @ np.maximum(0.0, np.maximum(reach.shown, -reach.at_most)))
    most = _share(float(population.weight @ (reach.at_most - earned)), least)
    return Certificate(
        mean_gain, float(gain.max()), relative, max(0.0, most - relative), _inconsistency(profile, mean, game), gain
    )


def _share(part: float, whole: float) -> float:
    if part <= 0.0:
        return 0.0
    return part / whole if whole > 0.0 else np.inf


def best_achievable(
    paths: FloatArray,
    terms: Terms,
    population: Population,
    *,
    earned: FloatArray | None = None,
    accuracy: float = 1e-5,
) -> Achievable:
    """Return each type's best utility against the announced mean field, held from both sides.

    Args:
        paths: (rounds, types) budgets; the first row is where each type starts, the others say where to look closely.
        terms: What is announced.
        population: The types.
        earned: (types,) what they are known to earn already; nothing if absent.
        accuracy: Mean distance of the two sides to aim for, as a share of mean absolute utility.
    """
    aversion = population.privacy_aversion
    if earned is None:  # to stay where one starts is a path of everyone's
        stay = np.vstack((np.ones((paths.shape[0] - 1, paths.shape[1])), np.zeros(paths.shape[1])))
        earned = client_utility(np.broadcast_to(paths[0], paths.shape), stay, aversion, terms)
    shown, at_most = earned.copy(), np.full(population.num_types, np.inf)
    slack = accuracy * float(population.weight @ np.abs(earned))
    looked = _Looked(paths, terms, aversion, slack, shown, at_most)
    left = np.arange(population.num_types)
    if left.size > _FEWEST_SHARING:
        for size in _SHARED_SIZES:
            _look_together(looked, *size)
            is_fine = population.weight @ (at_most - shown) <= slack
            left = left[:0] if is_fine else np.flatnonzero(at_most - shown > slack)
            if left.size <= _FEWEST_SHARING:
                break
    if left.size <= _MOST_OWN_GRIDS:
        _look_alone(looked, left)
    return Achievable(shown, np.maximum(at_most, shown))


def _look_alone(looked: _Looked, members: NDArray[np.int64]) -> None:
    """Raise `shown` and lower `at_most` for some types, each on a grid of its own."""
    given = looked.paths, looked.aversion, members, _announced(looked.terms), (looked.slack, _MOST_PASSES, _MOST_NODES)
    in_threads(partial(_audit_kernels.examine, *given, looked.shown, looked.at_most), members.size, smallest_chunk=4)


def _look_together(looked: _Looked, num_rows: int, num_nodes: int) -> None:
    """Raise `shown` and lower `at_most` for all types, on grids they share: rows of aversion, nodes for every round."""
    rows = _shared_rows(looked.aversion, num_rows)
    members = np.argsort(looked.aversion, kind="stable")
    given = *_shared_nodes(looked.paths, looked.terms, num_nodes), rows, looked.paths[0], looked.aversion, members
    limits = _announced(looked.terms), looked.slack
    together = partial(_audit_kernels.examine_together, *given, *limits, looked.shown, looked.at_most)
    in_threads(together, rows.size - 1, smallest_chunk=8)


def _announced(terms: Terms) -> _audit_kernels.Announced:
    return terms.reward, terms.mean_budget, terms.cohort_size, float(terms.num_clients), terms.is_budget_aware


def _shared_rows(aversion: FloatArray, count: int) -> FloatArray:
    """Return aversions to tabulate: half of them where clients are, half spread evenly."""
    crowd = np.quantile(aversion, np.linspace(0.0, 1.0, count // 2), method="nearest")
    even = np.linspace(aversion.min(), aversion.max(), count // 2)
    rows = np.unique(np.concatenate((crowd, even)))
    return rows if rows.size > 1 else np.array([rows[0], rows[0] + 1e-9])


def _shared_nodes(paths: FloatArray, terms: Terms, size: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return rising nodes for every round, (rounds, most) with how many there are: where clients are, and around φ.

    They reach over all budgets that can be had: in round t those between the first budgets and φ(0) … φ(t−1).
    """
    steps = np.geomspace(1e-5, 1.0, size // 20)
    low, high = float(paths[0].min()), float(paths[0].max())
    grids = []
    for t, row in enumerate(paths):
        crowd = np.quantile(row, np.linspace(0.0, 1.0, size // 2), method="nearest")
        parts = [crowd, np.linspace(low, high, size // 4), [terms.num_clients * terms.mean_budget[t]]]
        for centre in terms.mean_budget[max(t - 1, 0) : t + 1]:
            parts += [[centre], centre + (high - centre) * steps, centre - (centre - low) * steps]
        nodes = np.unique(np.concatenate(parts))
        high = max(high, low * (1.0 + 1e-9))
        grids.append(np.unique(np.append(nodes[(nodes > low) & (nodes < high)], (low, high))))
        low, high = min(low, float(terms.mean_budget[t])), max(high, float(terms.mean_budget[t]))
    count = np.array([grid.size for grid in grids])
    table = np.zeros((len(grids), int(count.max())))
    for row, grid in zip(table, grids, strict=True):
        row[: grid.size] = grid
    return table, count


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
    moved = np.abs(profile.budget[1:] - expected).max(axis=0)
    started = np.abs(profile.budget[0] - game.population.initial_budget)
    return float((np.maximum(moved, started) / profile.budget.max(axis=0)).max())
