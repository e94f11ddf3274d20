"""Games behind the exhibits: solved once, certified, and never hidden where they do not certify."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from small_games import GAMES

from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits.registry import EXHIBITS, Wanted, exhibit
from fedpcs.exhibits.solved_games import Case, Games
from fedpcs.game import make_game, solve, uniform
from fedpcs.studies.paired import PairedDifference


def test_a_case_is_the_game_solved_directly() -> None:
    found = GAMES.solve(Case(1, "budget-blind", 0.5))
    game = make_game(uniform(12, seed=1), last_round=5, cohort_size=6, selection="budget-blind")
    twin = solve(game, 20.0)
    np.testing.assert_array_equal(found.profile.budget, twin.profile.budget)
    assert found.game.selection == "budget-blind"
    assert found.game.cohort_size.tolist() == [6.0] * 6


def test_a_game_is_solved_once() -> None:
    games = Games(GAMES.base)
    first = games.solve(Case(0))
    assert games.solve(Case(0)) is first
    assert games.solve(Case(0, last_round=5)) is first
    assert games.solve(Case(0, reward=(20.0,) * 6)) is not first


def test_what_is_being_solved_is_told_once() -> None:
    told: list[str] = []
    games = Games(GAMES.base, say=told.append)
    for _ in range(2):
        games.solve(Case(2, "budget-blind", reward=(20.0,) * 6))
        games.solve(Case(2, reward=10.0, response="paper"))
        games.solve(Case(2, last_round=3))
    assert told == [
        "solving the game: budget-blind, τ = 0.2, population 2, rewards given …",
        "solving the game: FedPCS, τ = 0.2, population 2, rewards 10.0, paper responses …",
        "solving the game: FedPCS, τ = 0.2, population 2, T = 3 …",
    ]


@pytest.mark.parametrize("name", [name for name, one in EXHIBITS.items() if not one.reads_data])
def test_exhibits_of_the_game_hand_on_what_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    module = import_module(f"fedpcs.exhibits.{name.replace('-', '_')}")
    monkeypatch.setattr(module, "make_page", lambda profile, games: games.say(f"{name}, {profile}"))
    exhibit(name).make(Wanted("fashion-mnist", "quick", None, lambda cells: [], told.append))
    assert told == [f"{name}, quick"]


def test_a_seed_counts_only_if_all_its_games_certify_and_the_page_says_which_did_not() -> None:
    good, bad = GAMES.solve(Case(0)), GAMES.solve(Case(0, reward=10.0, response="paper"))
    assert bad.status != "converged"
    seeds, findings = shared.certified_seeds("quick", lambda seed: [good, bad] if seed == 1 else [good])
    assert seeds == (0, 2)
    assert [finding.verdict for finding in findings] == ["cannot say"]
    assert "1 of 3 populations" in findings[0].found
    assert "seed 1" in findings[0].found
    assert bad.status in findings[0].found
    assert shared.certified_seeds("quick", lambda _: [good]) == ((0, 1, 2), ())


def test_certificates_name_every_equilibrium_s_own_gain() -> None:
    found = GAMES.solve(Case(0))
    worse = replace(found, certificate=replace(found.certificate, relative=0.0125))
    (line,) = shared.certificates({"FedPCS": [found, worse]}).values()
    assert line.endswith("nothing, 1.2\N{NO-BREAK SPACE}%") or line.endswith("nothing, 1.3\N{NO-BREAK SPACE}%")


def test_clients_that_do_not_play_stay_where_they_are() -> None:
    found = GAMES.solve(Case(0))
    static, selfish = shared.behaved(found, "static"), shared.behaved(found, "selfish")
    assert static.shape == selfish.shape == (6, 12)
    np.testing.assert_array_equal(static, np.tile(found.game.population.initial_budget, (6, 1)))
    assert set(selfish.ravel()) == {0.01}


def test_points_are_hundredths_and_one_pair_has_no_interval() -> None:
    words = shared.points(PairedDifference(0.1, 0.05, 0.15, 3)).replace("\N{NO-BREAK SPACE}", " ")
    assert words == "+10.0 points (95 % interval +5.0 to +15.0, 3 pairs)"
    assert shared.points(PairedDifference(-0.1, -np.inf, np.inf, 1)) == "−10.0 points (one pair, no interval)"


def test_only_the_quick_profile_is_shrunk() -> None:
    assert shared.shrunk("paper") == ()
    assert "10" in shared.shrunk("quick")[0]
