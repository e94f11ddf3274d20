"""Cohorts under caps: never above B_t, as large as pays, and Theorem 7 for comparison."""

from fractions import Fraction

import numpy as np
import pytest

from fedpcs._random import generator
from fedpcs.errors import InvalidInput
from fedpcs.game import individuals, make_game, uniform
from fedpcs.game.sampling_ratio import (
    cap_path,
    cut_to_cap,
    draw_order,
    plan_cohort,
    solve_with_caps,
)


@pytest.fixture(scope="module")
def capped():
    return solve_with_caps(make_game(), 6.0, np.linspace(700.0, 300.0, 31))


def test_cohorts_fall_with_the_cap_and_use_it(capped):
    found, plan = capped
    assert found.status == "converged"
    assert (np.diff(plan.cohort_size) <= 0).all()
    assert plan.cohort_size[0] > plan.cohort_size[-1] + 40
    assert (plan.usage <= 1.0 + 1e-9).all()
    assert (plan.usage[plan.cohort_size < 100] >= 0.95).all()


def test_the_clients_played_against_the_cohorts_they_face(capped):
    found, plan = capped
    assert np.array_equal(found.game.cohort_size, plan.cohort_size)


@pytest.mark.slow
def test_no_realised_cohort_exceeds_its_cap(capped):
    """1,000 draws for each of the 31 caps."""
    found, plan = capped
    for t, cap in enumerate(plan.budget_cap):
        budget, rng = found.profile.budget[t], generator(0, "test-caps", t)
        used = []
        for _ in range(1_000):
            cohort = cut_to_cap(draw_order(budget, rng), budget, int(plan.cohort_size[t]), float(cap))
            assert len(set(cohort.tolist())) == cohort.size <= plan.cohort_size[t]
            used.append(budget[cohort].sum())
        assert max(used) <= cap * (1.0 + 1e-9)
        if plan.cohort_size[t] < 100:
            assert np.mean(used) >= 0.95 * cap


def test_successive_draws_follow_the_budgets():
    """First of the order is i with probability ρ_i/Σρ: chi-square on 40,000 draws, 4 cells, alpha 1e-6."""
    budget = np.array([1.0, 2.0, 3.0, 4.0])
    rng = generator(1, "test-order")
    first = np.bincount([draw_order(budget, rng)[0] for _ in range(40_000)], minlength=4)
    expected = 40_000 * budget / budget.sum()
    assert ((first - expected) ** 2 / expected).sum() < 30.7


def test_blind_draws_ignore_the_budgets():
    rng = generator(2, "test-order")
    first = np.bincount(
        [draw_order(np.array([1.0, 99.0]), rng, budget_aware=False)[0] for _ in range(10_000)], minlength=2
    )
    assert abs(first[0] - 5_000) < 5 * 50


def test_planned_cohorts_are_the_cheapest_that_fit():
    game = make_game(uniform(30, 1), last_round=2, accuracy_scale=1.0)
    budget = np.tile(game.population.initial_budget, (3, 1))
    reward = np.full(3, 5.0)
    plan = plan_cohort(budget, reward, np.array([1e9, 60.0, 30.0]), game)
    for t in range(3):
        allowed = [k for k in range(1, 31) if expected_budget(budget[t], k) <= plan.budget_cap[t]]
        costs = [cost_written_out(budget[t], k, t, game) for k in allowed]
        assert plan.cohort_size[t] == allowed[int(np.argmin(costs))]
    assert 1 < plan.cohort_size[0] < 30, "without a cap the variance and the cost balance inside"


def inclusion(budget, size):
    """Cap at one and rescale the rest until nothing changes: a loop instead of a sort."""
    certain = np.zeros(budget.size, bool)
    while True:
        share = np.where(certain, 1.0, 0.0)
        if not certain.all():
            share[~certain] = (size - certain.sum()) * budget[~certain] / budget[~certain].sum()
        if not (share > 1.0 + 1e-12).any():
            return share
        certain |= share > 1.0


def expected_budget(budget, size):
    return float(inclusion(budget, size) @ budget)


