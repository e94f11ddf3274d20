"""What `fedpcs solve --figures` promises: every file, for any solved game, from the result's own numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.errors import InvalidInput
from fedpcs.game import make_game, solve, uniform, uniform_density
from fedpcs.game.equilibrium import Equilibrium, merge_types
from fedpcs.game.mean_field import RESPONSE_MODES
from fedpcs.game.payoffs import Profile, server_cost
from fedpcs.game.sampling_ratio import CohortPlan, plan_cohort, solve_with_caps
from fedpcs.report.figures import caps as cap_figure
from fedpcs.report.figures import game as game_figures
from fedpcs.report.figures import game_comparison as comparison_figures

NAMES = ["mean_field.png", "budgets.png", "rewards.png", "responses.png", "welfare.png", "caps.png"]

EDGES = {
    "usual": lambda: solve(make_game(uniform(12, seed=0), last_round=4), 7.0),
    "two rounds": lambda: solve(make_game(uniform(5, seed=0), last_round=1), 3.0),
    "one client": lambda: solve(make_game(uniform(1, seed=0), last_round=1), 3.0),
    "histogram": lambda: solve(make_game(uniform_density(100, bins=(20, 20)), last_round=2), 7.0),
    "not converged": lambda: solve(make_game(uniform(20, seed=0), last_round=6), 10.0, response="paper", throw=False),
    "no reward": lambda: solve(make_game(uniform(8, seed=0), last_round=3), 0.0),
    "blind, varying rewards": lambda: solve(
        make_game(uniform(8, seed=0), last_round=2, selection="budget-blind"), [9.0, 0.0, 4.0]
    ),
}


@cache
def solved_game(name: str) -> Equilibrium:
    return EDGES[name]()


@pytest.fixture
def found() -> Equilibrium:
    return solved_game("usual")


def lines(figure: Figure, panel: int = 0) -> dict[str, np.ndarray]:
    """Return the labelled lines of a panel and what they hold."""
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in figure.axes[panel].get_lines()}


def words(figure: Figure) -> str:
    """Return all text a reader sees outside the panels' own ticks."""
    title, note = figure.get_suptitle(), figure.get_supxlabel()
    inside = [text.get_text() for axes in figure.axes for text in (*axes.texts, axes.title, axes._left_title)]
    return " ".join([title, note, *inside]).replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ")


RARER = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("two rounds", "one client", "histogram", "no reward", "not converged")
]


@pytest.mark.parametrize("name", ["usual", *RARER])
def test_every_promised_file_is_a_picture_whatever_the_game(name: str, tmp_path: Path) -> None:
    drawn = game_figures.draw_all(solved_game(name), None, tmp_path)
    assert drawn == [tmp_path / file for file in NAMES]
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_the_last_sweep_drawn_is_the_last_in_the_result(found: Equilibrium) -> None:
    figure = game_figures.mean_field_figure(found)
    np.testing.assert_array_equal(lines(figure)["last sweep"], found.history[-1])
    np.testing.assert_array_equal(lines(figure)["before the first"], found.history[0])


def test_a_mean_that_is_not_what_clients_play_is_shown_beside_it(found: Equilibrium) -> None:
    away = found.history[-1] + 1.0
    figure = game_figures.mean_field_figure(replace(found, history=np.vstack((found.history, away))))
    np.testing.assert_array_equal(lines(figure)["played"], found.profile.mean_budget)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("converged", "settles in"),
        ("not-converged", "Not converged"),
        ("not-an-equilibrium", "Not an equilibrium"),
    ],
)
def test_the_title_says_how_the_solver_ended(found: Equilibrium, status: str, said: str) -> None:
    assert said in words(game_figures.mean_field_figure(replace(found, status=status)))


@pytest.mark.parametrize("name", ["usual", "histogram"])
def test_budgets_are_means_in_a_band_of_most_clients(name: str) -> None:
    solved = solved_game(name)
    axes = game_figures.budget_figure(solved).axes[0]
    np.testing.assert_array_equal(lines(axes.figure)["mean"], solved.profile.mean_budget)
    weight = None if solved.game.population.is_individual else solved.game.population.weight
    band = axes.collections[0].get_paths()[0].vertices
    for t, row in enumerate(solved.profile.budget):
        ends = np.quantile(row, (0.05, 0.95), weights=weight, method="inverted_cdf")
        at = band[band[:, 0] == t, 1]
        np.testing.assert_allclose((at.min(), at.max()), ends)


def test_rewards_and_costs_drawn_are_the_results(found: Equilibrium) -> None:
    figure = game_figures.reward_figure(found)
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), found.reward.path)
    np.testing.assert_array_equal(lines(figure, panel=1)["cost"], found.cost)


def test_rewards_paid_are_what_the_cost_has_beyond_its_accuracy_term(found: Equilibrium) -> None:
    free = replace(found, reward=replace(found.reward, path=np.zeros_like(found.reward.path)))
    np.testing.assert_array_equal(game_figures.payments(free), 0.0)
    # With K = N everyone is drawn, so the payments are a plain sum.
    game = replace(found.game, cohort_size=np.full(5, 12.0))
    plain = 0.5 * found.reward.path * found.profile.budget.sum(axis=1)
    np.testing.assert_allclose(game_figures.payments(replace(found, game=game)), plain)


