"""Bounds as the paper prints them: where one is wrong, a setting with all its premises in which it is violated."""

from dataclasses import replace

import numpy as np
import pytest
from theory_settings import COHORT_SIZE, NUM_CLIENTS, federation_of, with_gradients_met

from fedpcs.theory import (
    CappedCohort,
    falling_steps,
    make_quadratic,
    paper_accuracy_loss,
    paper_distance,
    paper_distance_not_convex,
    paper_error,
    paper_private_price,
    paper_progress,
    paper_rate,
    paper_ratio,
    paper_reach,
    paper_selfish_price,
    simulate,
    valid_accuracy_loss,
    valid_distance,
    valid_error,
    valid_private_price,
    valid_progress,
    valid_rate,
    valid_ratio,
    valid_reach,
)
from fedpcs.theory.sampling_ratio import cost_of, multiplier_of

ROUNDS = 60


def alike(dimension=20, **told):
    """Clients that are all alike, and as curved in one direction as in any other: κ = κ_G = 1, M = M_V = 0."""
    return make_quadratic(NUM_CLIENTS, dimension, condition=1.0, heterogeneity=0.0, **told)


def run(problem, federation, start):
    found = simulate(problem, federation, start, num_trajectories=1000)
    return found, with_gradients_met(problem.constants(start), found)


def test_theorem_4_claims_to_converge_faster_than_gradient_descent_does():
    """Its rate has N/K, five here, where it should have one; with wider budgets it would claim even more."""
    problem = alike(5)
    federation = federation_of(problem, num_rounds=ROUNDS, step_size=0.002, noise_power=0.0)
    found, known = run(problem, federation, np.ones(5))
    printed = paper_distance(federation, known, budget_bounds=(1.0, 1.0), noise_at_lowest=0.0)
    assert printed.has_premises
    assert printed.value[-1] < 0.75 * found.squared_distance.low[-1]
    assert (valid_distance(federation, known).value >= found.squared_distance.high * (1 - 1e-12)).all()
    wider = paper_distance(federation, known, budget_bounds=(1.0, 2.0), noise_at_lowest=0.0)
    assert wider.terms["start"][-1] < printed.terms["start"][-1]


def test_theorem_5s_rate_forgets_the_last_rounds_instead_of_the_first():
    noise = np.zeros((ROUNDS, NUM_CLIENTS))
    noise[-5:] = 200.0
    problem = alike()
    federation = federation_of(problem, num_rounds=ROUNDS, step_size=0.5, noise_power=noise)
    found, known = run(problem, federation, np.full(20, 0.01))
    printed = paper_rate(federation, known)
    assert printed.has_premises
    assert printed.value[-1] < 0.2 * found.gap.low[-1]
    assert (valid_rate(federation, known).value >= found.gap.high * (1 - 1e-12)).all()


def test_theorem_5s_rate_fails_for_long_steps_even_if_noise_does_not_change():
    problem = alike(20, smoothness=0.01)
    federation = federation_of(problem, num_rounds=10, step_size=50.0)
    found, known = run(problem, federation, np.full(20, 0.01))
    printed = paper_rate(federation, known)
    assert printed.has_premises
    assert printed.value[-1] < 0.5 * found.gap.low[-1]


def test_theorem_5s_rate_holds_where_noise_does_not_change():
    problem = alike()
    federation = federation_of(problem, num_rounds=ROUNDS, step_size=0.5)
    found, known = run(problem, federation, np.ones(20))
    assert (paper_rate(federation, known).value >= found.gap.high * (1 - 1e-12)).all()


@pytest.mark.parametrize(("smoothness", "times"), [(1.0, 1.8), pytest.param(100.0, 3.6, marks=pytest.mark.slow)])
def test_theorem_5s_error_lacks_a_factor(smoothness, times):
    """Of 2/(ηκ), less the η that its sampling term has too few of."""
    problem = alike(200, smoothness=smoothness)
    told = {"num_rounds": ROUNDS, "cohort_size": NUM_CLIENTS, "step_size": 1.0 / smoothness}
    federation = federation_of(problem, **told)
    found, known = run(problem, federation, np.full(200, 0.001 / smoothness))
    printed = paper_error(federation, known)
    assert printed.has_premises
    measured = found.squared_gradient.low[:-1].mean()
    assert times * printed.value[-1] < measured
    assert valid_error(federation, known).value[-1] >= found.squared_gradient.high[:-1].mean()