def cost_written_out(budget, size, t, game):
    share = budget / budget.sum()
    each = 0.5 * 1.0 / ((t + 1) * budget) + 0.5 * 5.0 * budget
    spread = ((1 / 30**2 + 2.0 / budget) / share).sum()
    return float(inclusion(budget, size) @ each) + 0.5 * spread / size


CROWDS = (5, 17, 60)
BUDGETS = ("6", "0.1", "0.7", "2.3", "11.99")
PARTS = ("0", "0.001", "0.5", "0.75", "0.999")


def exact_caps(number, budget):
    """Return caps of (K + part)·ρ for all K up to N, and ⌊B/ρ⌋, at most N, both from exact rationals."""
    caps = [(size + Fraction(part)) * Fraction(budget) for size in range(1, number + 1) for part in PARTS]
    return np.array([float(cap) for cap in caps]), [min(number, cap // Fraction(budget)) for cap in caps]


def planned_sizes(number, budget, caps):
    """Plan for identical unpaid clients: the error of the draw makes the largest cohort the cheapest."""
    game = make_game(individuals([0.5] * number, [budget] * number), last_round=caps.size - 1, cohort_size=1)
    rows = np.full((caps.size, number), budget)
    return plan_cohort(rows, np.zeros(caps.size), caps, game).cohort_size.astype(int).tolist()


def test_a_cap_met_exactly_loses_no_client():
    """2,050 crowds of identical clients: planned and cut cohorts are Theorem 7's floor, by exact rationals."""
    cases, wrong = 0, []
    for number in CROWDS:
        for budget in BUDGETS:
            caps, floors = exact_caps(number, budget)
            each, order = np.full(number, float(budget)), np.arange(number)
            cut = [cut_to_cap(order, each, number, float(cap)).size for cap in caps]
            cases += len(floors)
            for found in zip(caps, planned_sizes(number, float(budget), caps), cut, floors, strict=True):
                wrong += [(number, budget, *found)] * (not found[1] == found[2] == found[3])
    assert cases == 2_050
    assert not wrong, f"{len(wrong)} of {cases} (N, budget, cap, planned, cut, exact): {wrong[:5]}"


def test_falling_caps_that_are_met_exactly_are_used_to_the_last_client():
    """N = 30, ρ = 6, caps from 162 to 45: whole solutions, played against the cohorts they face."""
    game = make_game(individuals([0.5] * 30, [6.0] * 30), last_round=6)
    _, plan = solve_with_caps(game, 6.0, np.linspace(162.0, 45.0, 7))
    assert plan.cohort_size.astype(int).tolist() == [27, 23, 20, 17, 14, 10, 7]


def test_the_least_cap_is_what_one_client_spends():
    game = make_game(budget_bounds=(0.1 + 0.2, 12.0), population=individuals([0.5] * 3, [1.0] * 3), cohort_size=1)
    assert cap_path(0.3, game).tolist() == [0.3] * 31


@pytest.mark.parametrize("bad", [0.0, -5.0, float("nan"), [100.0] * 30, [100.0] * 30 + [float("nan")], "x", None, True])
def test_bad_caps_are_refused(bad):
    with pytest.raises(InvalidInput, match="budget_cap"):
        cap_path(bad, make_game())


def test_the_cap_a_message_asks_for_is_enough():
    """One client alone spends 6.374, which rounds to 6.37: a cap that would be refused again."""
    game = make_game(individuals([0.5] * 3, [6.374] * 3), last_round=1, cohort_size=1)
    with pytest.raises(InvalidInput) as refused:
        plan_cohort(np.full((2, 3), 6.374), np.zeros(2), np.full(2, 5.0), game)
    asked = float(str(refused.value).split("at least ")[1].split(",")[0])
    assert plan_cohort(np.full((2, 3), 6.374), np.zeros(2), np.full(2, asked), game).cohort_size.tolist() == [1, 1]


def test_a_cap_below_one_client_is_refused_with_the_round():
    with pytest.raises(InvalidInput, match=r"budget_cap\[0\] must be at least"):
        solve_with_caps(make_game(uniform(20, 0), last_round=3), 5.0, 0.5)
