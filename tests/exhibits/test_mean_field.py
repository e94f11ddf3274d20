"""How fast φ(t) comes to rest: sweeps against single best responses, verdicts against made-up histories."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from small_games import GAMES, page_of, solved_page, verdicts

from fedpcs.exhibits import mean_field
from fedpcs.exhibits.games import GameSpec
from fedpcs.exhibits.mean_field import Sweeps
from fedpcs.game import best_response


@pytest.fixture(scope="module")
def games() -> list[Sweeps]:
    return [mean_field.sweep_game(GAMES, (10.0, seed)) for seed in (0, 1)]


def test_a_sweep_of_whole_paths_is_the_mean_of_single_clients_best_responses() -> None:
    found = GAMES.solve(GameSpec(0, reward=10.0))
    history = mean_field.sweep_history(found.game, found.reward.path, in_order=False, num_sweeps=2)
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
    found = GAMES.solve(GameSpec(0, reward=10.0))
    history = mean_field.sweep_history(found.game, found.reward.path, in_order=in_order)
    assert len(history) == mean_field.NUM_SWEEPS + 1
    np.testing.assert_allclose(history[-1], found.profile.mean_budget, atol=2e-3)


def test_rest_is_the_first_small_change_and_none_if_there_is_none() -> None:
    history = np.array([[0.0, 0.0], [1.0, 3.0], [1.0, 2.9995], [1.0, 3.0]])
    assert mean_field.changes(history).tolist() == pytest.approx([3.0, 0.0005, 0.0005])
    assert mean_field.sweeps_to_rest(history) == 2
    assert mean_field.sweeps_to_rest(history, 1e-4) is None
    assert mean_field.sweeps_to_rest(-history) == 2  # the change counts in absolute value


def test_mostly_within_five_is_more_than_half_and_none_that_never_rests() -> None:
    assert mean_field.verdict_on_speed([5, 5, 6]) == "agrees"
    assert mean_field.verdict_on_speed([5, 5, None]) == "in part"
    assert mean_field.verdict_on_speed([5, 6, 6]) == "in part"
    assert mean_field.verdict_on_speed([6, 7, None]) == "differs"


def test_the_verdict_follows_the_histories(games: list[Sweeps]) -> None:
    still = np.repeat(games[0].in_order[-1:], mean_field.NUM_SWEEPS + 1, axis=0)
    restless = still + np.arange(mean_field.NUM_SWEEPS + 1)[:, None] % 2
    for history, verdict in ((still, "agrees"), (restless, "differs")):
        altered = [replace(one, whole_paths=history, in_order=history) for one in games]
        assert [finding.verdict for finding in page_of("mean-field", altered).findings[:2]] == [verdict, verdict]


def test_the_printed_formula_agrees_only_where_it_certifies(games: list[Sweeps]) -> None:
    claim = "Algorithm 1 converges to the fixed point"
    assert verdicts(page_of("mean-field", games))[claim] == "differs"
    certified = [replace(one, printed=one.found) for one in games]
    assert verdicts(page_of("mean-field", certified))[claim] == "agrees"


def test_the_figure_shows_the_changes(games: list[Sweeps]) -> None:
    figure = page_of("mean-field", games).drawings[1].draw()
    shown = {line.get_label(): np.asarray(line.get_ydata()) for line in figure.axes[0].get_lines()}
    for name in ("whole paths", "in order", "as printed"):
        each = [mean_field.changes(one.histories[name])[:40] for one in games]
        np.testing.assert_allclose(shown[name], np.mean(each, axis=0).clip(1e-6))


def test_a_printed_iteration_that_stops_early_stands_still(games: list[Sweeps]) -> None:
    short = replace(games[0].printed, history=games[0].printed.history[:3])
    history = replace(games[0], printed=short).histories["as printed"]
    assert len(history) == mean_field.NUM_PRINTED_SWEEPS + 1
    assert np.abs(np.diff(history[2:], axis=0)).max() == 0.0


def test_the_page_has_a_record_for_every_certified_game() -> None:
    page = solved_page("mean-field")
    assert [row["reward"] for row in page.records[::3]] == ["fixed", "constant 5", "constant 10", "constant 20"]
    assert [row["seed"] for row in page.records] == [0, 1, 2] * 4
    assert all(row["exploitability"] <= 1e-3 for row in page.records)
    assert len(page.tables[0].rows) == 4
