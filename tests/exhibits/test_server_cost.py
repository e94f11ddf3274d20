"""The server's cost by sampler and ratio: against brute force, and verdicts against made-up costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_games import GAMES, page_of, solved_page, verdicts

from fedpcs.exhibits import server_cost
from fedpcs.exhibits.games import Games, GameSpec
from fedpcs.exhibits.server_cost import BLIND, BLIND_OWN, DRAW, FEDPCS, RATIOS, RIVALS, SELFISH, STATIC, Outcome
from fedpcs.report.page import Page
from fedpcs.studies.paired import PairedDifference

GROWTH, LEMMA = "The gap between FedPCS and the baselines", "The lemma's round-by-round reward minimi"


@pytest.fixture(scope="module")
def page() -> Page:
    return solved_page("server-cost")


def recorded(page: Page, case: str, ratio: float, seed: int) -> float:
    (cost,) = (
        row["cost"] for row in page.records if (row["case"], row["sampling ratio"], row["seed"]) == (case, ratio, seed)
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
    crowd = GAMES.solve(GameSpec(1)).game.population

    def blind(budget: np.ndarray) -> np.ndarray:
        return np.full(budget.size, size / 12)

    aware = GAMES.solve(GameSpec(1, sampling_ratio=ratio)).profile.budget
    own = GAMES.solve(GameSpec(1, "budget-blind")).profile.budget
    expected = {
        FEDPCS: brute_force(aware, proportional(size), 20.0),
        BLIND: brute_force(own, blind, 20.0),  # a constant reward: the two blind cases are the same
        BLIND_OWN: brute_force(own, blind, 20.0),
        DRAW: brute_force(own, proportional(size), 20.0),
        STATIC: brute_force(np.tile(crowd.initial_budget, (6, 1)), blind, 20.0),
        SELFISH: brute_force(np.full((6, 12), 0.01), blind, 20.0),
    }
    for case, cost in expected.items():
        assert recorded(page, case, ratio, 1) == pytest.approx(cost, rel=1e-6)


def test_a_budget_blind_game_does_not_depend_on_the_ratio() -> None:
    """Claim of the module: K/N only scales what a client earns, so one solution serves every τ."""
    budgets = [GAMES.solve(GameSpec(2, "budget-blind", ratio)).profile.budget for ratio in RATIOS]
    for budget in budgets[1:]:
        np.testing.assert_allclose(budget, budgets[0], atol=1e-6)


@pytest.mark.slow
def test_a_budget_blind_server_s_own_path_costs_in_proportion_to_the_cohort() -> None:
    """Claim of the module: the path found at τ = 0.2 is as good at 0.8 as the one found there, to 1 %."""
    games = Games()
    small, large = (games.solve(GameSpec(0, "budget-blind", ratio)) for ratio in (0.2, 0.8))
    assert small.status == large.status == "converged"
    assert 4.0 * small.cost.sum() == pytest.approx(large.cost.sum(), rel=0.01)


def made_up(aware: float, *, slope: float = 0.0, lemma: float | None = None) -> Page:
    """Costs of three populations: rivals at 100·K, FedPCS at the given share of it, more so at larger ratios."""
    outcomes = []
    for seed, jitter in enumerate((0.999, 1.0, 1.001)):
        ratios = np.array(RATIOS)
        cost = dict.fromkeys((*RIVALS, DRAW), 100.0 * ratios * jitter**2)
        cost[FEDPCS] = 100.0 * ratios * (aware - slope * ratios) * jitter
        more = (np.nan if lemma is None else lemma) + jitter - 1.0
        outcomes.append(Outcome(seed, cost, more * cost[FEDPCS], {}))
    return page_of("server-cost", outcomes)


def test_the_verdict_on_least_cost_flips_with_the_costs() -> None:
    def lowest(page: Page) -> set[str]:
        return {finding.verdict for finding in page.findings[: len(RIVALS)]}

    assert lowest(made_up(0.8)) == {"agrees"}
    assert lowest(made_up(1.2)) == {"differs"}
    assert lowest(made_up(1.0)) == {"cannot say"}
    assert lowest(made_up(1.25, slope=0.5)) == {"in part"}


def test_a_gap_that_grows_only_in_proportion_to_cost_is_half_the_claim() -> None:
    assert verdicts(made_up(0.9, slope=0.5))[GROWTH] == "agrees"
    assert verdicts(made_up(0.5, slope=-0.2))[GROWTH] == "in part"
    assert verdicts(made_up(1.2))[GROWTH] == "differs"


def test_the_lemma_is_optimal_only_where_it_costs_no_more() -> None:
    assert verdicts(made_up(0.8, lemma=1.1))[LEMMA] == "differs"
    assert verdicts(made_up(0.8, lemma=0.9))[LEMMA] == "agrees"
    assert verdicts(made_up(0.8, lemma=1.0))[LEMMA] == "cannot say"
    without = next(finding for finding in made_up(0.8).findings if finding.claim.startswith("The lemma"))
    assert without.verdict == "cannot say"
    assert "9 games under the lemma's rewards did not certify" in without.found
    clear, unclear = PairedDifference(0.1, 0.05, 0.15, 3), PairedDifference(0.1, -0.05, 0.25, 3)
    assert server_cost.verdict_on_lemma((clear, unclear)) == "in part"


def test_incentives_explain_the_saving_only_as_far_as_the_draw_does_not() -> None:
    def verdict(*shares: float, spread: float = 0.001) -> str:
        return server_cost.verdict_on_draw([share + spread * np.array([-1.0, 0.0, 1.0]) for share in shares])

    assert verdict(0.95, 1.1) == "differs"
    assert verdict(0.95, 0.6) == "in part"
    assert verdict(0.2, 0.4) == "agrees"
    assert verdict(0.95, 1.1, spread=0.1) == "in part"  # surely more than half, and not surely nearly all
    assert verdict(0.2, 0.4, spread=0.2) == "cannot say"
    assert server_cost.verdict_on_draw([]) == "cannot say"


def test_savings_are_paired_shares_and_bold_exactly_where_clear() -> None:
    assert made_up(0.8).tables[1].bold == {(row, column) for row in range(len(RIVALS)) for column in (1, 2, 3)}
    assert made_up(1.0).tables[1].bold == frozenset()
    costs = ((50.0, 100.0), (60.0, 80.0))
    pair = [Outcome(0, {FEDPCS: np.array([a]), BLIND: np.array([b])}, np.array([]), {}) for a, b in costs]
    assert server_cost.saved(pair, BLIND).tolist() == [[0.5], [0.25]]


def test_the_headline_and_the_figure_have_the_means_of_the_records(page: Page) -> None:
    saved = [1.0 - recorded(page, FEDPCS, 0.2, seed) / recorded(page, BLIND_OWN, 0.2, seed) for seed in range(3)]
    said = f"{100 * np.mean(saved):.1f} % at τ = 0.2"
    assert said in page.headline.replace("\N{NO-BREAK SPACE}", " ")
    means = np.mean([recorded(page, FEDPCS, 0.5, seed) for seed in range(3)])
    line = next(line for line in page.drawings[0].draw().axes[0].get_lines() if line.get_label() == FEDPCS)
    assert line.get_ydata()[1] == pytest.approx(means)
