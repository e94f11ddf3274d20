"""What a server can learn of clients it does not know: the aversion under which a client's budgets are a best response.

A server that announced terms sees the budgets clients answer with, never their private numbers. For every ψ of a grid
the best response from the client's first budget is known; the ψ whose response lies nearest is taken. Where several do
equally well, as for a client at the crowd's mean, which tells nothing, the middle one of them is.
"""

from __future__ import annotations

import numpy as np

from fedpcs import _validate
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.exact import play, tabulate
from fedpcs.game.population import AVERSION_BOUNDS, Population, individuals
from fedpcs.game.rules import Terms

_ROWS = 129
# Responses this close to the nearest, relative to the mean budget, cannot be told from it.
_ALIKE = 1e-6
_MOST_AT_ONCE = 2_000_000


def inferred_population(terms: Terms, budget: FloatArray) -> Population:
    """Return the clients a server should believe in, from what they answered to an announcement.

    Args:
        terms: What was announced.
        budget: (rounds, clients) what they answered, in the game's units.

    Example:
        >>> from fedpcs.game import announce, best_response
        >>> terms = announce(reward=[9.0] * 4, mean_budget=[6.0] * 4, cohort_size=20, num_clients=100)
        >>> answer = best_response(terms, privacy_aversion=0.9, initial_budget=8.0).budget
        >>> inferred_population(terms, answer[:, np.newaxis]).privacy_aversion.round(2).tolist()
        [0.9]
    """
    if budget.ndim != 2 or budget.shape[0] != terms.last_round + 1 or budget.shape[1] == 0:
        raise InvalidInput(f"budget must be ({terms.last_round + 1}, clients), got {budget.shape}.")
    first = _validate.vector("budget[0]", budget[0], low=0.0)
    rows = np.linspace(*AVERSION_BOUNDS, _ROWS)
    table = tabulate(terms, rows, first)
    aversion = np.empty(first.size)
    width = max(1, _MOST_AT_ONCE // (rows.size * budget.shape[0]))
    for start in range(0, first.size, width):
        chosen = slice(start, start + width)
        size = first[chosen].size
        crowd = Population(
            np.tile(rows, size), np.repeat(first[chosen], rows.size), np.ones(size * rows.size), size, np.ones(1)
        )
        answers = play(table, terms, crowd, in_order=False).budget.reshape(-1, size, rows.size)
        gap = np.sqrt(((answers - budget[:, chosen, np.newaxis]) ** 2).mean(axis=0))
        aversion[chosen] = [_middle(rows, one, float(terms.mean_budget.mean())) for one in gap]
    return individuals(aversion, first)


def _middle(rows: FloatArray, gap: FloatArray, scale: float) -> float:
    alike = np.flatnonzero(gap <= gap.min() + _ALIKE * scale)
    return float(rows[alike[alike.size // 2]])
