"""Whom a server believes in that does not know its clients: before it has heard anyone, and by what they answer."""

from __future__ import annotations

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.game.inference import inferred_population
from fedpcs.game.population import Population, histogram, uniform_density
from fedpcs.game.rules import Terms
from fedpcs.trial.config import RunConfig

_PRIOR_BINS = (24, 24)


def prior_of(config: RunConfig, num_clients: int) -> Population:
    """Return whom the server believes in before it has heard anyone: the run's histogram, or the default density."""
    prior = config.federation.prior
    if prior is None:
        return uniform_density(num_clients, config.game.bounds, _PRIOR_BINS)
    return histogram(prior.privacy_aversion, prior.initial_budget, prior.weight, num_clients=num_clients)


def believed(terms: Terms, budgets: FloatArray, index: int, num_clients: int) -> Population:
    """Return the population by what clients answered: aversions as inferred, budgets as they stand.

    Args:
        terms: What was announced.
        budgets: (rounds, clients heard) what they answered, in units.
        index: The round, of those announced, at which their budgets are taken.
        num_clients: All that are there.
    """
    found = inferred_population(terms, budgets)
    return histogram(found.privacy_aversion, budgets[index], np.ones(budgets.shape[1]), num_clients=num_clients)
