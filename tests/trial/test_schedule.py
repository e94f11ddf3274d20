"""From the game to what clients spend and are owed: within bounds, in the right units, as each behaviour says."""

import numpy as np
import pytest
from tiny_runs import tiny

from fedpcs.errors import InvalidInput
from fedpcs.game import announce, best_response, uniform
from fedpcs.sampling import SAMPLERS, make_sampler
from fedpcs.trial.schedule import is_played, make_schedule, replanned, selection_of

UNIT, BOUNDS = 0.01, (0.5, 8.0)


def config(**game):
    return tiny(
        rounds=4,
        data={"num_clients": 12},
        game={"budget_unit": UNIT, "budget_bounds": list(BOUNDS), "reward": 12.0, "population_seed": 3, **game},
    )


@pytest.mark.parametrize("reward", [12.0, [3.0, 20.0, 0.0, 7.0], "commitment", "per-round"])
@pytest.mark.parametrize("name", ["fedpcs", "random"])
def test_budgets_are_units_within_bounds_and_pay_is_units_times_reward(name, reward):
    found = make_schedule(config(reward=reward), make_sampler(name))
    assert found.budget.shape == found.pay.shape == (4, 12)
    assert (found.budget >= UNIT * BOUNDS[0] * (1 - 1e-12)).all()
    assert (found.budget <= UNIT * BOUNDS[1] * (1 + 1e-12)).all()
    assert found.pay == pytest.approx(found.budget / UNIT * found.reward[:, None], rel=1e-12)
    assert found.mean_budget == pytest.approx(found.budget.mean(axis=1), abs=UNIT * 1e-3)
    assert found.standing == "converged"
    assert 0.0 <= found.exploitability < 0.01
    if isinstance(reward, float | list):
        assert found.reward == pytest.approx(np.broadcast_to(reward, 4))


@pytest.mark.parametrize("name", ["fedpcs", "random"])
def test_rational_clients_play_their_best_response_to_what_was_announced(name):
    sampler = make_sampler(name)
    found = make_schedule(config(), sampler)
    crowd = uniform(12, 3, BOUNDS)
    terms = announce(found.reward, found.mean_budget / UNIT, 6, 12, selection_of(config(), sampler))
    for client in (0, 5, 11):
        alone = best_response(terms, float(crowd.privacy_aversion[client]), float(crowd.initial_budget[client]))
        assert found.budget[:, client] / UNIT == pytest.approx(alone.budget, abs=0.01)


def test_the_sampler_changes_what_rational_clients_do():
    aware, blind = (make_schedule(config(), make_sampler(name)) for name in ("fedpcs", "random"))
    assert np.abs(aware.budget - blind.budget).max() > 0.01 * UNIT


def test_static_clients_keep_what_they_began_with():
    found = make_schedule(config(behaviour="static"), make_sampler("fedpcs"))
    expected = UNIT * uniform(12, 3, BOUNDS).initial_budget
    assert found.budget == pytest.approx(np.tile(expected, (4, 1)))
    assert found.pay == pytest.approx(12.0 * found.budget / UNIT)


def test_raised_clients_have_the_equilibriums_mean_and_keep_their_order():
    played, raised = (make_schedule(config(behaviour=name), make_sampler("fedpcs")) for name in ("rational", "raised"))
    first = uniform(12, 3, BOUNDS).initial_budget
    assert raised.budget[0] == pytest.approx(UNIT * first)
    assert raised.budget.mean(axis=1) == pytest.approx(played.budget.mean(axis=1))
    inside = (raised.budget < UNIT * BOUNDS[1] * (1 - 1e-9)) & (raised.budget > UNIT * BOUNDS[0] * (1 + 1e-9))
    assert not inside.all()  # somebody is at a bound, and the others make up for it
    ratio = raised.budget / (UNIT * first)
    for now in range(4):
        free = ratio[now][inside[now]]
        assert free == pytest.approx(np.full(free.size, free[0]))


def test_clients_can_be_made_to_believe_in_another_draw():
    told = make_schedule(config(selection="budget-aware"), make_sampler("random"))
    assert np.array_equal(told.budget, make_schedule(config(), make_sampler("fedpcs")).budget)
    assert not np.array_equal(told.budget, make_schedule(config(), make_sampler("random")).budget)


def test_selfish_clients_spend_the_least():
    found = make_schedule(config(behaviour="selfish"), make_sampler("random"))
    assert found.budget == pytest.approx(np.full((4, 12), UNIT * BOUNDS[0]))
    assert found.pay == pytest.approx(np.full((4, 12), 12.0 * BOUNDS[0]))


def test_nobody_plays_where_nothing_depends_on_budgets():
    nothing = config().model_copy(update={"privacy": tiny(privacy={"mode": "none"}).privacy})
    found = make_schedule(nothing, make_sampler("random"))
    assert found.standing == "not-played"
    assert found.exploitability is None
    assert not found.pay.any()
    assert (found.budget == 1.0).all()
    assert is_played(nothing, make_sampler("fedpcs"))


@pytest.mark.parametrize("name", SAMPLERS)
def test_only_samplers_that_read_budgets_are_budget_aware(name):
    assert selection_of(config(), make_sampler(name)) == ("budget-aware" if name == "fedpcs" else "budget-blind")


@pytest.mark.parametrize("reward", [[1.0, 2.0, 3.0], [9.0, 1.0, 2.0, 3.0, 4.0]], ids=["short", "long"])
def test_a_path_of_rewards_must_be_as_long_as_the_run(reward):
    with pytest.raises((InvalidInput, ValueError), match="reward"):
        make_schedule(config(reward=reward), make_sampler("random"))


def test_a_new_plan_leaves_the_past_and_the_absent_alone():
    chosen, sampler = config(), make_sampler("fedpcs")
    before = make_schedule(chosen, sampler)
    here = np.arange(12) % 3 > 0
    after = replanned(chosen, sampler, before, 2, here)
    for name in ("budget", "pay", "reward", "mean_budget"):
        assert getattr(after, name)[:2].tolist() == getattr(before, name)[:2].tolist()
    assert after.budget[2:, ~here].tolist() == before.budget[2:, ~here].tolist()
    assert after.budget[2, here] == pytest.approx(before.budget[2, here])
    assert after.mean_budget[2:] == pytest.approx(after.budget[2:, here].mean(axis=1), abs=UNIT * 1e-3)
    assert after.pay[2:, here] == pytest.approx(after.budget[2:, here] / UNIT * after.reward[2:, None])
    assert before.budget.shape == (4, 12)
