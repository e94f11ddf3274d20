"""Games behind the exhibits: solved once, certified, and never hidden where they do not certify."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from small_games import GAMES, page_of, solved_page

from fedpcs.errors import InvalidInput
from fedpcs.exhibits import games
from fedpcs.exhibits.exhibit import Request, declaration
from fedpcs.exhibits.games import FromGames, Games, GameSpec
from fedpcs.exhibits.registry import EXHIBITS, check_dataset, listed
from fedpcs.game import make_game, solve, uniform
from fedpcs.game.equilibrium import Equilibrium

GAME_EXHIBITS = [name for name, one in EXHIBITS.items() if one.made_of == "games"]


def test_a_spec_is_the_game_solved_directly() -> None:
    found = GAMES.solve(GameSpec(1, "budget-blind", 0.5))
    twin = solve(make_game(uniform(12, seed=1), last_round=5, cohort_size=6, selection="budget-blind"), 20.0)
    np.testing.assert_array_equal(found.profile.budget, twin.profile.budget)
    assert found.game.selection == "budget-blind"
    assert found.game.cohort_size.tolist() == [6.0] * 6


def test_a_game_is_solved_and_told_once() -> None:
    told: list[str] = []
    mine = Games(GAMES.base, say=told.append)
    first = mine.solve(GameSpec(0))
    assert mine.solve(GameSpec(0)) is first
    assert mine.solve(GameSpec(0, last_round=5)) is first
    for _ in range(2):
        mine.solve(GameSpec(2, "budget-blind", reward=(20.0,) * 6))
        mine.solve(GameSpec(2, reward=10.0, response="paper"))
    assert told == [
        "solving the game: FedPCS, τ = 0.2, exact responses, population 0 …",
        "solving the game: budget-blind, τ = 0.2, exact responses, population 2 …",
        "solving the game: FedPCS, τ = 0.2, paper responses, population 2 …",
    ]


@dataclass(frozen=True)
class Solved:
    seed: int
    equilibria: dict[str, Equilibrium]


def test_a_population_counts_only_if_all_its_games_certify_and_the_page_says_which_did_not() -> None:
    good, bad = GAMES.solve(GameSpec(0)), GAMES.solve(GameSpec(0, reward=10.0, response="paper"))
    assert bad.status != "converged"

    def with_one_bad(_: Games, seed: int, profile: str) -> Solved:
        return Solved(seed, {"FedPCS": good, "other": bad if seed == 1 else good})

    gathered = FromGames(solve=with_one_bad).gather(Request("welfare"), GAMES)
    (finding,) = gathered.frame.findings
    assert (len(gathered.results), finding.verdict) == (2, "cannot say")
    assert "1 of 3" in finding.found
    assert "seed 1" in finding.found
    assert bad.status in finding.found
    gathered = FromGames(solve=lambda *_: Solved(0, {"FedPCS": good})).gather(Request("welfare"), GAMES)
    assert (len(gathered.results), gathered.frame.findings) == (3, ())


@pytest.mark.parametrize("name", GAME_EXHIBITS)
def test_without_a_certified_population_nothing_is_claimed(name: str) -> None:
    page = page_of(name, None)
    assert page.headline == "No game certified, so nothing can be said."
    assert page.findings == page.tables == page.drawings == page.records == ()


@pytest.mark.parametrize("name", GAME_EXHIBITS)
def test_every_page_of_games_says_what_it_is_made_of_and_how_to_make_it_again(name: str) -> None:
    page = solved_page(name)
    assert page.commands[0][0] == f"fedpcs reproduce {name} --profile quick"
    assert page.facts.startswith("12 clients, 6 rounds, rewards given, 3 populations")
    assert page.shrunk[0].startswith("3 populations")
    assert all(key.startswith("certificate") for key in page.provenance)
    assert page.provenance
    assert page.findings
    assert page.tables
    for drawing in page.drawings:
        assert drawing.draw().axes


def test_certificates_name_every_equilibrium_s_own_gain() -> None:
    found = GAMES.solve(GameSpec(0))
    worse = replace(found, certificate=replace(found.certificate, relative=0.0125))
    (line,) = games.certificates([Solved(0, {"FedPCS": found}), Solved(1, {"FedPCS": worse})]).values()
    assert line.endswith(("nothing, 1.2\N{NO-BREAK SPACE}%", "nothing, 1.3\N{NO-BREAK SPACE}%"))


def test_unknown_names_and_data_sets_are_refused_and_every_listed_exhibit_is_declared() -> None:
    with pytest.raises(InvalidInput, match="accuracy-table"):
        listed("acuracy-table")
    with pytest.raises(InvalidInput, match="trade-off is shown on fashion-mnist alone, got 'svhn'"):
        check_dataset("trade-off", "svhn")
    titles = {declaration(name).title for name in EXHIBITS}
    assert len(titles) == len(EXHIBITS) == 15
