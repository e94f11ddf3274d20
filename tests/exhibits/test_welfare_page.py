"""Welfare by sampler: against a loop over clients, and verdicts against altered outcomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from small_games import GAMES, verdicts

from fedpcs.exhibits import welfare
from fedpcs.exhibits.solved_games import Case
from fedpcs.studies.paired import PairedDifference

PRIVATE, RANDOM = "Theorem 6: FedPCS's price of anarchy is ", "Proposition 4: with everyone at the lowe"


@pytest.fixture(scope="module")
def outcomes() -> list[welfare.Outcome]:
    pairs = [
        (GAMES.solve(Case(seed)), GAMES.solve(Case(seed, "budget-blind", reward=(20.0,) * 6))) for seed in range(3)
    ]
    return [welfare.assess(*pair) for pair in pairs]


def by_loop(budget: np.ndarray, one: welfare.Outcome) -> float:
    total = 0.0
    for t, reward in enumerate(one.aware.reward.path):
        for client, aversion in enumerate(one.aware.game.population.privacy_aversion):
            total += budget[t, client] * reward - aversion * budget[t, client] ** 2
    return total


def test_welfare_is_the_sum_over_clients_and_rounds(outcomes: list[welfare.Outcome]) -> None:
    for one in outcomes:
        assert one.by_round[welfare.FEDPCS].sum() == pytest.approx(by_loop(one.aware.profile.budget, one))
        assert one.by_round[welfare.BLIND].sum() == pytest.approx(by_loop(one.blind.profile.budget, one))
        still = np.tile(one.aware.game.population.initial_budget, (6, 1))
        assert one.by_round[welfare.STATIC].sum() == pytest.approx(by_loop(still, one))
        assert one.by_round[welfare.LOWEST].sum() == pytest.approx(by_loop(np.full((6, 12), 0.01), one))
        assert one.worth.equilibrium == pytest.approx(one.by_round[welfare.FEDPCS].sum())


def test_no_budget_within_bounds_does_better_than_the_optimum(outcomes: list[welfare.Outcome]) -> None:
    one = outcomes[0]
    aversion, best = one.aware.game.population.privacy_aversion, 0.0
    for psi in aversion:
        best += 6 * max(20.0 * rho - psi * rho**2 for rho in np.linspace(0.01, 12.0, 4001))
    assert one.by_round[welfare.OPTIMUM].sum() == pytest.approx(best, rel=1e-5)
    for trial in (welfare.FEDPCS, welfare.BLIND, welfare.STATIC, welfare.LOWEST):
        assert 0.0 < one.share(trial) < 1.0


def test_the_page_shows_shares_and_prices_that_are_each_other_s_inverse(outcomes: list[welfare.Outcome]) -> None:
    page = welfare.page_of(outcomes, range(3), (), GAMES, "quick")
    shares = [record["share of bounded optimum"] for record in page.records if record["trial"] == welfare.FEDPCS]
    prices = [one.price.equilibrium for one in outcomes]
    assert [1.0 / share for share in shares] == pytest.approx(prices)
    rows = {row[0]: row for row in page.tables[0].rows}
    assert rows[welfare.OPTIMUM][2].startswith("100.0")
    free = [record["share of bounded optimum"] for record in page.records if record["trial"] == welfare.UNBOUNDED]
    assert min(free) >= 1.0
    assert rows[welfare.UNBOUNDED][3] == "–"
    assert rows[welfare.UNBOUNDED][2].startswith(f"{100 * np.mean(free):,.1f}")
    assert f"{np.mean(prices):.3g}" == rows[welfare.FEDPCS][3].split()[0]
    assert f"{100 * np.mean(shares):.1f}" in page.headline


def test_closeness_needs_the_sum_and_every_round() -> None:
    assert welfare.verdict_on_closeness([0.95, 0.96, 0.97], 0.0) == "agrees"
    assert welfare.verdict_on_closeness([0.95, 0.96, 0.97], 0.2) == "in part"
    assert welfare.verdict_on_closeness([0.69, 0.7, 0.71], 0.0) == "in part"
    assert welfare.verdict_on_closeness([0.4, 0.48, 0.57], 0.0) == "differs"
    assert welfare.verdict_on_closeness([0.8, 0.9, 1.0], 0.0) == "cannot say"
    assert welfare.verdict_on_closeness([0.95], 0.0) == "cannot say"


def test_a_gap_is_judged_against_rational_clients() -> None:
    assert welfare.verdict_on_gap(PairedDifference(0.4, 0.3, 0.5, 3)) == "agrees"
    assert welfare.verdict_on_gap(PairedDifference(0.04, 0.03, 0.05, 3)) == "in part"
    assert welfare.verdict_on_gap(PairedDifference(-0.07, -0.14, 0.01, 3)) == "differs"
    assert welfare.verdict_on_gap(PairedDifference(0.0, -0.3, 0.3, 3)) == "cannot say"
    assert welfare.verdict_on_gap(PairedDifference(0.4, -np.inf, np.inf, 1)) == "cannot say"


def test_the_page_says_what_close_and_significant_mean_and_claims_only_what_the_paper_does(
    outcomes: list[welfare.Outcome],
) -> None:
    """The paper's figure holds FedPCS and random sampling against the optimum; its text names no other sampler."""
    page = welfare.page_of(outcomes, range(3), (), GAMES, "quick")
    close, gap, *_ = page.findings
    assert "closely means 90\N{NO-BREAK SPACE}%, in part 50\N{NO-BREAK SPACE}%" in close.found
    assert "Significant means 10 points." in gap.found
    assert not any(name in finding.claim for finding in page.findings for name in ("AOCS", "Fed-CBS", "DELTA"))
    assert "one game: budget-blind" in page.tables[0].note