def test_response_bars_end_at_each_modes_exploitability(found: Equilibrium) -> None:
    axes = comparison_figures.response_figure(found).axes[0]
    assert axes.get_xscale() == "log"
    for bar, mode in zip(axes.patches, RESPONSE_MODES, strict=True):
        gain = solve(found.game, found.reward.path, response=mode, throw=False).certificate.relative
        if gain > _format.ROUNDING:
            assert bar.get_x() + bar.get_width() == pytest.approx(gain)
        assert _format.gain(gain) in [text.get_text() for text in axes.texts]


def test_welfare_bars_are_the_results_and_prices_are_their_ratios(found: Equilibrium) -> None:
    worth, price = found.welfare()
    figure = comparison_figures.welfare_figure(found)
    drawn = [bar.get_width() for bar in figure.axes[0].patches]
    assert drawn == pytest.approx([worth.optimum_bounded, worth.equilibrium, worth.budget_blind, worth.worst_case])
    for known in (price.equilibrium, price.budget_blind, price.worst_case):
        assert f"price {known:.3f}" in words(figure) or f"price {_format.amount(known)}" in words(figure)
    assert "Proposition 4" in words(figure)
    assert "Theorem 6" in words(figure)


def test_where_welfare_is_not_positive_no_price_is_drawn() -> None:
    figure = comparison_figures.welfare_figure(solved_game("no reward"))
    assert "no price: welfare not positive" in words(figure)


def test_given_caps_are_the_ones_drawn() -> None:
    caps = np.linspace(60.0, 30.0, 4)
    solved, plan = solve_with_caps(make_game(uniform(12, seed=0), last_round=3), 7.0, caps)
    figure = cap_figure.caps_figure(solved, plan)
    np.testing.assert_array_equal(figure.axes[0].get_lines()[0].get_ydata(), plan.cohort_size)
    assert "60 in round 0 and 30 in the last" in words(figure)


@pytest.mark.parametrize("is_aware", [True, False])
def test_no_drawn_cohort_passes_its_cap_and_draws_repeat(found: Equilibrium, is_aware: bool) -> None:
    budget = found.profile.budget
    plan = plan_cohort(budget, found.reward.path, cap_figure.default_caps(budget, found.game), found.game)
    usage = cap_figure.drawn_usage(budget, plan, 50, budget_aware=is_aware)
    again = cap_figure.drawn_usage(budget, plan, 50, budget_aware=is_aware)
    np.testing.assert_array_equal(usage.middle, again.middle)
    assert (usage.low <= usage.middle).all()
    assert (usage.high <= 1.0 + 1e-12).all()


def test_drawn_usage_nears_the_expected_where_the_cap_is_too_wide_to_cut(found: Equilibrium) -> None:
    """400 draws of 3 of 12: the mean usage has a standard error under 2 % of itself; 10 % is far outside."""
    size = found.cost.size
    plan = CohortPlan(np.full(size, 3.0), np.full(size, 1e3), np.zeros(size))
    drawn = cap_figure.drawn_usage(found.profile.budget, plan, 400, budget_aware=False)
    expected = cap_figure.expected_usage(found.profile.budget, plan, found.game, budget_aware=False)
    np.testing.assert_allclose(drawn.middle, expected.middle, rtol=0.1)


def test_the_papers_caps_come_back_for_the_papers_population() -> None:
    game = make_game(uniform(100, seed=0))
    np.testing.assert_allclose(cap_figure.default_caps(np.full((31, 100), 6.5), game), np.linspace(700.0, 300.0, 31))


def test_only_expectations_where_clients_are_not_told_apart_or_too_many() -> None:
    assert cap_figure.num_draws(make_game()) == 200
    assert cap_figure.num_draws(make_game(uniform_density(100))) == 0
    assert cap_figure.num_draws(make_game(uniform(5_001, seed=0))) == 0
    assert "expected" in words(cap_figure.caps_figure(solved_game("histogram"), None))


def big_game(clients: int) -> Equilibrium:
    """Return a game of many clients with every budget held: what figures read, without the solving."""
    few = solve(make_game(uniform(8, seed=0), last_round=3), 5.0)
    game = make_game(uniform(clients, seed=0), last_round=3)
    budget = np.broadcast_to(game.population.initial_budget, (4, clients))
    profile = Profile(budget, np.ones_like(budget), budget @ game.population.weight)
    return replace(few, game=game, profile=profile, cost=server_cost(budget, few.reward.path, game))


def test_merging_types_keeps_means_and_is_skipped_for_few() -> None:
    solved = big_game(30_000)
    game, budget = merge_types(solved, 5_000)
    crowd, whole = game.population, solved.game.population
    assert crowd.num_types < 1_100
    assert crowd.num_clients == 30_000
    np.testing.assert_allclose(budget @ crowd.weight, solved.profile.mean_budget)
    assert crowd.mean(crowd.privacy_aversion) == pytest.approx(whole.mean(whole.privacy_aversion))
    assert merge_types(solved, 30_000)[0] is solved.game


@pytest.mark.slow
def test_a_hundred_thousand_clients_are_drawn(tmp_path: Path) -> None:
    game_figures.draw_all(big_game(100_000), None, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


def test_a_folder_that_cannot_be_written_is_refused_in_words(found: Equilibrium, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"mean_field\.png: cannot be written"):
        game_figures.draw_all(found, None, tmp_path / "missing")
