"""Erratum 9: Theorems 4 and 5 and Propositions 2, 3 and 5 as printed, against a thousand trainings of a quadratic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _markdown import table

from fedpcs._validate import FloatArray
from fedpcs.theory import (
    Constants,
    Federation,
    falling_steps,
    make_federation,
    make_quadratic,
    paper_accuracy_loss,
    paper_distance,
    paper_error,
    paper_progress,
    paper_rate,
    paper_reach,
    simulate,
    valid_accuracy_loss,
    valid_distance,
    valid_error,
    valid_progress,
    valid_rate,
    valid_reach,
)
from fedpcs.theory.trajectories import Mean, Trajectories

CLIENTS, COHORT, ROUNDS = 100, 20, 60
EVEN = np.full(CLIENTS, 1.0 / CLIENTS)


@dataclass(frozen=True)
class Row:
    """One printed bound at the end of a training that meets its premises.

    Attributes:
        name: Which.
        setting: In what setting.
        printed: What the paper claims at most.
        measured: What was measured, the mean and its standard error.
        valid: The valid bound.
    """

    name: str
    setting: str
    printed: float
    measured: tuple[float, float]
    valid: float


def trained(
    dimension: int, smoothness: float, start: float, num_trajectories: int, **told: Any
) -> tuple[Federation, Constants, Trajectories]:
    """Train clients that are all alike, as curved one way as any other; bound gradients by the largest met."""
    problem = make_quadratic(CLIENTS, dimension, condition=1.0, heterogeneity=0.0, smoothness=smoothness)
    given: dict[str, Any] = {"data_weight": EVEN, "draw_probability": EVEN, "cohort_size": COHORT, "num_rounds": ROUNDS}
    federation = make_federation(**{**given, "noise_power": 1.0, **told})
    begun = np.full(dimension, start)
    found = simulate(problem, federation, begun, num_trajectories=num_trajectories)
    largest = np.full(CLIENTS, found.largest_gradient.max())
    return federation, replace(problem.constants(begun), gradient_bound=largest), found


def rows(num_trajectories: int = 1000) -> list[Row]:
    """Return each printed bound in a setting where it is violated."""
    return [_distance(num_trajectories), _rate(num_trajectories), _error(num_trajectories), *_others(num_trajectories)]


def _distance(count: int) -> Row:
    federation, known, found = trained(5, 1.0, 1.0, count, step_size=0.002, noise_power=0.0)
    printed = paper_distance(federation, known, budget_bounds=(1.0, 1.0), noise_at_lowest=0.0)
    return _row("Theorem 4, distance", "no noise", printed.value, _last(found.squared_distance),
                valid_distance(federation, known).value)  # fmt: skip


def _rate(count: int) -> Row:
    noise = np.zeros((ROUNDS, CLIENTS))
    noise[-5:] = 200.0
    federation, known, found = trained(20, 1.0, 0.01, count, step_size=0.5, noise_power=noise)
    words = "noise in the last 5 rounds"
    return _row("Theorem 5, rate", words, paper_rate(federation, known).value, _last(found.gap),
                valid_rate(federation, known).value)  # fmt: skip


def _error(count: int) -> Row:
    federation, known, found = trained(200, 100.0, 1e-5, count, step_size=0.01, cohort_size=CLIENTS)
    # Rounds are correlated; the largest of their errors is on the safe side for that of their mean.
    mean = float(found.squared_gradient.value[:-1].mean()), float(found.squared_gradient.standard_error.max())
    return _row("Theorem 5, error", "β = 100, η = 1/β, K = N", paper_error(federation, known).value, mean,
                valid_error(federation, known).value)  # fmt: skip


def _others(count: int) -> list[Row]:
    one_round, known, found = trained(20, 0.01, 0.01, count, num_rounds=1, step_size=50.0)
    norm = np.sqrt(found.squared_gradient.value[:1])
    progress = _row(
        "Proposition 3, progress", "β = 0.01, η = 50",
        paper_progress(one_round, known, gradient_norm=norm).value, _last(found.gap, found.gap.value[0]),
        valid_progress(one_round, known, gradient_norm=norm).value,
    )  # fmt: skip
    noise = np.zeros((30, CLIENTS))
    noise[10:-1] = 100.0
    told = {"num_rounds": 30, "cohort_size": CLIENTS, "design": "poisson", "noise_power": noise}
    steps = falling_steps(Constants(smoothness=1.0, pl=1.0), 30)
    falling, known, found = trained(50, 1.0, 0.01, count, step_size=steps, **told)
    largest = found.largest_whole_gradient
    accuracy = _row(
        "Proposition 2, accuracy loss", "all take part, less noise in the last round",
        paper_accuracy_loss(falling, known, gradient_norm_bound=largest).value, _last(found.gap),
        valid_accuracy_loss(falling, known, gradient_norm_bound=largest).value,
    )  # fmt: skip
    flat, known, found = trained(50, 1e-4, 0.1, count, step_size=1.0, noise_power=100.0)
    reach = _row("Proposition 5, reach", "nearly flat", paper_reach(flat, known, budget_bounds=(1.0, 1.0)).value,
                 _last(found.distance), valid_reach(flat, known).value)  # fmt: skip
    return [progress, accuracy, reach]


def _row(name: str, setting: str, printed: FloatArray, measured: tuple[float, float], valid: FloatArray) -> Row:
    return Row(name, setting, float(printed[-1]), measured, float(valid[-1]))


def _last(found: Mean, start: float = 0.0) -> tuple[float, float]:
    """Return the last mean, less what it started from, and its standard error."""
    return float(found.value[-1]) - start, float(found.standard_error[-1])


def main() -> None:
    """Print the table."""
    header = ("bound", "setting", "printed", "measured ± standard error", "valid")
    cells = (
        (r.name, r.setting, f"{r.printed:.3g}", "{:.3g} ± {:.1g}".format(*r.measured), f"{r.valid:.3g}") for r in rows()
    )
    print(table(header, cells))


if __name__ == "__main__":
    main()
