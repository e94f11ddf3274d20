"""The noise that inverse weights let through: draws by budget against uniform draws, both weighed to be unbiased.

With the paper's calibration θ_i²·σ_i² is in proportion to 1/ρ_i whatever the data sizes, so unbiased weights θ_i/π_i
let noise of power Σ 1/(ρ_i·π_i) through, and uniform draws (N/K)·Σ 1/ρ_i. The table gives the first over the second for
one population of N = 100 clients (NumPy's `default_rng(3)`: budgets uniform in [0.01, 12], then in [1, 12], then
log-uniform in [0.01, 12]), and between brackets the range that holds four of five populations; then the same for other
weights on the same cohorts, clients having equal data, and for the draw of least noise, π_i in proportion to
ρ_i^(−1/2).

    python docs/sampling/noise_table.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.sampling import draw, inclusion_probability, make_sampler, make_view, weigh

NUM_CLIENTS = 100
COHORTS = (20, 50, 80)
Budgets = Callable[[np.random.Generator], FloatArray]
# In the order in which the one generator draws them.
KINDS: dict[str, Budgets] = {
    "uniform [0.01, 12]": lambda rng: rng.uniform(0.01, 12.0, NUM_CLIENTS),
    "uniform [1, 12]": lambda rng: rng.uniform(1.0, 12.0, NUM_CLIENTS),
    "log-uniform [0.01, 12]": lambda rng: np.exp(rng.uniform(np.log(0.01), np.log(12.0), NUM_CLIENTS)),
}
_REPETITIONS = 1_000
_POPULATIONS = 400


def unbiased(budget: FloatArray, cohort_size: int, exponent: float) -> float:
    """Return Σ 1/(ρ_i·π_i) over its value for uniform draws, with π_i in proportion to ρ_i^exponent."""
    inclusion = inclusion_probability(budget**exponent, cohort_size)
    uniform = NUM_CLIENTS / cohort_size * np.sum(1.0 / budget)
    return float(np.sum(1.0 / (budget * inclusion)) / uniform)


def by_rule(rule: str, budget: FloatArray, cohort_size: int, rng: np.random.Generator) -> float:
    """Return the mean of Σ w_i²/ρ_i·N² over cohorts drawn by budget, over its value for uniform unbiased draws."""
    view = make_view(cohort_size, np.ones(NUM_CLIENTS), budget=budget)
    sampler = make_sampler("fedpcs")
    power = 0.0
    for _ in range(_REPETITIONS):
        cohort = draw(sampler, view, rng)
        power += float(weigh(rule, cohort, view) ** 2 @ (1.0 / budget[cohort.clients]))
    uniform = NUM_CLIENTS / cohort_size * np.sum(1.0 / budget) / NUM_CLIENTS**2
    return float(power / _REPETITIONS / uniform)


def spread(kind: Budgets, cohort_size: int) -> str:
    """Return the range of the first column over populations, from the first to the ninth decile."""
    found = [unbiased(kind(np.random.default_rng([seed, 7])), cohort_size, 1.0) for seed in range(_POPULATIONS)]
    low, high = np.percentile(found, [10, 90])
    return f"{low:.2g}–{high:.2g}" if high < 100.0 else f"{low:.2g}–{high:.0f}"


def rows() -> list[list[str]]:
    """Return the table's cells."""
    rng = np.random.default_rng(3)
    populations = {name: kind(rng) for name, kind in KINDS.items()}
    found = []
    for name, budget in populations.items():
        for cohort_size in COHORTS:
            weighed = [by_rule(rule, budget, cohort_size, rng) for rule in ("hajek", "normalised")]
            found.append(
                [
                    name,
                    f"{cohort_size / NUM_CLIENTS:g}",
                    f"{unbiased(budget, cohort_size, 1.0):.3g} [{spread(KINDS[name], cohort_size)}]",
                    *(f"{value:.2g}" for value in weighed),
                    f"{unbiased(budget, cohort_size, -0.5):.2g}",
                ]
            )
    return found


def main() -> None:
    """Print the table."""
    header = ["budgets", "τ", "unbiased, by budget", "hajek", "normalised", "unbiased, by ρ^(−1/2)"]
    print("\n".join("| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *rows()]))


if __name__ == "__main__":
    main()
