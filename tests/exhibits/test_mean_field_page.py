"""How fast φ(t) comes to rest: sweeps against single best responses, verdicts against made-up histories."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from small_games import GAMES, all_words, verdicts

from fedpcs.exhibits import mean_field, mean_field_sweeps
from fedpcs.exhibits.solved_games import Case
from fedpcs.game import best_response


@pytest.fixture(scope="module")
def iterations() -> list[mean_field_sweeps.Iterations]:
    return [mean_field_sweeps.iterate(GAMES, Case(seed, reward=10.0)) for seed in (0, 1)]


def test_a_sweep_of_whole_paths_is_the_mean_of_single_clients_best_responses() -> None:
    found = GAMES.solve(Case(0, reward=10.0))
    history = mean_field_sweeps.sweep_history(found.game, found.reward.path, in_order=False, num_sweeps=2)
    crowd = found.game.population
    assert history[0].tolist() == pytest.approx([crowd.initial_budget.mean()] * 6)
    for before, after in pairwise(history):
        terms = found.game.terms(found.reward.path, before)
        answers = [
            best_response(terms, float(aversion), float(budget)).budget
            for aversion, budget in zip(crowd.privacy_aversion, crowd.initial_budget, strict=True)
        ]
        np.testing.assert_allclose(after, np.mean(answers, axis=0), atol=2e-3)


@pytest.mark.parametrize("in_order", [False, True])
def test_both_ways_of_sweeping_end_at_the_certified_mean(in_order: bool) -> None:
    found = GAMES.solve(Case(0, reward=10.0))
    history = mean_field_sweeps.sweep_history(found.game, found.reward.path, in_order=in_order)
    assert len(history) == mean_field_sweeps.NUM_SWEEPS + 1
    np.testing.assert_allclose(history[-1], found.profile.mean_budget, atol=2e-3)


def test_rest_is_the_first_small_change_and_none_if_there_is_none() -> None:
    history = np.array([[0.0, 0.0], [1.0, 3.0], [1.0, 2.9995], [1.0, 3.0]])
    assert mean_field_sweeps.changes(history).tolist() == pytest.approx([3.0, 0.0005, 0.0005])
    assert mean_field_sweeps.sweeps_to_rest(history) == 2
    assert mean_field_sweeps.sweeps_to_rest(history, 1e-4) is None
    assert mean_field_sweeps.sweeps_to_rest(-history) == 2  # the change counts in absolute value


def test_mostly_within_five_is_more_than_half_and_none_that_never_rests() -> None:
    assert mean_field.verdict_on_speed([5, 5, 6]) == "agrees"
    assert mean_field.verdict_on_speed([5, 5, None]) == "in part"
    assert mean_field.verdict_on_speed([5, 6, 6]) == "in part"
    assert mean_field.verdict_on_speed([6, 7, None]) == "differs"


def test_the_verdict_follows_the_histories(iterations: list[mean_field_sweeps.Iterations]) -> None:
    still = np.repeat(iterations[0].in_order[-1:], mean_field_sweeps.NUM_SWEEPS + 1, axis=0)
    restless = still + np.arange(mean_field_sweeps.NUM_SWEEPS + 1)[:, None] % 2
    for history, verdict in ((still, "agrees"), (restless, "differs")):
        altered = [replace(one, whole_paths=history, in_order=history) for one in iterations]
        page = mean_field.page_of(altered, [], GAMES, "quick")
        assert [finding.verdict for finding in page.findings[:2]] == [verdict, verdict]


def test_the_printed_formula_agrees_only_where_it_certifies(iterations: list[mean_field_sweeps.Iterations]) -> None:
    page = mean_field.page_of(iterations, [], GAMES, "quick")
    assert verdicts(page)["Algorithm 1 converges to the fixed point"] == "differs"
    certified = [replace(one, printed=one.found) for one in iterations]
    page = mean_field.page_of(certified, [], GAMES, "quick")
    assert verdicts(page)["Algorithm 1 converges to the fixed point"] == "agrees"


def test_a_game_that_does_not_certify_is_told(iterations: list[mean_field_sweeps.Iterations]) -> None:
    page = mean_field.page_of(iterations, [iterations[0].printed], GAMES, "quick")
    assert page.findings[-1].verdict == "cannot say"
    assert "1 of 3 games did not certify" in all_words(page)
    alone = mean_field.page_of([], [iterations[0].printed], GAMES, "quick")
    assert alone.headline.startswith("No game certified")
    assert alone.drawings == alone.tables == ()


def test_the_figure_shows_the_changes(iterations: list[mean_field_sweeps.Iterations]) -> None:
    page = mean_field.page_of(iterations, [], GAMES, "quick")
    figure = page.drawings[1].draw()
    shown = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[0].get_lines()}
    for name in ("whole paths", "in order", "as printed"):
        each = [np.log10(mean_field_sweeps.changes(one.histories[name])[:40].clip(1e-6)) for one in iterations]
        np.testing.assert_allclose(shown[name], np.median(each, axis=0))


def test_a_printed_iteration_that_stops_early_stands_still(iterations: list[mean_field_sweeps.Iterations]) -> None:
    short = replace(iterations[0].printed, history=iterations[0].printed.history[:3])
    history = replace(iterations[0], printed=short).histories["as printed"]
    assert len(history) == mean_field_sweeps.NUM_PRINTED_SWEEPS + 1
    assert np.abs(np.diff(history[2:], axis=0)).max() == 0.0


def test_records_hold_one_row_per_game(iterations: list[mean_field_sweeps.Iterations]) -> None:
    page = mean_field.page_of(iterations, [], GAMES, "quick")
    assert [(row["reward"], row["seed"]) for row in page.records] == [("constant 10", 0), ("constant 10", 1)]
    assert page.records[0]["exploitability"] <= 1e-3
    assert page.tables[0].rows[0][0] == "constant 10"


def test_the_whole_page_is_made_of_certified_games() -> None:
    page = mean_field.make_page("quick", GAMES)
    assert len(page.records) == 12
    assert all(row["exploitability"] <= 1e-3 for row in page.records)
    assert len(page.shrunk) == 1
