"""Correlation of budget paths: against NumPy's, and what happens to verdicts when paths are altered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from small_games import GAMES, page_of, solved_page, verdicts

from fedpcs.exhibits import correlation
from fedpcs.exhibits.correlation import BLIND, BLIND_OWN, FEDPCS, SELFISH, STATIC, Outcome
from fedpcs.exhibits.games import GameSpec
from fedpcs.report.page import Page
from fedpcs.studies.paired import PairedDifference

LEVEL, GAP, DIVERGENCE = (
    "Under FedPCS the budgets of different cl",
    "Under the baselines a client correlates ",
    "A warmer map means smaller divergence be",
)


def moving(signs: list[float], step: float, seed: int) -> np.ndarray:
    """Budgets of clients that rise (sign +1) or fall (−1) by `step` in all, nearly in step."""
    rng = np.random.default_rng(seed)
    rise = np.linspace(0.0, step, 8)[:, None] * np.array(signs)
    return 6.0 + rise + np.array(range(len(signs))) * 0.1 + 1e-3 * step * rng.normal(size=rise.shape)


def page(aware: list[np.ndarray], blind: list[np.ndarray]) -> Page:
    idle = np.full_like(aware[0], 3.0)
    outcomes = [
        Outcome(seed, {FEDPCS: mine, BLIND: theirs, BLIND_OWN: theirs, STATIC: idle, SELFISH: idle}, {})
        for seed, (mine, theirs) in enumerate(zip(aware, blind, strict=True))
    ]
    return page_of("correlation", outcomes)


def test_correlation_is_numpy_s() -> None:
    budget = np.random.default_rng(0).uniform(1.0, 9.0, (7, 5))
    np.testing.assert_allclose(correlation.path_correlation(budget), np.corrcoef(budget.T))


def test_a_budget_that_never_moves_correlates_with_nobody() -> None:
    budget = np.random.default_rng(0).uniform(1.0, 9.0, (7, 4))
    budget[:, 2] = 5.0
    found = correlation.path_correlation(budget)
    assert np.isnan(found[2]).all()
    assert np.isnan(found[:, 2]).all()
    others = [0, 1, 3]
    np.testing.assert_allclose(found[np.ix_(others, others)], np.corrcoef(budget[:, others].T))
    pairs = [np.corrcoef(budget[:, i], budget[:, j])[0, 1] for i, j in combinations(others, 2)]
    assert correlation.others_mean(found) == pytest.approx(np.mean(pairs))
    assert correlation.others_mean(np.full((3, 3), np.nan)) is None


def test_the_paper_s_picture_agrees_and_its_opposite_differs() -> None:
    together = [moving([1, 1, 1, 1], 1.0, seed) for seed in range(3)]
    apart = [moving([1, -1, 1, -1], 4.0, seed) for seed in range(3)]
    like_the_paper, upside_down = verdicts(page(together, apart)), verdicts(page(apart, together))
    assert like_the_paper[LEVEL] == like_the_paper[GAP] == like_the_paper[DIVERGENCE] == "agrees"
    assert upside_down[LEVEL] == upside_down[GAP] == "differs"
    assert verdicts(page(together, together))[GAP] == "differs"  # equal maps differ from the claim that they are not


def test_correlation_can_rise_while_clients_drift_apart() -> None:
    fan = [moving([1, 4, 7, 10], 1.0, seed) for seed in range(3)]
    close = [moving([1, -1, 1, -1], 0.2, seed) for seed in range(3)]
    assert verdicts(page(fan, close))[DIVERGENCE] == "differs"


def test_a_lead_in_correlation_goes_by_both_ends_of_its_interval() -> None:
    wide = PairedDifference(0.3, -0.2, 0.8, 3)
    assert correlation.verdict_on_gap(wide) == "cannot say"
    assert correlation.verdict_on_divergence(wide, wide) == "cannot say"
    assert correlation.verdict_on_gap(PairedDifference(0.3, 0.06, 0.54, 3)) == "agrees"
    assert correlation.verdict_on_gap(PairedDifference(0.02, 0.01, 0.09, 3)) == "in part"
    assert correlation.verdict_on_gap(PairedDifference(-0.02, -0.07, 0.03, 3)) == "differs"


def test_the_page_has_what_numpy_says_of_the_solved_games() -> None:
    made = solved_page("correlation")
    for record in made.records:
        if record["case"] == FEDPCS:
            budget = GAMES.solve(GameSpec(record["seed"])).profile.budget
            assert record["spread, last round"] == pytest.approx(np.std(budget[-1]))
            moves = budget[:, np.ptp(budget, axis=0) > 1e-6 * budget.mean(axis=0)]
            twin = np.corrcoef(moves.T)[np.triu_indices(moves.shape[1], 1)].mean()
            assert record["mean correlation"] == pytest.approx(twin)
    assert [row[1] for row in made.tables[0].rows[-2:]] == ["undefined", "undefined"]
    assert "the same game" in made.findings[3].found


def test_the_map_drawn_is_ordered_by_initial_budget() -> None:
    figure = solved_page("correlation").drawings[0].draw()
    budget = GAMES.solve(GameSpec(0)).profile.budget
    shown = np.asarray(figure.axes[0].images[0].get_array().filled(np.nan))
    np.testing.assert_allclose(shown, correlation.path_correlation(budget[:, np.argsort(budget[0])]))
