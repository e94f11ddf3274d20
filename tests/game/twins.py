"""Slow, plain twins of the solver's parts, written from the definitions with no code in common."""

from itertools import pairwise

import numpy as np


def utility(budget, retention, aversion, terms):
    """One client's utility, term by term."""
    total = 0.0
    for t in range(len(budget)):
        cohort, clients = terms.cohort_size[t], terms.num_clients
        chance = cohort / clients
        if terms.selection == "budget-aware":
            chance = 1 - (1 - min(1.0, budget[t] / (clients * terms.mean_budget[t]))) ** cohort
        total += chance * (budget[t] * terms.reward[t] - aversion * budget[t] ** 2 - (1 - aversion) * retention[t] ** 2)
    return total


def path(retention, start, terms):
    """Budgets that follow from retentions."""
    budget = [start]
    for t in range(terms.last_round):
        mean = terms.mean_budget[t]
        budget.append((1 - retention[t]) * mean + retention[t] * budget[-1])
    return np.array(budget)


def brute_force(start, aversion, terms, num_actions=21):
    """Best utility over every sequence of retentions on a grid: exponential, for two or three rounds."""
    actions = np.linspace(0.0, 1.0, num_actions)
    best = -np.inf
    for choice in np.ndindex(*(num_actions,) * terms.last_round):
        retention = np.append(actions[list(choice)], 0.0)
        best = max(best, utility(path(retention, start, terms), retention, aversion, terms))
    return best


def improve(retention, start, aversion, terms, steps=(0.1, 0.01, 0.001, 1e-4)):
    """Climb from a path of retentions, one coordinate at a time, until no step helps."""
    retention = np.array(retention, dtype=float)
    value = utility(path(retention, start, terms), retention, aversion, terms)
    for step in steps:
        moved = True
        while moved:
            moved = False
            for t in range(terms.last_round):
                for change in (step, -step):
                    trial = retention.copy()
                    trial[t] = min(1.0, max(0.0, trial[t] + change))
                    other = utility(path(trial, start, terms), trial, aversion, terms)
                    if other > value + 1e-12:
                        retention, value, moved = trial, other, True
    return value


def is_between(low_high, value):
    """Whether value lies between two numbers given in either order."""
    return min(low_high) - 1e-12 <= value <= max(low_high) + 1e-12


def moves_towards_mean(budget, mean):
    """Whether every next budget lies between the current one and the mean."""
    return all(is_between((now, mean[t]), later) for t, (now, later) in enumerate(pairwise(budget)))
