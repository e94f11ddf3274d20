"""A server with a wrong prior: what it costs, and that it recovers from what clients answer alone."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from fedpcs.deploy.announcer import Announcer
from fedpcs.deploy.beliefs import prior_of
from fedpcs.deploy.node_settings import conditions_of
from fedpcs.engines.flower.client_books import ClientBooks
from fedpcs.engines.flower.preferences import Preferences
from fedpcs.errors import QuorumNotReached
from fedpcs.game import announce, best_response, individuals
from fedpcs.game.inference import inferred_population
from fedpcs.game.payoffs import server_cost
from fedpcs.privacy.budget import Rho
from fedpcs.trial.assemble import sampler_of
from fedpcs.trial.config import make_run_config
from fedpcs.trial.schedule import solve_for

N, ROUNDS = 30, 6
EVERYONE = np.ones(N, dtype=bool)
WRONG = {
    "low": {"privacy_aversion": [0.9, 0.8], "initial_budget": [1.0, 2.0], "weight": [1.0, 1.0]},
    "high": {"privacy_aversion": [0.1, 0.2], "initial_budget": [11.0, 10.0], "weight": [1.0, 1.0]},
}


@dataclass(frozen=True)
class Plan:
    """As much of a server's plan as an announcer looks at, or changes."""

    num_rounds: int
    schedule: object = None


@pytest.fixture
def clients(tmp_path):
    rng = np.random.default_rng(3)
    numbers = zip(rng.uniform(0.2, 0.9, N), rng.uniform(3.0, 8.0, N), strict=True)
    law = conditions_of(config_with(None)), Rho.of(100.0)
    return [ClientBooks(tmp_path / str(k), Preferences(*pair), *law) for k, pair in enumerate(numbers)]


def config_with(prior, **federation):
    told = {} if prior is None else {"prior": prior}
    return make_run_config(
        {
            "rounds": ROUNDS,
            "data": {"num_clients": N},
            "game": {"reward": 6.0, "budget_unit": 0.01},
            "sampling": {"samplers": ["fedpcs"]},
            "federation": {**told, **federation},
        }
    )


def announcer_of(config, clients, silent=()):
    def ask(announcement, wanted):
        asked.append((announcement, wanted.tolist()))
        return {int(k): clients[k].agree(announcement) for k in wanted if k not in silent}

    asked = []
    found = Announcer(config, sampler_of(config, "fedpcs"), "run", N, ask)
    return found, asked


def truth(config, clients):
    crowd = individuals(
        [one.preferences.privacy_aversion for one in clients], [one.preferences.initial_budget for one in clients]
    )
    return solve_for(config, sampler_of(config, "fedpcs"), crowd, ROUNDS)


def cost(found, schedule):
    """What the server expects to pay in all, under the budgets clients really spend."""
    return float(server_cost(schedule.budget / 0.01, schedule.reward, found.game).sum())


def at_round(now):
    return SimpleNamespace(next_round=now, has_left=np.zeros(N, dtype=bool))


@pytest.mark.parametrize("side", ["low", "high"])
def test_a_wrong_prior_misleads_clients_and_announcing_anew_puts_it_right(clients, side):
    config = config_with(WRONG[side], drift_tolerance=0.003)
    known = truth(config, clients)
    announcer, asked = announcer_of(config, clients)
    announcer.start()
    misled = announcer.schedule
    strayed = np.abs(announcer._drift(0, EVERYONE)).max()
    assert strayed > 0.15
    _, told = announcer(Plan(num_rounds=ROUNDS), at_round(0), EVERYONE)
    assert told["announced_anew"] == len(asked) - 1 <= 3
    assert told["greatest_drift"] == np.abs(announcer._drift(0, EVERYONE)).max() <= 0.003
    right = announcer.schedule
    np.testing.assert_allclose(right.budget / 0.01, known.profile.budget, rtol=0.02)
    assert cost(known, right) == pytest.approx(float(known.cost.sum()), rel=0.005)
    # Clients move towards the mean they are told of: too low a one costs the server, too high a one clients.
    assert (cost(known, misled) > 1.01 * cost(known, right)) == (side == "low")
    assert (cost(known, misled) < 0.99 * cost(known, right)) == (side == "high")


def test_a_prior_that_is_right_is_left_alone(clients):
    numbers = [one.preferences for one in clients]
    prior = {
        "privacy_aversion": [one.privacy_aversion for one in numbers],
        "initial_budget": [one.initial_budget for one in numbers],
        "weight": [1.0] * N,
    }
    announcer, asked = announcer_of(config_with(prior), clients)
    announcer.start()
    for now in range(ROUNDS):
        _, told = announcer(Plan(num_rounds=ROUNDS), at_round(now), EVERYONE)
        assert abs(told["budget_drift"]) < 1e-3
        assert "announced_anew" not in told
    assert len(asked) == 1