def test_proposition_3_has_a_step_size_where_its_square_belongs():
    """So it fails where steps are longer than one, which its own condition allows if the loss is flat."""
    problem = alike(20, smoothness=0.01)
    federation = federation_of(problem, num_rounds=1, step_size=50.0)
    found, known = run(problem, federation, np.full(20, 0.01))
    norm = np.sqrt(found.squared_gradient.value[:1])
    printed = paper_progress(federation, known, gradient_norm=norm)
    change = found.gap.low[1] - found.gap.value[0]
    assert printed.has_premises
    assert printed.value[0] < 0.5 * change
    # Here the valid bound is what happens, on average.
    assert valid_progress(federation, known, gradient_norm=norm).value[0] >= change


@pytest.mark.parametrize("step_size", [0.1, 1.0])
def test_proposition_3s_condition_needs_no_number_of_clients(step_size):
    """Its proof loses a factor N; but θ is a convex combination, and the condition without N is enough."""
    problem = alike()
    federation = federation_of(problem, num_rounds=1, step_size=step_size)
    found, known = run(problem, federation, np.ones(20))
    norm = np.sqrt(found.squared_gradient.value[:1])
    printed = paper_progress(federation, known, gradient_norm=norm)
    assert printed.has_premises
    assert step_size > 1.0 / (known.smoothness * NUM_CLIENTS)  # what a condition with N would refuse
    assert printed.value[0] >= found.gap.high[1] - found.gap.value[0]


def accuracy_setting(noise, **told):
    problem = alike(50)
    steps = falling_steps(problem.constants(np.full(50, 0.01)), len(noise))
    everyone = {"cohort_size": NUM_CLIENTS, "design": "poisson"}
    federation = federation_of(
        problem, **{"num_rounds": len(noise), "step_size": steps, "noise_power": noise, **everyone, **told}
    )
    return federation, *run(problem, federation, np.full(50, 0.01))


def test_proposition_2_holds_with_everyone_and_noise_that_does_not_change():
    federation, found, known = accuracy_setting(np.full((30, NUM_CLIENTS), 100.0))
    printed = paper_accuracy_loss(federation, known, gradient_norm_bound=found.largest_whole_gradient)
    assert printed.has_premises
    assert (printed.value >= found.gap.high[2:]).all()


def test_proposition_2_looks_at_the_last_rounds_noise_alone():
    noise = np.zeros((30, NUM_CLIENTS))
    noise[10:-1] = 100.0
    federation, found, known = accuracy_setting(noise)
    norm = found.largest_whole_gradient
    printed = paper_accuracy_loss(federation, known, gradient_norm_bound=norm)
    assert printed.missing == ("noise does not change from round to round",)  # which the paper does not ask for
    assert printed.value[-1] < 0.5 * found.gap.low[-1]
    valid = valid_accuracy_loss(federation, known, gradient_norm_bound=norm)
    assert (valid.value >= found.gap.high[2:]).all()


def test_proposition_2_supposes_that_everyone_takes_part():
    noise = np.zeros((30, NUM_CLIENTS))
    noise[10:] = 100.0
    told = {"design": "with-replacement", "cohort_size": COHORT_SIZE}
    federation, found, known = accuracy_setting(noise, **told)
    norm = found.largest_whole_gradient
    printed = paper_accuracy_loss(federation, known, gradient_norm_bound=norm)
    assert printed.missing == (
        "everyone takes part in every round",
        "noise does not change from round to round",
    )
    assert printed.value[-1] < 0.75 * found.gap.low[-1]
    valid = valid_accuracy_loss(federation, known, gradient_norm_bound=norm)
    assert (valid.value >= found.gap.high[2:]).all()


def test_proposition_5_leaves_out_the_noise():
    problem = alike(50, smoothness=1e-4)
    federation = federation_of(problem, num_rounds=ROUNDS, step_size=1.0, noise_power=100.0)
    found, known = run(problem, federation, np.full(50, 0.1))
    printed = paper_reach(federation, known, budget_bounds=(1.0, 1.0))
    assert printed.value[-1] < 0.5 * found.distance.low[-1]
    assert (valid_reach(federation, known).value >= found.distance.high * (1 - 1e-12)).all()


@pytest.mark.parametrize("design", ["fixed-size", "with-replacement"])
def test_theorem_4_without_convexity_holds_without_replacement_and_is_exceeded_with_it(design):
    """Its premise makes F affine, so that with an optimum F is flat: only the draw and the noise move the model."""
    problem = alike(50, smoothness=1e-9)
    federation = federation_of(problem, num_rounds=ROUNDS, step_size=1.0, noise_power=100.0, design=design)
    found, known = run(problem, federation, np.full(50, 0.1))
    noise = 100.0 / NUM_CLIENTS**2
    told = {"budget_bounds": (1.0, 1.0), "noise_at_lowest": noise, "subgradient_norm": 0.0}
    printed = paper_distance_not_convex(federation, known, **told)
    low = found.squared_distance.low
    if design == "fixed-size":
        assert printed.has_premises
        assert (printed.value >= low * (1 - 1e-12)).all()  # it is what happens, on average
    else:
        assert printed.missing == ("no client is drawn twice",)
        assert printed.value[-1] < low[-1]
        gained = found.squared_distance.value[-1] / printed.value[-1]
        assert gained == pytest.approx(1.0 + (COHORT_SIZE - 1) / NUM_CLIENTS, rel=0.05)


