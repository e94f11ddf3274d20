"""The exact best response: backward dynamic programming on the budget, then a forward pass per client.

A client's value depends on who it is only through ψ, so values are tabulated on (budget, ψ) once, whatever N is; only
the forward pass grows with the number of clients. Exactness rests on three things. Half of the nodes are spread evenly,
half lie where clients start, so that one large budget does not stretch the grid over everyone else. More nodes crowd
logarithmically around the mean budgets φ(t) and φ(t−1), where values bend most: a client near the mean can leave or
join it almost for free. And between nodes the maximum is taken in closed form (`fedpcs.game._kernels`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fedpcs import _validate
from fedpcs._threads import in_threads
from fedpcs._validate import FloatArray
from fedpcs.game import _kernels
from fedpcs.game.payoffs import Profile, chance_of, client_utility, selection_probability, selection_slope
from fedpcs.game.population import AVERSION_BOUNDS, Population
from fedpcs.game.rules import Terms

# Nearest nodes to a mean, as a share of the way to the end of the range.
_NEAREST = 1e-4


@dataclass(frozen=True)
class Resolution:
    """How fine the table is.

    Attributes:
        spread: Nodes over the budgets in play, half of them evenly, half where clients start.
        clustered: Nodes on each side of each of the two mean budgets, in geometric steps.
        aversion: Rows over ψ. Fewer distinct ψ than this get a row each; more share rows, values blended.
    """

    spread: int = 96
    clustered: int = 18
    aversion: int = 129

    def refined(self) -> Resolution:
        """Return a resolution twice as fine."""
        return Resolution(2 * self.spread, self.clustered + 6, 2 * self.aversion)


COARSE = Resolution(spread=48, clustered=9)


@dataclass(frozen=True)
class ValueTable:
    """Best achievable utility from each round on.

    Attributes:
        aversion: (rows,) ψ, rising.
        nodes: (rounds, nodes) budgets, rising in each round.
        value: (rounds, rows, nodes).
        slope: (rounds, rows, nodes), its derivative in the budget.
    """

    aversion: FloatArray
    nodes: FloatArray
    value: FloatArray
    slope: FloatArray

    def rows(self, aversion: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """Return for each ψ the row at or below it and how far it lies towards the next."""
        if self.aversion.size == 1:
            return np.zeros(aversion.size, dtype=np.int64), np.zeros(aversion.size)
        row = np.searchsorted(self.aversion, aversion, side="right") - 1
        row = row.clip(0, self.aversion.size - 2)
        width = self.aversion[row + 1] - self.aversion[row]
        fraction = ((aversion - self.aversion[row]) / width).clip(0.0, 1.0)
        whole = fraction == 1.0
        return row + whole, np.where(whole, 0.0, fraction)


def tabulate(
    terms: Terms,
    aversion: FloatArray,
    initial_budget: FloatArray,
    resolution: Resolution | None = None,
) -> ValueTable:
    """Tabulate the value of every budget a client may come to in every round, for each ψ in `aversion`.

    Solves: V_t(ρ) = P(ρR − ψρ²) + max_y {V_{t+1}(y) − P(1−ψ)((y−φ)/(ρ−φ))²}, y between φ and ρ.
    """
    nodes = _nodes(terms.mean_budget, initial_budget, resolution or Resolution())
    shape = (terms.last_round + 1, aversion.size, nodes.shape[1])
    value, slope = np.empty(shape), np.empty(shape)
    # A budget-blind chance is one number broadcast over the nodes; the kernel wants it in memory.
    chance = np.ascontiguousarray(selection_probability(nodes, terms))
    chance_slope = selection_slope(nodes, terms)
    given = aversion, nodes, terms.reward, terms.mean_budget, _cells(nodes), chance, chance_slope
    in_threads(partial(_kernels.tabulate, *given, value, slope), aversion.size, smallest_chunk=8)
    return ValueTable(aversion, nodes, value, slope)


def table_rows(population: Population, resolution: Resolution | None = None) -> FloatArray:
    """Return the ψ to tabulate for a population: each type's own, or a shared grid when there are many.

    The shared grid is even in ψ − 0.15·log(1−ψ): near ψ = 1 resisting the crowd becomes free and behaviour
    changes with 1 − ψ, so rows crowd there.
    """
    own = np.unique(population.privacy_aversion)
    count = (resolution or Resolution()).aversion
    if own.size <= count:
        return own
    dense = np.linspace(own[0], own[-1], 4097)
    stretched = dense - 0.15 * np.log1p(-dense)
    rows = np.interp(np.linspace(stretched[0], stretched[-1], count), stretched, dense)
    rows[0], rows[-1] = own[0], own[-1]
    return rows


def play(table: ValueTable, terms: Terms, population: Population, *, in_order: bool) -> Profile:
    """Let every type follow the table from its initial budget.

    With `in_order` the mean each round is the crowd's own, so the result is a self-consistent profile and a
    correction reaches every later round at once; the announced mean then enters only through the table.
    Without it clients face the announced mean.
    """
    rounds, size = terms.last_round + 1, population.num_types
    budget, retention, mean = np.empty((rounds, size)), np.zeros((rounds, size)), np.empty(rounds)
    rows = table.rows(population.privacy_aversion)
    budget[0] = population.initial_budget
    for t in range(rounds):
        mean[t] = population.weight @ budget[t]
        if t == terms.last_round:
            break
        facing = float(mean[t] if in_order else terms.mean_budget[t])
        chance = chance_of(budget[t], facing, float(terms.cohort_size[t]), terms)
        read = *rows, table.nodes[t + 1], table.value[t + 1], table.slope[t + 1]
        move = partial(_kernels.advance, *read, budget[t], (1.0 - population.privacy_aversion) * chance, facing)
        in_threads(partial(move, budget[t + 1], retention[t]), size, smallest_chunk=512)
    return Profile(budget, retention, mean)


@dataclass(frozen=True)
class Answer:
    """One client's best response.

    Attributes:
        budget: (rounds,) the budgets it plans to spend.
        retention: (rounds,) the retentions that lead there.
        utility: What it expects to earn over the run.
    """

    budget: FloatArray
    retention: FloatArray
    utility: float


def best_response(terms: Terms, privacy_aversion: float, initial_budget: float) -> Answer:
    """Return one client's best response to what the server announced, from its own two private numbers.

    Args:
        terms: The announcement (`fedpcs.game.announce`).
        privacy_aversion: ψ in [0.001, 0.999].
        initial_budget: ρ⁰ > 0.

    Example:
        >>> from fedpcs.game.rules import announce
        >>> terms = announce(reward=[9.0] * 4, mean_budget=[6.0] * 4, cohort_size=20, num_clients=100)
        >>> answer = best_response(terms, privacy_aversion=0.9, initial_budget=8.0)
        >>> answer.budget.round(3).tolist()
        [8.0, 6.622, 6.535, 6.435]
    """
    low, high = AVERSION_BOUNDS
    aversion = np.array([_validate.number("privacy_aversion", privacy_aversion, low=low, high=high)])
    start = np.array([_validate.positive("initial_budget", initial_budget)])
    client = Population(aversion, start, np.ones(1), terms.num_clients, np.ones(1))
    table = tabulate(terms, aversion, start)
    path = play(table, terms, client, in_order=False)
    earned = client_utility(path.budget, path.retention, aversion, terms)
    return Answer(path.budget[:, 0], path.retention[:, 0], float(earned[0]))


def _cells(nodes: FloatArray) -> NDArray[np.int64]:
    """Return for each node the cell of next round's grid it lies in; the last round has no next."""
    cells = np.zeros(nodes.shape, dtype=np.int64)
    for t in range(nodes.shape[0] - 1):
        cells[t] = np.searchsorted(nodes[t + 1], nodes[t], side="right") - 1
    return cells.clip(0, nodes.shape[1] - 2)


