"""Where the paper does not hold: one test or more per erratum of docs/fidelity.md, and what fedpcs does instead."""

from __future__ import annotations

import agreement
import cohort_closed_form
import convergence_bounds
import numpy as np
import price_of_anarchy
import pytest
import reward_condition
import selection_table
import stage_derivative
import stationary_point
import update_sensitivity

from fedpcs.game import accuracy_scale_from_constants, individuals, make_game, mean_field, uniform
from fedpcs.game.equilibrium import plan_rewards
from fedpcs.game.payoffs import server_cost
from fedpcs.sampling import draw, inclusion_probability, make_sampler, make_view, weigh


def test_1_only_the_corrected_stage_derivative_is_a_derivative() -> None:
    rng = np.random.default_rng(1)
    clients = np.column_stack([rng.uniform(0.1, 12.0, 200), rng.uniform(0.01, 0.99, 200), rng.uniform(0, 1, 200)])
    terms = stage_derivative.one_round()
    truth = stage_derivative.finite_difference(clients, terms)
    corrected = stage_derivative.derivative(clients, terms, printed=False)
    printed = stage_derivative.derivative(clients, terms, printed=True)
    np.testing.assert_allclose(corrected, truth, atol=1e-7)
    # The missing factor K/(Nφ) is 1/32 here: every client's cost term is 32 times too large.
    assert (printed < truth).all()
    assert np.median(truth - printed) > 1.0


def test_2_a_stationary_point_can_fall_short_of_the_best_response() -> None:
    game = make_game()
    terms = stationary_point.announcement(game, 1.0)
    found = stationary_point.stop_at_stationary_point(game, terms, stationary_point.CLIENT)
    assert found.residual < 1e-8
    assert found.best_utility > 1.05 * found.stationary_utility


def test_2_theorem_1_leaves_the_unit_interval_and_our_modes_do_not() -> None:
    game = make_game()
    for printed in (False, True):
        assert stationary_point.share_outside(stationary_point.unclipped_retention(game, 20.0, printed=printed)) > 0.1
    for mode in mean_field.RESPONSE_MODES:
        retention = mean_field.settle(game, game.reward_path(20.0), mode).profile.retention
        assert retention.min() >= 0.0
        assert retention.max() <= 1.0


def test_2_a_signed_loop_test_stops_while_the_mean_still_moves() -> None:
    game = make_game()
    sweep, change = stationary_point.signed_stop(game, 5.0)
    assert sweep == 1
    assert change > 1.0
    # Ours looks at the absolute change, sees that the printed iteration has not come to rest, and says so.
    outcome = mean_field.settle(game, game.reward_path(5.0), "paper")
    assert not outcome.is_settled
    assert outcome.residual > 1e-2


def test_3_the_accuracy_term_is_finite_in_the_first_round_and_falls_as_one_over_t_plus_1() -> None:
    game = make_game(last_round=9)
    budget = np.tile(game.population.initial_budget, (10, 1))
    cost = server_cost(budget, np.zeros(10), game)
    assert np.isfinite(cost).all()
    np.testing.assert_allclose(cost * np.arange(1, 11), cost[0])


def test_4_without_its_constant_the_accuracy_term_cannot_pay_for_any_reward() -> None:
    samples = np.random.default_rng(4).integers(100, 1100, 100)
    crowd = uniform(100, seed=0)
    crowd = individuals(crowd.privacy_aversion, crowd.initial_budget, samples)
    per_client = (crowd.data_weight / crowd.num_samples) ** 2
    np.testing.assert_allclose(per_client, 1.0 / float(samples.sum()) ** 2)
    bare = make_game(crowd, last_round=8, accuracy_scale=float(per_client[0]))
    assert not plan_rewards(bare, "per-round").path.any()
    idle = server_cost(mean_field.settle(bare, np.zeros(9)).profile.budget, np.zeros(9), bare).sum()
    for reward in (1e-4, 0.1, 5.0):
        path = bare.reward_path(reward)
        assert server_cost(mean_field.settle(bare, path).profile.budget, path, bare).sum() > idle
    restored = accuracy_scale_from_constants(
        smoothness=10.0, pl_constant=0.01, dimension=10**6, clip_norm=15.0, total_samples=int(samples.sum())
    )
    np.testing.assert_allclose(restored, 10.0 * 10**6 * 15.0**2 / 0.01**2 * per_client[0])
    assert plan_rewards(make_game(crowd, last_round=8, accuracy_scale=restored), "per-round").path.any()


def test_5_an_interior_reward_need_not_exist_and_the_cost_is_convex() -> None:
    step = 1e-6
    for offset in (0.5, 2.0, 6.0):
        difference = (reward_condition.cost(step, offset) - reward_condition.cost(0.0, offset)) / step
        np.testing.assert_allclose(difference, reward_condition.slope(0.0, offset), atol=1e-2)
        measured = reward_condition.measured_curvature(1.0, offset)
        assert measured > 0.0
        assert measured == pytest.approx(reward_condition.curvature(1.0, offset, power=3), rel=1e-3)
        assert measured != pytest.approx(reward_condition.curvature(1.0, offset, power=2), rel=0.3)
    assert reward_condition.slope(0.0, 6.0) > 0.0
    assert reward_condition.slope(1e-6, 0.0) < -1e12
    # In the game itself: with a small constant no round has an interior reward, and the policy says so.
    plan = plan_rewards(make_game(last_round=8, accuracy_scale=1.0), "per-round")
    assert plan.is_interior is not None
    assert not plan.is_interior.any()
    assert not plan.path.any()


