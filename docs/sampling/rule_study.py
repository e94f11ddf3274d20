"""Mean-squared error of every aggregation rule under every design, with and without noise.

A population of N = 100 clients: budgets uniform in [0.01, 12], data shares Dirichlet(5), updates a common mean plus a
deviation of the client's own, both of squared norm ½ on average, so that an update has norm one. The noise is that of
the paper's calibration with clip norm 1, 500 records a client and 50,000 parameters: 2·d·W²/(ρ_i·|D_i|²), of norm 6.3
at ρ = 0.01 and 0.18 at ρ = 12; "strong" is a hundred times its power. Every repetition is a new population, one cohort
from each design, and the same noise for every rule. `precision` is given nothing it would not have: it estimates the
drift from the updates that arrived.

    python docs/sampling/rule_study.py [--repetitions R] [--world usual|related|heavy|sized]

The worlds beside the usual one break the premise of `precision`: updates that go with budgets, a few clients far from
all others, drift that falls with the amount of data.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.sampling import Draw, Sampler, View, draw, estimate_drift, make_sampler, make_view, weigh

NUM_CLIENTS = 100
RATIOS = (0.2, 0.5, 0.8)
NOISES = {"no noise": 0.0, "the paper's noise": 1.0, "strong noise": 100.0}
WORLDS = ("usual", "related", "heavy", "sized")
# What a column is called, and the arguments of `weigh` behind it.
RULES: dict[str, dict[str, Any]] = {
    "horvitz-thompson": {"rule": "horvitz-thompson"},
    "the same, cap 3": {"rule": "horvitz-thompson", "cap": 3.0},
    "hajek": {"rule": "hajek"},
    "normalised": {"rule": "normalised"},
    "paper": {"rule": "paper"},
    "precision": {"rule": "precision"},
    "by design": {"rule": "precision", "by_design": True},
}
# By noise, τ and design: the error of each of `RULES`.
Errors: TypeAlias = dict[tuple[str, float, str], FloatArray]
# Coordinates simulated. Errors are sums over coordinates, so only the powers below matter, not their number.
_PARAMETERS = 200
_SIGNAL_POWER, _DRIFT_POWER = 0.5, 0.5
_NOISE_AT_UNIT_BUDGET = 2.0 * 50_000 / 500.0**2  # 2·d·W²/|D|² for a client of average data

DESIGNS: dict[str, Sampler] = {
    "uniform": make_sampler("random"),
    **{
        name: make_sampler("fedpcs", design=name)
        for name in ("pivotal", "systematic", "poisson", "gumbel", "with-replacement")
    },
    "optimal": make_sampler("optimal", norms="current"),
}


@dataclass(frozen=True)
class Population:
    """One draw of the world: who the clients are and what their updates would be.

    Attributes:
        view: Sizes, budgets and the power of the noise they call for.
        updates: (clients, parameters) without noise.
    """

    view: View
    updates: FloatArray


def populate(cohort_size: int, noise: float, world: str, rng: np.random.Generator) -> Population:
    """Draw a population."""
    budget = rng.uniform(0.01, 12.0, NUM_CLIENTS)
    share = rng.dirichlet(np.full(NUM_CLIENTS, 5.0))
    relative_size = NUM_CLIENTS * share
    deviation = rng.standard_normal((NUM_CLIENTS, _PARAMETERS)) * np.sqrt(_DRIFT_POWER / _PARAMETERS)
    if world == "heavy":
        deviation *= np.sqrt(1.0 / rng.gamma(1.5, 2.0, NUM_CLIENTS))[:, None]  # Student's t, three degrees of freedom
    elif world == "sized":
        deviation /= np.sqrt(relative_size)[:, None]
    elif world == "related":  # half of the deviation is a line in the budget
        direction = rng.standard_normal(_PARAMETERS)
        slope = (budget - 6.005) / (11.99 / np.sqrt(12.0))
        deviation = (deviation + np.outer(slope, direction * np.sqrt(_DRIFT_POWER / _PARAMETERS))) / np.sqrt(2.0)
    mean = rng.standard_normal(_PARAMETERS) * np.sqrt(_SIGNAL_POWER / _PARAMETERS)
    updates = mean + deviation
    noise_power = noise * _NOISE_AT_UNIT_BUDGET / (budget * relative_size**2)
    view = make_view(
        cohort_size,
        relative_size,
        budget=budget,
        noise_power=noise_power,
        update_norm=np.linalg.norm(updates, axis=1),
    )
    return Population(view, updates)


def squared_errors(population: Population, cohort: Draw, rng: np.random.Generator) -> Iterator[float]:
    """Return the squared error of each of `RULES` on one cohort, the noise being the same for all."""
    view, clients = population.view, cohort.clients
    noise_power = np.asarray(view.need("noise_power")[clients])
    noise = rng.standard_normal((clients.size, _PARAMETERS)) * np.sqrt(noise_power / _PARAMETERS)[:, None]
    received = population.updates[clients] + noise
    target = view.data_weight @ population.updates
    drift = estimate_drift(received, noise_power) if clients.size else 0.0
    for arguments in RULES.values():
        estimate = weigh(draw=cohort, view=view, drift=drift, **arguments) @ received
        yield float(np.sum((estimate - target) ** 2))


def study(num_repetitions: int, world: str = "usual", seed: int = 0) -> Errors:
    """Return the mean-squared error of each rule for each (noise, τ, design)."""
    found: Errors = {}
    for noise, strength in NOISES.items():
        for ratio in RATIOS:
            rng = np.random.default_rng([seed, int(strength), int(100 * ratio)])
            total = {name: np.zeros(len(RULES)) for name in DESIGNS}
            for _ in range(num_repetitions):
                population = populate(round(ratio * NUM_CLIENTS), strength, world, rng)
                for name, sampler in DESIGNS.items():
                    cohort = draw(sampler, population.view, rng)
                    total[name] += np.fromiter(squared_errors(population, cohort, rng), float)
            found |= {(noise, ratio, name): value / num_repetitions for name, value in total.items()}
    return found


def behind(errors: FloatArray) -> float:
    """Return how much larger the error of `precision` is than that of the best rule, as a share."""
    return float(errors[list(RULES).index("precision")] / errors.min() - 1.0)


def main() -> None:
    """Print one row per noise, τ and design."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2_000)
    parser.add_argument("--world", choices=WORLDS, default="usual")
    arguments = parser.parse_args()
    found = study(arguments.repetitions, arguments.world)
    header = ["noise", "τ", "design", *RULES, "precision ÷ best"]
    lines = [header, ["---"] * len(header)]
    for (noise, ratio, design), errors in found.items():
        lines.append(
            [noise, f"{ratio:g}", design, *(f"{value:.3g}" for value in errors), f"{1.0 + behind(errors):.3f}"]
        )
    print("\n".join("| " + " | ".join(cells) + " |" for cells in lines))
    print(f"\nFarthest behind the best rule of its cell: {100.0 * max(map(behind, found.values())):.2f} %.")


if __name__ == "__main__":
    main()
