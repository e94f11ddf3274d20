"""The committed path is the leader's: no constant, per-round or neighbouring path costs the server less."""

from dataclasses import replace

import numpy as np
import pytest
from zoo import zoo

from fedpcs.game import make_game, mean_field, uniform
from fedpcs.game.commitment import commit, knots
from fedpcs.game.payoffs import server_cost
from fedpcs.game.per_round import per_round

SMALL = [
    make_game(uniform(30, 1), last_round=8, cohort_size=6),
    make_game(uniform(40, 3, (0.5, 50.0)), last_round=5, cohort_size=4, budget_bounds=(0.5, 50.0)),
]
# The best path known pays 9 in round 1 and 2 half way, and costs 3.6 % less than the best constant.
FRONT_LOADED = zoo()[9]


def total_cost(game, path):
    """Of the equilibrium that would be played: settled cold, on the full table."""
    return server_cost(mean_field.settle(game, path).profile.budget, path, game).sum()


def best_constant(game, count):
    levels = np.append(0.0, np.geomspace(1e-3, 1.0, count - 1) * game.reward_max)
    return min(total_cost(game, np.full(game.last_round + 1, level)) for level in levels)


def neighbours(path, count, reward_max, seed=0):
    """Paths near `path`, in turn: at another level, tilted, with a hat put on or cut out, with 10 % noise."""
    rng = np.random.default_rng(seed)
    rounds = np.arange(path.size)
    tilt = np.linspace(1.0, -1.0, path.size)
    for index in range(count):
        hat = np.maximum(0.0, 1.0 - np.abs(rounds - rng.choice(rounds)) / rng.integers(1, path.size // 2 + 2))
        share = rng.choice([-0.2, -0.1, -0.05, 0.05, 0.1, 0.2])
        kinds = (
            path * rng.choice([0.8, 0.9, 0.95, 1.05, 1.1, 1.25]),
            path * (1.0 + share * tilt),
            path + share * path.mean() * hat,
            path * rng.normal(1.0, 0.1, path.size),
        )
        yield kinds[index % 4].clip(0.0, reward_max)


def assert_leads(game, *, num_constants, num_neighbours):
    path = commit(game).path
    cost = total_cost(game, path)
    assert cost <= best_constant(game, num_constants)
    assert cost <= total_cost(game, per_round(game).path)
    near = neighbours(path, num_neighbours, game.reward_max)
    assert min(total_cost(game, other) for other in near) >= 0.995 * cost


@pytest.mark.slow
def test_paying_early_beats_any_constant():
    cost = total_cost(FRONT_LOADED, commit(FRONT_LOADED).path)
    assert cost <= 0.97 * best_constant(FRONT_LOADED, 25)


@pytest.mark.slow
@pytest.mark.parametrize("index", range(30))
def test_nothing_simpler_or_nearby_is_cheaper_in_thirty_games(index):
    """`commitment` costs no more than 200 constants or `per-round`, and neighbours gain at most 0.5 %."""
    assert_leads(zoo()[index], num_constants=200, num_neighbours=60)


@pytest.mark.slow
def test_a_committed_path_is_lawful_and_repeatable():
    game = SMALL[0]
    plan = commit(game)
    assert plan.policy == "commitment"
    assert plan.path.shape == (game.last_round + 1,)
    assert plan.path.min() >= 0.0
    assert plan.path.max() <= game.reward_max
    assert plan.path[0] == 0.0
    assert (plan.path == commit(game).path).all()


def test_the_first_reward_buys_nothing():
    """Why R_0 = 0: clients answer a path the same whatever it pays in round 0."""
    path = np.full(9, 6.0)
    unpaid = np.append(0.0, path[1:])
    answers = [mean_field.settle(SMALL[0], rewards).profile.budget for rewards in (path, unpaid)]
    assert answers[0] == pytest.approx(answers[1], abs=1e-9)


def test_where_accuracy_is_worthless_nothing_is_paid():
    game = make_game(uniform(20, 4), last_round=5, cohort_size=4, accuracy_scale=1e-6)
    assert commit(game).path == pytest.approx(np.zeros(6), abs=1e-9)


def test_a_low_ceiling_on_rewards_is_kept_to():
    game = make_game(uniform(20, 5), last_round=5, cohort_size=4, accuracy_scale=1e5, reward_max=2.0)
    path = commit(game).path
    assert path.max() == pytest.approx(2.0)


@pytest.mark.slow
def test_a_ceiling_far_away_does_not_matter():
    """The scan for a level spans reward_max; a ceiling nobody would pay must not blind it."""
    base = SMALL[0]
    other = replace(base, reward_max=1e5)
    one, another = (total_cost(base, commit(game).path) for game in (base, other))
    assert one == pytest.approx(another, rel=0.01)


@pytest.mark.slow
def test_many_types_are_planned_for_by_a_histogram():
    game = make_game(uniform(3_000, 6), last_round=4, cohort_size=600)
    assert total_cost(game, commit(game).path) <= best_constant(game, 12)


@pytest.mark.parametrize("last_round", [1, 2, 3, 5, 12, 30, 100])
def test_knots_include_both_ends(last_round):
    at = knots(last_round)
    assert at[0] == 1
    assert at[-1] == last_round
    assert (np.diff(at) > 0).all()