def test_6_once_budgets_agree_no_reward_moves_them_and_the_per_round_policy_stops_paying() -> None:
    game = make_game()
    profile = mean_field.settle(game, game.reward_path(20.0)).profile
    assert agreement.largest_escape(profile) <= 1e-9
    assert (np.diff(agreement.spread(profile.budget)) <= 1e-9).all()
    agreed = agreement.agreed_game()
    for reward in (0.0, 20.0, 100.0):
        np.testing.assert_allclose(mean_field.settle(agreed, agreed.reward_path(reward)).profile.budget, 6.0)
    assert not plan_rewards(agreed, "per-round").path.any()


def test_7_theorem_7_never_meets_its_own_conditions() -> None:
    rng = np.random.default_rng(7)
    game = make_game()
    for _ in range(500):
        slope, offset = float(10.0 ** rng.uniform(-2.0, 2.0)), float(rng.uniform(-5.0, 20.0))
        answer, multiplier = cohort_closed_form.printed((slope, offset, 500.0, int(rng.integers(0, 31))))
        stated = 0.5 * (1.0 - game.accuracy_priority) * (2.0 * offset - 3.0 * answer.budget) / slope
        np.testing.assert_allclose(multiplier, stated, rtol=1e-9, atol=1e-9)
        assert multiplier < 0.0 or answer.reward < 0.0
    for case in cohort_closed_form.CASES[:4]:
        answer, _ = cohort_closed_form.printed(case)
        same_size = cohort_closed_form.search(case, np.array([float(answer.cohort_size)]))
        assert same_size is not None
        assert same_size[0] < 0.95 * cohort_closed_form.cost(answer.cohort_size, answer.reward, case)


def test_8_theorem_6_is_no_bound_and_proposition_4_is() -> None:
    near_pole, beyond = price_of_anarchy.at_ceiling(18.0), price_of_anarchy.at_ceiling(500.0)
    assert near_pole.welfare > 0.0
    assert near_pole.price > near_pole.bound
    assert beyond.welfare < 0.0
    assert beyond.price < 0.0
    least, count = price_of_anarchy.worst_random_margin(300)
    assert count > 200
    assert least >= 1.0


def test_9_printed_convergence_bounds_are_violated_where_their_premises_hold() -> None:
    rows = convergence_bounds.rows(num_trajectories=200)
    assert len(rows) == 6
    for row in rows:
        mean, error = row.measured
        assert row.printed < mean - 3.0 * error, row
        assert mean - 3.0 * error <= row.valid * (1.0 + 1e-9), row  # some are what happens, on average


def test_10_the_printed_weights_are_right_with_replacement_and_wrong_without() -> None:
    budget = np.exp(np.random.default_rng(10).uniform(np.log(0.01), np.log(12.0), 40))
    view = make_view(32, np.ones(40), budget=budget)
    x = budget / budget.sum()
    total = {"gumbel": np.zeros(600), "with-replacement": np.zeros(600)}
    for design, found in total.items():
        for k in range(found.size):
            # Printed weights times how often a client was drawn: its expansion times K·x_i under replacement.
            cohort = draw(make_sampler("fedpcs", design=design), view, np.random.default_rng([10, k]))
            times = cohort.expansion * 32 * x[cohort.clients] if design == "with-replacement" else 1.0
            found[k] = np.sum(times / (40 * 32 * x[cohort.clients]))
            if design == "gumbel":
                assert found[k] == pytest.approx(weigh("paper", cohort, view).sum())
    exact = np.mean(selection_table.successive_inclusion_exact(x, 32) / (32 * x))
    error = {design: found.std() / np.sqrt(found.size) for design, found in total.items()}
    assert abs(total["with-replacement"].mean() - 1.0) < 4.0 * error["with-replacement"]
    assert abs(total["gumbel"].mean() - exact) < 4.0 * error["gumbel"]
    assert total["gumbel"].mean() - 1.0 > 20.0 * error["gumbel"]


def test_11_draws_by_budget_never_lower_the_noise_of_unbiased_weights() -> None:
    rng = np.random.default_rng(11)
    for _ in range(300):
        num_clients = int(rng.integers(2, 200))
        budget = np.exp(rng.normal(0.0, rng.uniform(0.1, 4.0), num_clients))
        cohort_size = int(rng.integers(1, num_clients + 1))

        def noise(exponent: float, budget: np.ndarray = budget, cohort_size: int = cohort_size) -> float:
            return float(np.sum(1.0 / (budget * inclusion_probability(budget**exponent, cohort_size))))

        assert noise(1.0) >= noise(0.0) * (1.0 - 1e-12)
        least = noise(-0.5)
        assert all(least <= noise(exponent) * (1.0 + 1e-12) for exponent in (-2.0, -1.0, -0.75, -0.25, 0.0, 0.5, 1.0))


def test_12_one_record_moves_a_clipped_update_by_more_than_the_printed_sensitivity() -> None:
    printed, whole = 2.0 / update_sensitivity.RECORDS, 2.0 * update_sensitivity.CLIP_NORM
    for epochs in update_sensitivity.EPOCHS:
        moved = [update_sensitivity.moved_by_one_record(epochs, length) for length in update_sensitivity.LENGTHS]
        assert moved[0] < printed  # an ordinary record
        assert moved[1] > 10.0 * printed
        assert 0.9 * whole < moved[2] <= whole
