"""Settings that bounds are held against: problems with exact constants, and how their rounds are run."""

from dataclasses import dataclass, replace

import numpy as np

from fedpcs.theory import Federation, make_federation, make_logistic, make_quadratic, simulate

NUM_CLIENTS, COHORT_SIZE, ROUNDS = 100, 20, 30  # the paper's N, K and T


@dataclass(frozen=True)
class Setting:
    name: str
    problem: object
    federation: Federation
    start: np.ndarray
    gradients_are_bounded: bool = False


def uniform():
    return np.full(NUM_CLIENTS, 1.0 / NUM_CLIENTS)


def by_budget(low=1.0, high=12.0, seed=0):
    budget = np.random.default_rng(seed).uniform(low, high, NUM_CLIENTS)
    return budget / budget.sum(), budget


def federation_of(problem, **changed):
    told = {
        "data_weight": problem.data_weight,
        "draw_probability": uniform(),
        "cohort_size": COHORT_SIZE,
        "num_rounds": ROUNDS,
        "step_size": 0.2,
        "noise_power": 1.0,
    }
    return make_federation(**{**told, **changed})


def quadratics():
    """The quadratic test set: alike and not alike, drawn evenly and by budget, three designs, one and five steps."""
    chance, budget = by_budget()
    falling = np.linspace(0.5, 4.0, ROUNDS)[:, None] * 4.0 / budget
    for heterogeneity in (0.0, 1.0):
        problem = make_quadratic(NUM_CLIENTS, 20, heterogeneity=heterogeneity)
        for design in ("with-replacement", "fixed-size", "poisson"):
            for steps in (1, 5):
                for drawn, told in (
                    ("evenly", {}),
                    ("by budget", {"draw_probability": chance, "noise_power": falling}),
                ):
                    name = f"quadratic, spread {heterogeneity:g}, {drawn}, {design}, {steps} steps"
                    federation = federation_of(problem, design=design, local_steps=steps, **told)
                    yield Setting(name, problem, federation, np.full(20, 2.0))
    problem = make_quadratic(NUM_CLIENTS, 20, heterogeneity=2.0, even=False)
    for size in (1.0, NUM_CLIENTS / 2):
        name = f"quadratic, sizes differ, {size:g} drawn by size"
        told = {"draw_probability": problem.data_weight, "cohort_size": size, "step_size": 0.05}
        yield Setting(name, problem, federation_of(problem, **told), np.full(20, 2.0))


def logistics():
    chance, budget = by_budget()
    for heterogeneity in (0.0, 2.0):
        problem = make_logistic(NUM_CLIENTS, 5, num_records=5, heterogeneity=heterogeneity)
        for steps in (1, 5):
            told = {"step_size": 1.0, "local_steps": steps, "noise_power": 10.0 / budget, "draw_probability": chance}
            name = f"logistic, spread {heterogeneity:g}, {steps} steps"
            yield Setting(name, problem, federation_of(problem, **told), np.full(5, 2.0))


def trained(setting, num_trajectories=1000):
    return simulate(setting.problem, setting.federation, setting.start, num_trajectories=num_trajectories)


def with_gradients_met(constants, trajectories):
    """Bound clients' gradients by the largest that was met: cut off there, no trajectory would change."""
    return replace(
        constants, gradient_bound=np.full(trajectories.largest_gradient.size, trajectories.largest_gradient.max())
    )
