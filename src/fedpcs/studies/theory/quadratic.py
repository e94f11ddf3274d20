"""Bounds on a quadratic whose constants are known, beside what thousands of trainings of it do."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.theory import (
    Bound,
    make_federation,
    make_quadratic,
    paper_error,
    paper_rate,
    simulate,
    valid_distance,
    valid_error,
    valid_rate,
)
from fedpcs.theory.trajectories import Mean

_CONDITION, _DIMENSION, _STEP_SIZE = 10.0, 20, 0.2
_BUDGETS = (1.0, 12.0)


@dataclass(frozen=True)
class QuadraticTheory:
    """A quadratic and its bounds.

    Attributes:
        summary: What was run.
        num_trajectories: How often.
        measured: The gap F(w(t)) − F*.
        valid: The rate's valid bound.
        printed: The same as printed.
        rows: Other bounds at the end: name, measured, valid, printed or None.
    """

    summary: str
    num_trajectories: int
    measured: Mean
    valid: Bound
    printed: Bound
    rows: tuple[tuple[str, float, float, float | None], ...]

    @property
    def ratio(self) -> FloatArray:
        """(rounds + 1,) valid bound over what was measured."""
        return np.asarray(self.valid.value / self.measured.value)


def assess_quadratic(
    *, num_clients: int = 100, cohort_size: int = 20, num_rounds: int = 300, num_trajectories: int = 1000, seed: int = 0
) -> QuadraticTheory:
    """Train a quadratic of unlike clients, drawn by budgets between 1 and 12 and noisy to match."""
    problem = make_quadratic(num_clients, _DIMENSION, condition=_CONDITION, seed=seed)
    budget = generator(seed, "population").uniform(*_BUDGETS, num_clients)
    federation = make_federation(
        data_weight=problem.data_weight,
        draw_probability=budget / budget.sum(),
        cohort_size=cohort_size,
        num_rounds=num_rounds,
        step_size=_STEP_SIZE,
        noise_power=20.0 / budget,
    )
    start = np.full(_DIMENSION, 2.0)
    found = simulate(problem, federation, start, num_trajectories=num_trajectories, seed=seed)
    constants = problem.constants(start)
    # Printed bounds suppose bounded gradients; cut off at the largest that was met, no training would have changed.
    met = replace(constants, gradient_bound=np.full(num_clients, found.largest_gradient.max()))
    gradients = float(found.squared_gradient.value[:-1].mean())
    valid, printed = valid_rate(federation, constants), paper_rate(federation, met)
    distance = float(found.squared_distance.value[-1])
    rows = (
        ("loss above its least", float(found.gap.value[-1]), float(valid.value[-1]), float(printed.value[-1])),
        (
            "mean squared gradient",
            gradients,
            float(valid_error(federation, constants).value[-1]),
            float(paper_error(federation, met).value[-1]),
        ),
        ("squared distance", distance, float(valid_distance(federation, constants).value[-1]), None),
    )
    summary = (
        f"Quadratic of condition {_CONDITION:g}, {num_clients} clients that differ, {cohort_size} drawn by budget with "
        f"replacement, {num_rounds} rounds."
    )
    return QuadraticTheory(summary, num_trajectories, found.gap, valid, printed, rows)