def _nodes(mean_budget: FloatArray, initial_budget: FloatArray, resolution: Resolution) -> FloatArray:
    # A client only ever moves towards the mean, so no budget leaves the range of first budgets and means.
    low = min(float(initial_budget.min()), float(mean_budget.min()))
    high = max(float(initial_budget.max()), float(mean_budget.max()))
    if not high > low * (1.0 + 1e-9):  # equals never move; give the grid some width all the same
        low, high = 0.999 * low, 1.001 * high
    half = resolution.spread // 2
    crowd = np.quantile(initial_budget, np.linspace(0.0, 1.0, half))
    spread = np.concatenate((np.linspace(low, high, resolution.spread - half), crowd))
    steps = np.concatenate(([0.0], np.geomspace(_NEAREST, 0.5, resolution.clustered)))
    rounds = mean_budget.size
    size = resolution.spread + 4 * steps.size
    nodes = np.empty((rounds, size))
    for t in range(rounds):
        parts = [spread]
        for mean in (mean_budget[t], mean_budget[max(t - 1, 0)]):
            centre = min(max(float(mean), low), high)
            parts += [centre + (high - centre) * steps, centre - (centre - low) * steps]
        nodes[t] = np.sort(np.concatenate(parts))
    # Nodes that repeat would coincide; a ramp of 1e-10 per node keeps cells open.
    ramp = 1e-10 * np.arange(size)
    return np.asarray(low + (nodes - low + ramp * (high - low)) / (1.0 + ramp[-1]))
