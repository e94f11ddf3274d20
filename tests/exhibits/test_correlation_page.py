"""Correlation of budget paths: against NumPy's, and what happens to verdicts when paths are altered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from small_games import GAMES, verdicts

from fedpcs.exhibits import correlation
from fedpcs.exhibits.correlation import BLIND, BLIND_OWN, FEDPCS, SELFISH, STATIC
from fedpcs.exhibits.solved_games import Case
from fedpcs.report.drawing import as_svg
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
    idle = [np.full_like(paths, 3.0) for paths in aware]
    budgets = {FEDPCS: aware, BLIND: blind, BLIND_OWN: blind, STATIC: idle, SELFISH: idle}
    return correlation.page_of(budgets, range(len(aware)), (), GAMES, "quick")


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
    like_the_paper, upside_down = page(together, apart), page(apart, together)
    assert verdicts(like_the_paper)[LEVEL] == verdicts(like_the_paper)[GAP] == "agrees"
    assert verdicts(like_the_paper)[DIVERGENCE] == "agrees"
    assert verdicts(upside_down)[LEVEL] == verdicts(upside_down)[GAP] == "differs"


def test_equal_maps_differ_from_the_claim_that_they_are_not() -> None:
    same = [moving([1, 1, -1, -1], 1.0, seed) for seed in range(3)]
    assert verdicts(page(same, same))[GAP] == "differs"


def test_correlation_can_rise_while_clients_drift_apart() -> None:
    fan = [moving([1, 4, 7, 10], 1.0, seed) for seed in range(3)]
    close = [moving([1, -1, 1, -1], 0.2, seed) for seed in range(3)]
    assert verdicts(page(fan, close))[DIVERGENCE] == "differs"


def test_an_interval_across_zero_cannot_say() -> None:
    wide = PairedDifference(0.3, -0.2, 0.8, 3)
    assert correlation.verdict_on_gap(wide) == "cannot say"
    assert correlation.verdict_on_divergence(wide, wide) == "cannot say"
    assert correlation.verdict_on_gap(PairedDifference(0.02, 0.01, 0.09, 3)) == "in part"
    assert correlation.verdict_on_gap(PairedDifference(-0.02, -0.07, 0.03, 3)) == "differs"


def test_a_lead_in_correlation_goes_by_the_interval_s_lower_end_and_its_margin_is_said() -> None:
    assert correlation.verdict_on_gap(PairedDifference(0.3, 0.06, 0.54, 3)) == "agrees"
    assert correlation.verdict_on_gap(PairedDifference(0.3, 0.04, 0.56, 3)) == "in part"
    together = [moving([1, 1, 1, 1], 1.0, seed) for seed in range(3)]
    level, gap, *_ = page(together, together).findings
    assert "highly means 0.7, in part 0.3" in level.found
    assert "A lead of no more than 0.05 counts as none." in gap.found


def test_the_page_says_what_numpy_says_of_the_solved_games() -> None:
    made = correlation.make_page("quick", GAMES)
    for record in made.records:
        if record["trial"] != FEDPCS:
            continue
        budget = GAMES.solve(Case(record["seed"])).profile.budget
        budget = budget[:, np.ptp(budget, axis=0) > 1e-6 * budget.mean(axis=0)]
        twin = np.corrcoef(budget.T)[np.triu_indices(budget.shape[1], 1)].mean()
        assert record["mean correlation"] == pytest.approx(twin)
        assert record["spread, last round"] == pytest.approx(
            np.std(GAMES.solve(Case(record["seed"])).profile.budget[-1])
        )
    assert [row[1] for row in made.tables[0].rows[-2:]] == ["undefined", "undefined"]
    assert "the same game" in made.findings[3].found
    assert any("certificate" in key for key in made.provenance)


def test_the_map_drawn_is_ordered_by_initial_budget() -> None:
    made = correlation.make_page("quick", GAMES)
    budget = GAMES.solve(Case(0)).profile.budget
    order = np.argsort(budget[0])
    shown = np.asarray(made.drawings[0].draw().axes[0].images[0].get_array().filled(np.nan))
    np.testing.assert_allclose(shown, correlation.path_correlation(budget[:, order]))


@pytest.mark.parametrize("is_narrow", [False, True])
def test_maps_are_square_and_fill_the_figure_s_width(is_narrow: bool) -> None:
    (drawing, _) = correlation.make_page("quick", GAMES).drawings
    figure = drawing.draw()
    if is_narrow:
        as_svg(figure)
    FigureCanvasAgg(figure).draw()
    maps = [axes.get_window_extent() for axes in figure.axes if axes.images]
    assert len(maps) == 2
    assert all(box.width == pytest.approx(box.height, rel=0.01) for box in maps)
    assert sum(box.width for box in maps) > 0.78 * figure.bbox.width
    assert min(box.x0 for box in maps) < 0.15 * figure.bbox.width


def test_without_a_certified_population_nothing_is_claimed() -> None:
    made = correlation.page_of({name: [] for name in (FEDPCS, BLIND, BLIND_OWN)}, (), (), GAMES, "quick")
    assert made.headline.startswith("No correlation can be told")
    assert made.findings == made.tables == made.drawings == made.records == ()