def test_the_bounds_are_judged_only_where_their_premises_hold(outcomes: list[welfare.Outcome]) -> None:
    page = welfare.page_of(outcomes, range(3), (), GAMES, "quick")
    assert verdicts(page)[PRIVATE] == "cannot say"
    assert verdicts(page)[RANDOM] == "agrees"

    def private(bound: float) -> str:
        altered = [
            replace(one, price=replace(one.price, paper_private_premise=True, paper_private_bound=bound))
            for one in outcomes
        ]
        return verdicts(welfare.page_of(altered, range(3), (), GAMES, "quick"))[PRIVATE]

    assert private(1e9) == "agrees"
    assert private(1.0) == "differs"
    beyond = [replace(one, price=replace(one.price, paper_random_bound=1e12)) for one in outcomes]
    assert verdicts(welfare.page_of(beyond, range(3), (), GAMES, "quick"))[RANDOM] == "differs"
    unmet = [replace(one, price=replace(one.price, paper_random_premise=False)) for one in outcomes]
    assert verdicts(welfare.page_of(unmet, range(3), (), GAMES, "quick"))[RANDOM] == "cannot say"


def test_without_rewards_no_share_is_told() -> None:
    pair = [GAMES.solve(Case(0, selection, reward=0.0)) for selection in ("budget-aware", "budget-blind")]
    page = welfare.page_of([welfare.assess(*pair)], [0], (), GAMES, "quick")
    assert page.headline.startswith("No share of the optimum can be told")
    assert page.records[0]["share of bounded optimum"] is None


def test_the_figure_s_lines_are_means_over_populations(outcomes: list[welfare.Outcome]) -> None:
    page = welfare.make_page("quick", GAMES)
    lines = {line.get_label(): line.get_ydata() for line in page.drawings[0].draw().axes[0].get_lines()}
    for trial in outcomes[0].by_round:
        np.testing.assert_allclose(lines[trial], np.mean([one.by_round[trial] for one in outcomes], axis=0))
