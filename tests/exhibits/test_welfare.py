"""Welfare by sampler: against a loop over clients, and verdicts against altered outcomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_games import GAMES, page_of, solved_page, verdicts

from fedpcs.exhibits import welfare

PRIVATE, RANDOM = "Theorem 6: FedPCS's price of anarchy is ", "Proposition 4: with everyone at the lowe"


@pytest.fixture(scope="module")
def outcomes() -> list[welfare.Outcome]:
    return [welfare.solve(GAMES, seed) for seed in range(3)]


def by_loop(budget: np.ndarray, one: welfare.Outcome) -> float:
    total = 0.0
    for t, reward in enumerate(one.aware.reward.path):
        for client, aversion in enumerate(one.aware.game.population.privacy_aversion):
            total += budget[t, client] * reward - aversion * budget[t, client] ** 2
    return total


def test_welfare_is_the_sum_over_clients_and_rounds(outcomes: list[welfare.Outcome]) -> None:
    for one in outcomes:
        assert one.totals[welfare.FEDPCS] == pytest.approx(by_loop(one.aware.profile.budget, one))
        assert one.totals[welfare.BLIND] == pytest.approx(by_loop(one.blind.profile.budget, one))
        still = np.tile(one.aware.game.population.initial_budget, (6, 1))
        assert one.totals[welfare.STATIC] == pytest.approx(by_loop(still, one))
        assert one.totals[welfare.LOWEST] == pytest.approx(by_loop(np.full((6, 12), 0.01), one))
        assert one.worth.equilibrium == pytest.approx(one.totals[welfare.FEDPCS])


def test_no_budget_within_bounds_does_better_than_the_optimum(outcomes: list[welfare.Outcome]) -> None:
    one = outcomes[0]
    best = 0.0
    for psi in one.aware.game.population.privacy_aversion:
        best += 6 * max(20.0 * rho - psi * rho**2 for rho in np.linspace(0.01, 12.0, 4001))
    assert one.totals[welfare.OPTIMUM] == pytest.approx(best, rel=1e-5)
    for case in (welfare.FEDPCS, welfare.BLIND, welfare.STATIC, welfare.LOWEST):
        assert 0.0 < one.share(case) < 1.0


def test_the_page_shows_shares_and_prices_that_are_each_other_s_inverse(outcomes: list[welfare.Outcome]) -> None:
    page = solved_page("welfare")
    shares = [record["share of bounded optimum"] for record in page.records if record["case"] == welfare.FEDPCS]
    prices = [one.price.equilibrium for one in outcomes]
    assert [1.0 / share for share in shares] == pytest.approx(prices)
    rows = {row[0]: row for row in page.tables[0].rows}
    assert rows[welfare.OPTIMUM][2].startswith("100.0")
    free = [record["share of bounded optimum"] for record in page.records if record["case"] == welfare.UNBOUNDED]
    assert min(free) >= 1.0
    assert rows[welfare.UNBOUNDED][3] == "–"
    assert f"{np.mean(prices):.3g}" == rows[welfare.FEDPCS][3].split()[0]
    assert f"{100 * np.mean(shares):.1f}" in page.headline


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [([0.95, 0.96, 0.97], "agrees"), ([0.69, 0.7, 0.71], "in part"), ([0.4, 0.48, 0.57], "differs")],
)
def test_closeness_and_lead_are_judged_by_shares_of_the_optimum(
    outcomes: list[welfare.Outcome], shares: list[float], verdict: str
) -> None:
    def reaching(one: welfare.Outcome, share: float, lead: float) -> welfare.Outcome:
        optimum = one.by_round[welfare.OPTIMUM]
        played = {welfare.FEDPCS: share * optimum, welfare.BLIND: (share - lead) * optimum}
        return replace(one, by_round={**one.by_round, **played})

    altered = [reaching(one, share, 0.3) for one, share in zip(outcomes, shares, strict=True)]
    close, gap, *_ = page_of("welfare", altered).findings
    assert (close.verdict, gap.verdict) == (verdict, "agrees")
    altered = [reaching(one, share, 0.05) for one, share in zip(outcomes, shares, strict=True)]
    assert page_of("welfare", altered).findings[1].verdict == "in part"  # ahead, by less than a tenth


def test_a_welfare_that_is_negative_in_some_round_is_close_in_part_only(outcomes: list[welfare.Outcome]) -> None:
    def losing(one: welfare.Outcome) -> welfare.Outcome:
        path = one.by_round[welfare.OPTIMUM].copy()
        path[-1], path[0] = -1.0, path[0] + path[-1]
        return replace(one, by_round={**one.by_round, welfare.FEDPCS: path})

    assert page_of("welfare", [losing(one) for one in outcomes]).findings[0].verdict == "in part"


def test_the_bounds_are_judged_only_where_their_premises_hold(outcomes: list[welfare.Outcome]) -> None:
    def found(claim: str, **price: float) -> str:
        altered = [replace(one, price=replace(one.price, **price)) for one in outcomes]
        return verdicts(page_of("welfare", altered))[claim]

    assert found(PRIVATE) == "cannot say"
    assert found(PRIVATE, paper_private_premise=True, paper_private_bound=1e9) == "agrees"
    assert found(PRIVATE, paper_private_premise=True, paper_private_bound=1.0) == "differs"
    assert found(RANDOM) == "agrees"
    assert found(RANDOM, paper_random_bound=1e12) == "differs"
    assert found(RANDOM, paper_random_premise=False) == "cannot say"


def test_the_figure_s_lines_are_means_over_populations(outcomes: list[welfare.Outcome]) -> None:
    lines = {line.get_label(): line.get_ydata() for line in solved_page("welfare").drawings[0].draw().axes[0].lines}
    for case in outcomes[0].by_round:
        np.testing.assert_allclose(lines[case], np.mean([one.by_round[case] for one in outcomes], axis=0))