def test_proposition_4_holds():
    rng = np.random.default_rng(0)
    for _ in range(200):
        reward, aversion = rng.uniform(0, 20, 31), rng.uniform(0.001, 0.999, 100)
        low = float(rng.uniform(1e-4, 0.5))
        welfare = (low * reward.sum() * 100) - 31 * low**2 * aversion.sum()
        best = 0.25 * (reward**2).sum() * (1 / aversion).sum()
        bound = paper_selfish_price(reward, aversion, lowest_budget=low)
        assert bound.has_premises == (welfare > 0)
        if welfare > 0:
            assert best / welfare >= bound.value * (1 - 1e-12)


def test_theorem_6_is_below_one_where_no_price_can_be():
    reward, aversion, high = np.full(31, 0.4), np.full(100, 0.5), 0.7
    printed = paper_private_price(reward, aversion, highest_budget=high)
    assert printed.has_premises
    price = (0.4 / 1.0 * 0.4 - 0.5 * 0.4**2) / (high * 0.4 - 0.5 * high**2)  # ρ = R/(2ψ) against ρ_H
    assert price > 1.0
    assert printed.value < price
    valid = valid_private_price(reward, aversion, lowest_budget=high, highest_budget=high)
    assert valid.value >= 1.0


def test_budgets_between_two_ends_cost_no_more_than_the_worse_end():
    rng = np.random.default_rng(1)
    checked = 0
    for _ in range(200):
        reward, aversion = rng.uniform(0, 20, 11), rng.uniform(0.001, 0.999, 40)
        low, high = np.sort(rng.uniform(0.01, 12, 2))
        bound = valid_private_price(reward, aversion, lowest_budget=low, highest_budget=high)
        budget = rng.uniform(low, high, (11, 40))
        welfare = (reward[:, None] * budget - aversion * budget**2).sum()
        best = np.clip(reward[:, None] / (2 * aversion), low, high)
        most = (reward[:, None] * best - aversion * best**2).sum()
        if bound.has_premises:
            checked += 1
            assert most / welfare <= bound.value * (1 + 1e-12)
    assert checked > 50


def test_theorem_7s_plan_has_a_negative_multiplier_and_is_not_the_cheapest():
    rng = np.random.default_rng(2)
    for _ in range(200):
        problem = CappedCohort(
            slope=float(rng.uniform(0.1, 2)),
            offset=0.0,
            accuracy_weight=float(rng.uniform(1, 100)),
            reward_weight=0.5,
            budget_cap=float(rng.uniform(50, 500)),
            num_clients=100,
            sampling_error=float(rng.uniform(0, 1e4)),
        )
        printed, valid = paper_ratio(problem), valid_ratio(problem)
        assert printed.is_feasible
        assert printed.reward > 0
        assert multiplier_of(problem, printed.budget) < 0
        assert valid.is_feasible
        assert valid.cost < printed.cost
        grid = (
            cost_of(problem, budget, size)
            for size in range(1, 101)
            for budget in np.linspace(0.01, problem.budget_cap / size, 60)
        )
        assert valid.cost <= min(grid) * (1 + 1e-12)


def test_without_the_error_of_the_draw_one_client_is_cheapest():
    problem = CappedCohort(
        slope=1.0, offset=0.5, accuracy_weight=10.0, reward_weight=0.5, budget_cap=300.0, num_clients=100
    )
    assert valid_ratio(problem).cohort_size == 1
    assert valid_ratio(replace(problem, sampling_error=1e3)).cohort_size > 1


def test_a_cap_met_exactly_by_unpaid_clients_is_met_by_all_of_them():
    """Three of 0.1 under 0.3: floats say 0.3 // 0.1 is 2."""
    problem = CappedCohort(
        slope=1.0,
        offset=0.1,
        accuracy_weight=0.0005,
        reward_weight=1.0,
        budget_cap=0.3,
        num_clients=10,
        sampling_error=1e3,
    )
    plan = valid_ratio(problem)
    assert plan.is_feasible
    assert (plan.cohort_size, plan.reward) == (3, 0.0)
    assert paper_ratio(replace(problem, offset=0.0)).cohort_size == 3
