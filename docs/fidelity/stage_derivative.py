"""Erratum 1: the stage derivative S of Theorem 1, corrected and as printed, against finite differences."""

from __future__ import annotations

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.game import Profile, Terms, announce, costate
from fedpcs.game.payoffs import client_utility

# A few clients in one round of N = 100, K = 20, φ = 6.4, R = 5: budget, aversion, retention.
CLIENTS = np.array([[1.0, 0.1, 0.9], [4.0, 0.5, 0.5], [8.0, 0.3, 0.2], [12.0, 0.9, 1.0]])


def one_round() -> Terms:
    """Return the announcement of that round."""
    return announce([5.0], [6.4], 20, 100)


def derivative(clients: FloatArray, terms: Terms, *, printed: bool) -> FloatArray:
    """Return S for (clients, 3) rows of budget, aversion, retention."""
    budget, aversion, retention = clients.T
    profile = Profile(budget[None], retention[None], np.array([budget.mean()]))
    return np.asarray(costate.stage_derivative(profile, aversion, terms, printed=printed)[0])


def finite_difference(clients: FloatArray, terms: Terms, step: float = 1e-5) -> FloatArray:
    """Return the central difference of the stage payoff in the budget."""
    budget, aversion, retention = clients.T

    def payoff(at: FloatArray) -> FloatArray:
        return client_utility(at[None], retention[None], aversion, terms)

    return (payoff(budget + step) - payoff(budget - step)) / (2.0 * step)


def main() -> None:
    """Print one row per client."""
    terms = one_round()
    columns = (
        finite_difference(CLIENTS, terms),
        derivative(CLIENTS, terms, printed=False),
        derivative(CLIENTS, terms, printed=True),
    )
    rows = [
        [*(f"{value:g}" for value in client), *(f"{column[i]:.4f}" for column in columns)]
        for i, client in enumerate(CLIENTS)
    ]
    print(table(["ρ", "ψ", "α", "finite difference", "S, corrected", "S, as printed"], rows))


if __name__ == "__main__":
    main()
