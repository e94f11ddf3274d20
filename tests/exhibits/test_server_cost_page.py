"""The server's cost by sampler and ratio: against brute force, and verdicts against made-up costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_games import GAMES, verdicts

from fedpcs.exhibits import server_cost, server_cost_findings
from fedpcs.exhibits.server_cost_findings import (
    BLIND,
    BLIND_OWN,
    DRAW,
    FEDPCS,
    RATIOS,
    RIVALS,
    SELFISH,
    STATIC,
    LemmaCosts,
)
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.report.page import Page
from fedpcs.studies.paired import PairedDifference

GROWTH = "The gap between FedPCS and the baselines"


@pytest.fixture(scope="module")
def page() -> Page:
    return server_cost.make_page("quick", GAMES)


def recorded(page: Page, trial: str, ratio: float, seed: int) -> float:
    (cost,) = (
        row["cost"]
        for row in page.records
        if (row["trial"], row["sampling ratio"], row["seed"]) == (trial, ratio, seed)
    )
    return cost


def brute_force(budget: np.ndarray, inclusion: Callable[[np.ndarray], np.ndarray], reward: float) -> float:
    """γ = 0.5, a = 10,000, rounds and clients one by one."""
    total = 0.0
    for t in range(budget.shape[0]):
        for chance, rho in zip(inclusion(budget[t]), budget[t], strict=True):
            total += chance * (0.5 * 10_000.0 / ((t + 1) * rho) + 0.5 * reward * rho)
    return total


def proportional(size: int) -> Callable[[np.ndarray], np.ndarray]:
    """Chances in proportion to budgets that add up to `size`, those above one cut to it, again and again."""

    def inclusion(budget: np.ndarray) -> np.ndarray:
        sure = np.zeros(budget.size, dtype=bool)
        while True:
            chance = np.where(sure, 1.0, (size - sure.sum()) * budget / budget[~sure].sum())
            if not (chance > 1.0 + 1e-12).any():
                return chance
            sure |= chance > 1.0

    return inclusion


@pytest.mark.parametrize("ratio", RATIOS)
def test_costs_are_the_brute_force_sums(page: Page, ratio: float) -> None:
    size = max(1, round(12 * ratio))
    crowd = GAMES.solve(Case(1)).game.population

    def blind(budget: np.ndarray) -> np.ndarray:
        return np.full(budget.size, size / 12)

    aware = GAMES.solve(Case(1, sampling_ratio=ratio)).profile.budget
    own = GAMES.solve(Case(1, "budget-blind")).profile.budget
    expected = {
        FEDPCS: brute_force(aware, proportional(size), 20.0),
        BLIND: brute_force(own, blind, 20.0),  # a constant reward: the two blind trials are the same
        BLIND_OWN: brute_force(own, blind, 20.0),
        DRAW: brute_force(own, proportional(size), 20.0),
        STATIC: brute_force(np.tile(crowd.initial_budget, (6, 1)), blind, 20.0),
        SELFISH: brute_force(np.full((6, 12), 0.01), blind, 20.0),
    }
    for trial, cost in expected.items():
        assert recorded(page, trial, ratio, 1) == pytest.approx(cost, rel=1e-6)


def test_a_budget_blind_game_does_not_depend_on_the_ratio() -> None:
    """Claim of the module: K/N only scales what a client earns, so one solution serves every τ."""
    budgets = [GAMES.solve(Case(2, "budget-blind", ratio)).profile.budget for ratio in RATIOS]
    for budget in budgets[1:]:
        np.testing.assert_allclose(budget, budgets[0], atol=1e-6)


@pytest.mark.slow
def test_a_budget_blind_server_s_own_path_costs_in_proportion_to_the_cohort() -> None:
    """Claim of the module: the path found at τ = 0.2 is as good at 0.8 as the one found there, to 1 %."""
    games = Games()
    small, large = (games.solve(Case(0, "budget-blind", ratio)) for ratio in (0.2, 0.8))
    assert small.status == large.status == "converged"
    assert 4.0 * small.cost.sum() == pytest.approx(large.cost.sum(), rel=0.01)


def made_up(aware: float, *, slope: float = 0.0, lemma: LemmaCosts | None = None) -> Page:
    """Costs of three populations: rivals at 100·K, FedPCS at the given share of it, more so at larger ratios."""
    jitter = np.array([0.999, 1.0, 1.001])
    costs = {rival: {ratio: 100.0 * ratio * jitter**2 for ratio in RATIOS} for rival in RIVALS}
    mine = {ratio: 100.0 * ratio * (aware - slope * ratio) * jitter for ratio in RATIOS}
    return server_cost.page_of({FEDPCS: mine, **costs}, (0, 1, 2), (), GAMES, "quick", lemma=lemma)


def lowest(page: Page) -> list[str]:
    return [finding.verdict for finding in page.findings[: len(RIVALS)]]


def test_the_verdict_on_least_cost_flips_with_the_costs() -> None:
    assert set(lowest(made_up(0.8))) == {"agrees"}
    assert set(lowest(made_up(1.2))) == {"differs"}
    assert set(lowest(made_up(1.0))) == {"cannot say"}
    assert set(lowest(made_up(1.25, slope=0.5))) == {"in part"}


def test_a_gap_that_grows_only_in_proportion_to_cost_is_half_the_claim() -> None:
    assert verdicts(made_up(0.9, slope=0.5))[GROWTH] == "agrees"
    assert verdicts(made_up(0.5, slope=-0.2))[GROWTH] == "in part"
    assert verdicts(made_up(1.2))[GROWTH] == "differs"
    unsure = PairedDifference(1.0, -1.0, 3.0, 3)
    assert server_cost_findings.verdict_on_growth(unsure, unsure) == "cannot say"


def test_the_lemma_is_optimal_only_where_it_costs_no_more() -> None:
    def verdict(more: float, num_pairs: int = 3) -> str:
        pairs = [(100.0 * more + noise, 100.0) for noise in (-0.1, 0.0, 0.1)[:num_pairs]]
        return verdicts(made_up(0.8, lemma=dict.fromkeys(RATIOS, pairs)))["The lemma's round-by-round reward minimi"]

    assert verdict(1.1) == "differs"
    assert verdict(0.9) == "agrees"
    assert verdict(1.0) == "cannot say"
    assert verdict(1.1, num_pairs=0) == "cannot say"
    clear, unclear = PairedDifference(0.1, 0.05, 0.15, 3), PairedDifference(0.1, -0.05, 0.25, 3)
    assert server_cost_findings.verdict_on_lemma((clear, unclear)) == "in part"


def test_lemma_games_that_do_not_certify_are_counted(page: Page) -> None:
    lemma = next(finding for finding in page.findings if finding.claim.startswith("The lemma"))
    certified = [GAMES.solve(Case(s, sampling_ratio=r, reward="per-round")).status for s in range(3) for r in RATIOS]
    missing = sum(status != "converged" for status in certified)
    assert (f"{missing} games" in lemma.found) == (missing > 0)


def test_incentives_explain_the_saving_only_as_far_as_the_draw_does_not() -> None:
    def verdict(*shares: float, spread: float = 0.001) -> str:
        return server_cost_findings.verdict_on_draw([share + spread * np.array([-1.0, 0.0, 1.0]) for share in shares])

    assert verdict(0.95, 1.1) == "differs"
    assert verdict(0.95, 0.6) == "in part"
    assert verdict(0.2, 0.4) == "agrees"
    assert verdict(0.95, 1.1, spread=0.1) == "in part"  # surely more than half, and not surely nearly all
    assert verdict(0.2, 0.4, spread=0.2) == "cannot say"
    assert server_cost_findings.verdict_on_draw([]) == "cannot say"


def test_savings_are_paired_shares_and_bold_exactly_where_clear() -> None:
    page = made_up(0.8)
    assert page.tables[1].bold == {(row, column) for row in range(len(RIVALS)) for column in (1, 2, 3)}
    assert made_up(1.0).tables[1].bold == frozenset()
    saved = server_cost_findings.gaps({FEDPCS: {0.2: [50.0, 60.0]}, BLIND: {0.2: [100.0, 80.0]}}, BLIND)[0.2]
    assert saved.mean == pytest.approx((0.5 + 0.25) / 2)


def test_the_page_tells_its_games_and_that_baselines_are_one(page: Page) -> None:
    assert sum("the lemma" not in use for use in page.provenance) == 7
    assert any("the same game" in finding.found for finding in page.findings)
    saved = [1.0 - recorded(page, FEDPCS, 0.2, seed) / recorded(page, BLIND_OWN, 0.2, seed) for seed in range(3)]
    assert (
        f"{100 * np.mean(saved):.1f}\N{NO-BREAK SPACE}% at τ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.2" in page.headline
    )
    means = np.mean([recorded(page, FEDPCS, 0.5, seed) for seed in range(3)])
    line = next(line for line in page.drawings[0].draw().axes[0].get_lines() if line.get_label() == FEDPCS)
    assert line.get_ydata()[1] == pytest.approx(means)


def test_without_a_certified_population_nothing_is_claimed() -> None:
    page = server_cost.page_of({}, (), (), GAMES, "quick")
    assert page.headline.startswith("No population")
    assert page.findings == page.tables == page.drawings == page.records == ()
