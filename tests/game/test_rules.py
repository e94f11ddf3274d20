"""Games and announcements refuse what cannot be played."""

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.game import announce, cohort_from_ratio, individuals, make_game, uniform


def test_the_default_game_is_the_documented_one():
    game = make_game()
    assert (game.num_clients, game.last_round, game.budget_bounds) == (100, 30, (0.01, 12.0))
    assert (game.accuracy_priority, game.accuracy_scale, game.reward_max) == (0.5, 10_000.0, 100.0)
    assert (game.cohort_size == 20.0).all()


@pytest.mark.parametrize(("ratio", "clients", "expected"), [(0.2, 100, 20), (0.05, 10, 1), (1.0, 7, 7), (0.001, 10, 1)])
def test_a_ratio_is_rounded_once_and_never_to_nobody(ratio, clients, expected):
    assert cohort_from_ratio(ratio, clients) == expected


@pytest.mark.parametrize("bad", [0, -0.1, 1.1, float("nan"), None, "half", True])
def test_bad_ratios_are_refused(bad):
    with pytest.raises(InvalidInput, match="sampling_ratio"):
        cohort_from_ratio(bad, 10)


BAD = {
    "last_round": [0, -1, 1.5, None, True, float("nan")],
    "cohort_size": [0, 11, 2.5, float("nan"), [1.0] * 3, [1.0, 2.0, 3.0, 4.0, 5.0, 60.0]],
    "budget_bounds": [(2.0, 1.0), (0.0, 1.0), (float("nan"), 1.0)],
    "accuracy_priority": [0.0, 1.0, -1.0, float("nan"), "x", True],
    "accuracy_scale": [0.0, -1.0, float("nan"), float("inf"), None],
    "reward_max": [0.0, -1.0, float("nan"), None],
    "selection": ["greedy", None, 3],
}


@pytest.mark.parametrize(("name", "bad"), [(name, bad) for name, values in BAD.items() for bad in values])
def test_bad_rules_are_refused(name, bad):
    rules = {"last_round": 5, "cohort_size": 3, **{name: bad}}
    with pytest.raises(InvalidInput, match=name):
        make_game(uniform(10, 0), **rules)


def test_a_client_that_starts_outside_the_bounds_is_refused():
    with pytest.raises(InvalidInput, match=r"initial_budget\[1\]"):
        make_game(individuals([0.5, 0.5], [1.0, 20.0]), cohort_size=1)


@pytest.mark.parametrize("bad", [[1.0, -1.0], [1.0], [1.0, float("nan")], [1.0, 101.0], float("nan"), -3.0, 101.0])
def test_bad_rewards_are_refused(bad):
    with pytest.raises(InvalidInput, match="reward"):
        make_game(uniform(10, 0), last_round=1).reward_path(bad)


def test_a_number_holds_for_every_round():
    assert make_game(uniform(10, 0), last_round=2).reward_path(3).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    "change",
    [
        {"reward": [1.0, np.nan]},
        {"reward": [1.0, -1.0]},
        {"mean_budget": [1.0, 0.0]},
        {"mean_budget": [1.0]},
        {"cohort_size": 0},
        {"cohort_size": 11},
        {"num_clients": 0},
        {"selection": "x"},
    ],
)
def test_bad_announcements_are_refused(change):
    good = {"reward": [1.0, 1.0], "mean_budget": [1.0, 1.0], "cohort_size": 2, "num_clients": 10}
    with pytest.raises(InvalidInput):
        announce(**{**good, **change})
