"""`solve` converges, certifies, or raises with what it has."""

import numpy as np
import pytest

from fedpcs.errors import InvalidInput, NotConverged
from fedpcs.game import best_response, certify, make_game, mean_field, solve, uniform


def test_a_solved_game_carries_its_proof():
    found = solve(make_game(uniform(50, 0), last_round=10), 5.0)
    assert found.status == "converged"
    assert found.certificate.relative <= 1e-4
    assert found.cost.shape == (11,)
    assert (found.cost > 0).all()


def test_each_client_reaches_its_equilibrium_path_alone_from_what_is_announced():
    """The server's profile and each client's own answer are the same, computed apart."""
    found = solve(make_game(uniform(30, 4), last_round=12), 6.0, tolerance=1e-6)
    crowd = found.game.population
    for i in range(30):
        answer = best_response(found.terms, float(crowd.privacy_aversion[i]), float(crowd.initial_budget[i]))
        assert answer.budget == pytest.approx(found.profile.budget[:, i], abs=0.03)


def test_the_printed_formula_raises_and_carries_the_result():
    with pytest.raises(NotConverged, match="relative exploitability") as caught:
        solve(make_game(), 10.0, response="paper")
    found = caught.value.solution
    assert found.status == "not-converged"
    assert found.certificate.relative > 0.2


def test_a_settled_mean_field_that_does_not_certify_is_not_an_equilibrium(monkeypatch):
    """Costate fields can stand still where clients still gain: standing still is not enough."""
    game = make_game(uniform(40, 0), last_round=6)
    lazy = mean_field.settle(game, np.zeros(7))

    def stand_still(*_args, **_kwargs):
        return lazy

    monkeypatch.setattr(mean_field, "settle", stand_still)
    found = solve(game, 12.0, response="costate", throw=False)
    assert found.status == "not-an-equilibrium"


def test_a_result_says_whether_sweeps_came_to_rest_or_a_search_kept_the_best():
    game = make_game(uniform(36, 7), last_round=40, cohort_size=25)
    rested = solve(make_game(uniform(50, 0), last_round=10), 5.0)
    assert (rested.settled_by, rested.residual <= 1e-3) == ("sweeps", True)
    for level in (0.5, 0.8, 1.0, 1.5, 2.0):
        found = solve(game, level * np.linspace(1.0, 0.2, 41), throw=False)
        expected = (
            {True: "sweeps", False: "search"}[found.residual <= 1e-3] if found.status == "converged" else "nothing"
        )
        assert found.settled_by == expected
    assert solve(make_game(), 10.0, response="paper", throw=False).settled_by == "nothing"


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), None, "tight", True])
def test_bad_tolerances_are_refused(bad):
    with pytest.raises(InvalidInput, match="tolerance"):
        solve(make_game(uniform(5, 0), last_round=2), 1.0, tolerance=bad)


@pytest.mark.parametrize("bad", ["free", "", [1.0], float("nan"), -1.0, 1e9])
def test_bad_rewards_are_refused(bad):
    with pytest.raises(InvalidInput, match="reward"):
        solve(make_game(uniform(5, 0), last_round=2), bad)


def test_bad_responses_are_refused():
    with pytest.raises(InvalidInput, match="response"):
        solve(make_game(uniform(5, 0), last_round=2), 1.0, response="greedy")


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("clients", [1, 2, 3])
def test_the_smallest_games_solve(rounds, clients):
    found = solve(make_game(uniform(clients, 0), last_round=rounds, cohort_size=1), 3.0)
    assert found.status == "converged"


def test_drawing_everyone_solves():
    assert solve(make_game(uniform(20, 0), last_round=5, cohort_size=20), 4.0).status == "converged"


def test_a_tight_tolerance_is_met_by_a_finer_table():
    game = make_game()
    assert (
        certify(mean_field.settle(game, np.full(31, 5.0), tolerance=2e-6).profile, np.full(31, 5.0), game).relative
        > 2e-6
    )
    found = solve(game, 5.0, tolerance=2e-6)
    assert found.certificate.relative <= 2e-6