def test_drift_is_reported_and_let_be_where_that_is_wanted(clients):
    announcer, asked = announcer_of(config_with(WRONG["high"], reannounce="never"), clients)
    announcer.start()
    _, told = announcer(Plan(num_rounds=ROUNDS), at_round(0), EVERYONE)
    assert told["budget_drift"] < -0.1
    assert len(asked) == 1


def test_a_correction_in_mid_run_keeps_what_was_spent_and_changes_what_comes(clients):
    announcer, asked = announcer_of(config_with(WRONG["high"]), clients)
    announcer.start()
    before = announcer.schedule
    announcer(Plan(num_rounds=ROUNDS), at_round(2), EVERYONE)
    after = announcer.schedule
    assert asked[-1][0].first_round == 2
    np.testing.assert_array_equal(before.budget[:3], after.budget[:3])
    assert (before.budget[3:] != after.budget[3:]).any()
    assert np.abs(announcer._drift(2, EVERYONE)).max() < 0.01


def test_one_who_was_silent_is_asked_again_and_takes_part_from_then_on(clients):
    silent = {4, 5}
    announcer, asked = announcer_of(config_with(None), clients, silent)
    announcer.start()
    assert np.flatnonzero(~announcer.has_answered).tolist() == [4, 5]
    silent.remove(4)
    announcer.ask_missing(EVERYONE)
    assert asked[-1][1] == [4, 5]
    assert np.flatnonzero(~announcer.has_answered).tolist() == [5]
    assert announcer.schedule.budget[0, 4] == pytest.approx(0.01 * clients[4].preferences.initial_budget, rel=1e-6)


def test_a_federation_in_which_nobody_answers_is_refused(clients):
    announcer, _ = announcer_of(config_with(None), clients, set(range(N)))
    with pytest.raises(QuorumNotReached, match="no client answered"):
        announcer.start()


def test_what_a_checkpoint_holds_is_all_there_is_to_know(clients):
    config = config_with(WRONG["high"])
    announcer, _ = announcer_of(config, clients)
    announcer.start()
    announcer(Plan(num_rounds=ROUNDS), at_round(1), EVERYONE)
    other, asked = announcer_of(config, clients)
    other.recall(Plan(num_rounds=ROUNDS), announcer.memory())
    for name in ("reward", "budget", "pay", "mean_budget"):
        np.testing.assert_array_equal(getattr(other.schedule, name), getattr(announcer.schedule, name))
    assert other._announced == announcer._announced
    _, told = other(Plan(num_rounds=ROUNDS), at_round(2), EVERYONE)
    assert "announced_anew" not in told
    assert asked == []
    assert not other.has_answered.any()  # a client may have heard an announcement that no checkpoint knows of
    other.ask_missing(EVERYONE)
    assert asked[-1][0] == announcer._announced  # the last one, and not the first
    np.testing.assert_array_equal(other.schedule.budget, announcer.schedule.budget)


def test_rewards_are_for_what_is_spent(clients):
    announcer, _ = announcer_of(config_with(None), clients)
    announcer.start()
    found = announcer.schedule
    np.testing.assert_allclose(found.pay, found.reward[:, np.newaxis] * found.budget / 0.01)


def test_the_default_prior_is_the_papers_population():
    prior = prior_of(config_with(None), N)
    assert prior.mean(prior.privacy_aversion) == pytest.approx(0.5)
    assert prior.mean(prior.initial_budget) == pytest.approx(6.005)
    assert prior.num_clients == N


def test_inferred_clients_would_answer_as_the_real_ones_did():
    rng = np.random.default_rng(0)
    terms = announce([8.0, 6.0, 4.0, 2.0], [6.0, 6.3, 6.1, 5.8], 20, 100)
    aversion, first = rng.uniform(0.02, 0.98, 12), rng.uniform(1.0, 11.0, 12)
    answers = np.array([best_response(terms, *pair).budget for pair in zip(aversion, first, strict=True)]).T
    believed = inferred_population(terms, answers)
    np.testing.assert_array_equal(believed.initial_budget, first)
    again = np.array(
        [
            best_response(terms, *pair).budget
            for pair in zip(believed.privacy_aversion, believed.initial_budget, strict=True)
        ]
    ).T
    np.testing.assert_allclose(again, answers, atol=0.05)


def test_what_was_promised_is_not_taken_back_when_terms_are_announced_anew(clients):
    """Solved afresh, a committed leader would pay nobody: budgets that agree can no longer move."""
    config = config_with(None)
    game = config.game.model_copy(update={"reward": "commitment"})
    config = config.model_copy(update={"game": game})
    found, _ = announcer_of(config, clients)
    found.start()
    promised = found.schedule.reward.copy()
    assert promised[1:].max() > 0.0
    here = EVERYONE.copy()
    here[:10] = False  # they leave, and the mean strays
    state = SimpleNamespace(next_round=2, has_left=~here)
    _, told = found(Plan(ROUNDS), state, EVERYONE)
    after = found.schedule.reward
    assert "announced_anew" in told or "unsolved" in told
    assert (after >= promised - 1e-12).all()
    np.testing.assert_array_equal(after[:3], promised[:3])
