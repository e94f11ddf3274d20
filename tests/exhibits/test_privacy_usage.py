"""Privacy usage under caps: no cohort passes its cap, plans fit in expectation, verdicts follow the paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_games import GAMES, page_of, verdicts

from fedpcs.exhibits import privacy_usage
from fedpcs.exhibits.privacy_usage import FEDPCS, OWN, SAME, Capped, Scenario
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.report.page import Page

CAPS = Scenario("Fashion-MNIST", 700.0, 300.0, 5)
RATIO, USAGE = "As the cap falls the server lowers the s", "FedPCS uses more of the cap than random "


@pytest.fixture(scope="module")
def capped() -> list[Capped]:
    return [privacy_usage.solve(GAMES, (CAPS, seed)) for seed in range(3)]


def page(capped: list[Capped]) -> Page:
    return page_of("privacy-usage", capped)


def test_the_paper_s_caps_fall_evenly_and_in_proportion_to_the_crowd() -> None:
    fashion, tiny = privacy_usage.SCENARIOS
    assert fashion.caps(100)[[0, 15, 30]].tolist() == [700.0, 500.0, 300.0]
    assert tiny.caps(100)[[0, 20]].tolist() == [700.0, 400.0]
    assert CAPS.caps(12).tolist() == pytest.approx([84.0, 74.4, 64.8, 55.2, 45.6, 36.0])


def test_no_cohort_passes_its_cap_and_ratios_are_cohorts_over_clients_and_fall(capped: list[Capped]) -> None:
    for one in capped:
        for case in (FEDPCS, SAME, OWN):
            assert one.usage[case].shape == (6,)
            assert (one.usage[case] > 0.0).all()
            assert (one.usage[case] <= 1.0).all()
        np.testing.assert_array_equal(one.ratio, one.plan.cohort_size / 12)
        assert one.ratio[-1] < one.ratio[0]


def test_plans_fit_in_expectation_and_one_more_client_would_not_where_the_cap_binds(capped: list[Capped]) -> None:
    one = capped[0]
    budget, size = one.blind.profile.budget, one.blind_plan.cohort_size
    spent = size / 12 * budget.sum(axis=1)
    assert (spent <= one.blind_plan.budget_cap + 1e-9).all()
    np.testing.assert_allclose(one.blind_plan.expected_budget, spent)
    over = (size + 1) / 12 * budget.sum(axis=1)
    assert ((over > one.blind_plan.budget_cap) | (size == 12)).all()


def test_uncut_cohorts_spend_what_the_plan_expects(capped: list[Capped]) -> None:
    """With caps no cohort reaches, usage is an average of 100 cohorts' budgets: within 5 standard errors (α < 1e-6)."""
    one = capped[0]
    loose = replace(one.plan, budget_cap=10.0 * one.plan.budget_cap)
    used = privacy_usage.usage_by_budget(one.aware.profile.budget, loose, one.aware.game) * loose.budget_cap
    chance = [
        cohort_inclusion(b, k, one.aware.game)
        for b, k in zip(one.aware.profile.budget, one.plan.cohort_size, strict=True)
    ]
    # Pivotal draws spread clients out, so Poisson sampling's variance is an upper bound.
    error = np.sqrt([(p * (1 - p) * b**2).sum() / 100 for p, b in zip(chance, one.aware.profile.budget, strict=True)])
    assert (np.abs(used - one.plan.expected_budget) <= 5.0 * error + 1e-9).all()


def test_the_verdict_on_usage_flips_with_the_usage(capped: list[Capped]) -> None:
    def used(aware: float | list[float], same: float, own: float) -> str:
        altered = [
            replace(one, usage={FEDPCS: np.full(6, aware) + k, SAME: np.full(6, same), OWN: np.full(6, own)})
            for one, k in zip(capped, (0.0, 0.001, 0.002), strict=True)
        ]
        return verdicts(page(altered))[USAGE]

    assert used(0.95, 0.85, 0.85) == "agrees"
    assert used(0.95, 0.85, 0.99) == "in part"
    assert used(0.85, 0.95, 0.95) == "differs"
    assert used([0.95, 0.95, 0.95, 0.95, 0.95, 0.84], 0.85, 0.85) == "in part"  # the claim is of every round


def test_the_verdict_on_the_ratio_flips_with_the_cohorts(capped: list[Capped]) -> None:
    def planned(sizes: list[float]) -> str:
        altered = [replace(one, plan=replace(one.plan, cohort_size=np.array(sizes))) for one in capped]
        return verdicts(page(altered))[RATIO]

    assert planned([12.0, 10.0, 9.0, 8.0, 6.0, 4.0]) == "agrees"
    assert planned([12.0, 6.0, 9.0, 5.0, 8.0, 4.0]) == "in part"
    assert planned([4.0, 5.0, 6.0, 7.0, 8.0, 9.0]) == "differs"


def test_the_page_tells_means_over_rounds_and_every_round(capped: list[Capped]) -> None:
    made = page(capped)
    assert f"{100 * np.mean([one.usage[FEDPCS].mean() for one in capped]):.1f}" in made.headline
    assert len(made.records) == 18
    assert made.records[5]["cap"] == pytest.approx(36.0)
    line = next(line for line in made.drawings[0].draw().axes[0].get_lines() if line.get_label() == FEDPCS)
    np.testing.assert_allclose(line.get_ydata(), 100 * np.mean([one.usage[FEDPCS] for one in capped], axis=0))
