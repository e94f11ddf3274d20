"""The server's side of a round against arithmetic done by hand on clients one can count on one's fingers."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pytest
import threadpoolctl
from scipy.optimize import brentq

from fedpcs.errors import InvalidInput, QuorumNotReached
from fedpcs.game.schedule import Schedule
from fedpcs.learning.admission import Admitted, Refusal
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.hearing import without_outliers
from fedpcs.learning.layout import Layout
from fedpcs.learning.protocol import ClientFailure, ClientReport
from fedpcs.learning.server import close_round, counted, first_state, has_quorum, leave, open_round
from fedpcs.learning.server_values import Heard, ServerPlan
from fedpcs.privacy.budget import Rho
from fedpcs.sampling import SAMPLERS, make_sampler, survival_rate

SIZES = np.array([10, 20, 30])
UPDATES = np.array([[1.0, 0.0, 2.0], [0.5, -1.0, 4.0], [-2.0, 3.0, 0.25]], np.float32)
BUDGET = np.array([1.0, 1.0, 2.0])
START = np.array([0.5, 0.25, -1.0], np.float32)


def plan_of(sampler="fedpcs", rule="default", mode="client", sizes=SIZES, budget=BUDGET, cohort=2, rounds=4, **changes):
    settings = changes.pop("settings", {})
    num_parameters = changes.pop("num_parameters", 3)
    return ServerPlan(
        run="toy",
        seed=0,
        client=ClientPlan(mode=mode, clip_norm=1.0),
        layout=Layout(("weight",), ((num_parameters,),)),
        num_samples=np.asarray(sizes),
        sampler=make_sampler(sampler, **settings),
        rule=rule,
        schedule=Schedule(
            reward=np.ones(rounds),
            mean_budget=np.full(rounds, float(np.mean(budget))),
            cohort_size=np.full(rounds, cohort),
            budget=np.tile(np.asarray(budget, float), (rounds, 1)),
            pay=np.arange(rounds)[:, None] + 10.0 * np.asarray(budget, float),
        ),
        **changes,
    )


def never_asked(question, clients):
    raise AssertionError(f"asked for {question}")


def opened(plan, state, attempt=0, ask=never_asked):
    return open_round(plan, state, np.ones(plan.num_clients, dtype=bool), ask, attempt)


def admitted(task, values, num_samples=10, measures=None):
    layout = Layout(("weight",), ((values.size,),))
    report = ClientReport(
        task.run, task.round_index, task.client, task.nonce, task.budget, num_samples, layout, values, measures or {}
    )
    return Admitted(report, float(np.linalg.norm(values)))


def heard_from(now, updates=UPDATES, silent=()):
    here = [task for task in now.tasks if task.client not in silent]
    lost = [task for task in now.tasks if task.client in silent]
    return Heard(
        tuple(admitted(task, updates[task.client], measures=dict.fromkeys(task.measures, 1.0)) for task in here),
        (),
        tuple(ClientFailure(task.round_index, task.client, "died", "gone") for task in lost),
    )


def draw_with(plan, state, clients):
    """Open rounds until just these clients are drawn."""
    for attempt in range(500):
        now = opened(plan, state, attempt)
        if now.draw.clients.tolist() == list(clients):
            return now
    raise AssertionError(f"{clients} are never drawn")


@pytest.mark.parametrize(
    ("rule", "clients", "weights"),
    [
        # θ = 1/6, 1/3, 1/2; K = 2 of budgets 1, 1, 2: π = 1/2, 1/2, 1.
        ("horvitz-thompson", [0, 2], [1 / 3, 1 / 2]),
        ("horvitz-thompson", [1, 2], [2 / 3, 1 / 2]),
        ("hajek", [0, 2], [2 / 5, 3 / 5]),
        ("hajek", [1, 2], [4 / 7, 3 / 7]),
        ("normalised", [0, 2], [1 / 4, 3 / 4]),
        ("normalised", [1, 2], [2 / 5, 3 / 5]),
    ],
)
def test_the_model_moves_by_the_weighted_updates_of_the_cohort(rule, clients, weights):
    plan = plan_of(rule=rule, rate=0.5)
    state = first_state(plan, START)
    now = draw_with(plan, state, clients)
    after, moved = close_round(plan, state, now, heard_from(now))
    assert moved.weights == pytest.approx(weights, rel=1e-12)
    direction = sum(w * UPDATES[client].astype(float) for w, client in zip(weights, clients, strict=True))
    assert after.parameters == pytest.approx(START - 0.5 * direction, rel=1e-6)
    assert after.parameters.dtype == np.float32
    assert moved.rule == rule
    assert moved.step_norm == pytest.approx(0.5 * np.linalg.norm(direction))
    assert moved.update_norm == pytest.approx(np.linalg.norm(UPDATES[clients], axis=1), rel=1e-6)
    assert (after.next_round, state.next_round, state.parameters.tolist()) == (1, 0, START.tolist())


@pytest.mark.parametrize("scale", [0.3, 30.0], ids=["noise explains it", "drift"])
def test_precision_weights_minimise_the_error_by_their_formula(scale):
    plan = plan_of("random", "precision", cohort=3, budget=[0.5, 2.0, 8.0])
    state = first_state(plan, START)
    now, updates = opened(plan, state), np.float32(scale) * UPDATES
    _, moved = close_round(plan, state, now, heard_from(now, updates))
    power = 3 * 2.0 / np.array([0.5, 2.0, 8.0])  # d·σ², σ² = 2W²/ρ

    def excess(drift):
        share = 1.0 / (drift + power)
        mean = share @ updates.astype(float) / share.sum()
        return (share * ((updates - mean) ** 2).sum(axis=1)).sum() - 2.0

    drift = brentq(excess, 0.0, 1e6, xtol=1e-12) if excess(0.0) > 0.0 else 0.0
    θ = SIZES / SIZES.sum()
    λ = (1.0 - (θ * drift / (drift + power)).sum()) / (1.0 / (drift + power)).sum()
    assert moved.drift == pytest.approx(drift, rel=1e-6)
    assert (drift > 0.0) == (scale > 1.0)
    assert moved.weights == pytest.approx((θ * drift + λ) / (drift + power), rel=1e-6)
    assert moved.noise_norm == pytest.approx(np.sqrt(power))


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize(
    ("mode", "rule"), [("client", "precision"), ("record", "precision"), ("paper", "precision"), ("none", "normalised")]
)
def test_by_default_updates_are_weighed_by_precision_and_without_noise_by_size_whoever_draws(sampler, mode, rule):
    found = []
    for name in ("default", rule):
        plan = plan_of(sampler, name, mode, label_counts=np.ones((3, 2)))
        state = first_state(plan, START)
        now = opened(plan, state, ask=lambda question, clients: 1.0 + np.arange(clients.size))
        measures = dict.fromkeys(plan.sampler.hears, 1.0)
        heard = Heard(tuple(admitted(task, UPDATES[task.client], measures=measures) for task in now.tasks), (), ())
        found.append(close_round(plan, state, now, heard)[1])
    assert found[0].rule == rule
    assert found[0].weights.tolist() == found[1].weights.tolist()
    assert found[0].weights.sum() == pytest.approx(1.0)


def three_rounds(plan):
    state, models, directions = first_state(plan, START), [], []
    for t in range(3):
        now = opened(plan, state)
        updates = np.float32(t + 1) * UPDATES
        state, moved = close_round(plan, state, now, heard_from(now, updates))
        directions.append(moved.weights @ updates[now.draw.clients].astype(float))
        models.append(state)
    return models, directions


def test_momentum_is_the_heavy_ball():
    plan = plan_of("random", mode="none", momentum=0.9, rate=0.2)
    states, directions = three_rounds(plan)
    weights, velocity = START.astype(float), np.zeros(3)
    for state, direction in zip(states, directions, strict=True):
        velocity = 0.9 * velocity + direction
        weights = weights - 0.2 * velocity
        assert state.momentum == pytest.approx(velocity)
        assert state.parameters == pytest.approx(weights, rel=1e-5)
        weights = state.parameters.astype(float)


def test_the_average_is_the_weighted_mean_of_the_models_so_far():
    """Weights a^(t−s), normalised: after one round it is the model itself."""
    plan = plan_of("random", mode="none", averaging=0.7)
    states, _ = three_rounds(plan)
    models = np.array([state.parameters for state in states], float)
    for t, state in enumerate(states):
        shares = 0.7 ** np.arange(t, -1.0, -1.0)
        assert state.model(plan) == pytest.approx(shares @ models[: t + 1] / shares.sum(), rel=1e-5)
        assert state.model(plan).dtype == np.float32
    assert states[0].model(plan) == pytest.approx(models[0], rel=1e-6)
    assert first_state(plan, START).model(plan).tolist() == START.tolist()


@pytest.mark.slow
def test_steps_are_unbiased_over_two_thousand_draws():
    """Within 4 standard errors in each of 3 coordinates; averaging without inclusion probabilities is not.

    Hájek is a ratio: its bias is at most its standard deviation times the denominator's coefficient of variation
    (Cochran 1977, Section 6.8).
    """
    rng = np.random.default_rng(3)
    sizes, budget = np.array([8, 12, 16, 20, 24, 8, 12, 20]), np.array([0.5, 0.6, 0.7, 0.8, 1.0, 1.2, 1.6, 2.0])
    updates = (rng.normal(size=(8, 3)) + np.linspace(-1.0, 1.0, 8)[:, None]).astype(np.float32)
    rules = ("horvitz-thompson", "hajek", "normalised")
    plans = [plan_of(rule=rule, sizes=sizes, budget=budget, cohort=3) for rule in rules]
    state = first_state(plans[0], np.zeros(3, np.float32))
    steps, sums = np.full((3, 2000, 3), np.nan), np.empty(2000)
    for attempt in range(2000):
        now = opened(plans[0], state, attempt)
        heard = heard_from(now, updates)
        for row, plan in enumerate(plans if attempt < 400 else plans[:2]):
            after, moved = close_round(plan, state, now, heard)
            steps[row, attempt] = -after.parameters
            sums[attempt] = moved.weights.sum() if row == 0 else sums[attempt]
    error = np.abs(np.nanmean(steps, axis=1) - sizes / sizes.sum() @ updates)
    spread = np.nanstd(steps, axis=1, ddof=1)
    four = 4.0 * spread / np.sqrt([[2000], [2000], [400]])
    assert (error[0] < four[0]).all()
    assert (error[1] < four[1] + spread[1] * sums.std()).all()
    assert (error[2] > four[2]).any()


def test_drop_outs_are_weighed_by_how_often_clients_answered_before():
    plan = plan_of("random", "horvitz-thompson", cohort=3, mode="none")
    state = first_state(plan, START)
    now = opened(plan, state)
    # Nothing is known yet: survivors keep their weights.
    _, moved = close_round(plan, state, now, heard_from(now, silent=[1]))
    assert moved.weights == pytest.approx([1 / 6, 1 / 2])
    state = counted(state, now, heard_from(now, silent=[1]))
    again = opened(plan, state, 1)
    after, moved = close_round(plan, state, again, heard_from(again, silent=[0]))
    survival = survival_rate([1, 1, 1], [1, 0, 1])
    assert moved.weights == pytest.approx(np.array([1 / 3, 1 / 2]) / survival[[1, 2]])
    assert after.tally.drawn.tolist() == [2, 2, 2]
    assert after.tally.heard.tolist() == [1, 1, 2]


def test_heard_clients_are_owed_and_the_silent_are_not():
    plan = plan_of("random", cohort=3)
    state = first_state(plan, START)
    now = opened(plan, state)
    after, moved = close_round(plan, state, now, heard_from(now, silent=[1]))
    assert moved.reward.tolist() == [10.0, 20.0]
    again = opened(plan, after)
    last, moved = close_round(plan, after, again, heard_from(again, np.float32(1.5) * UPDATES))
    assert moved.reward.tolist() == [11.0, 11.0, 21.0]
    assert last.paid == 30.0 + 43.0


def test_tasks_name_the_round_the_client_and_the_contracted_budget():
    plan = plan_of("random", cohort=3, budget=[0.07, 1 / 3, 2.0])
    state = replace(first_state(plan, START), next_round=2)
    now = opened(plan, state)
    assert [(task.run, task.round_index, task.client) for task in now.tasks] == [("toy", 2, k) for k in range(3)]
    assert [task.budget.nanos for task in now.tasks] == [70_000_000, 333_333_333, 2_000_000_000]
    assert len({task.nonce for task in now.tasks}) == 3
    assert all(task.measures == () for task in now.tasks)
    assert all(task.budget is None for task in opened(plan_of("random", mode="none"), state).tasks)


def test_draws_depend_on_seed_round_and_attempt_alone():
    plan = plan_of("random", sizes=np.full(30, 5), budget=np.ones(30), cohort=10)
    state = first_state(plan, START)
    first = opened(plan, state).draw.clients.tolist()
    assert opened(plan, replace(state, parameters=2 * START)).draw.clients.tolist() == first
    assert opened(plan, state, 1).draw.clients.tolist() != first
    assert opened(plan, replace(state, next_round=1)).draw.clients.tolist() != first
    assert opened(replace(plan, seed=1), state).draw.clients.tolist() != first


def test_noise_power_in_the_view_is_that_of_the_whole_update():
    plan = plan_of("optimal", mode="paper", num_parameters=50)
    now = opened(plan, first_state(plan, np.zeros(50, np.float32)))
    assert now.view.noise_power == pytest.approx(50 * 2.0 / (BUDGET * SIZES**2))  # σ² = 2W²/(ρ|D|²)


@pytest.mark.parametrize("budget", [0.1, 1e-4, 0.067, 0.0041, 1 / 3])
@pytest.mark.parametrize("rounds", [1, 10])
def test_a_client_leaves_when_its_next_release_would_pass_the_limit_and_not_before(budget, rounds):
    """After `rounds` − 1 releases one more fits exactly; a billionth less, and it does not."""
    cost = Rho.at_most(budget).nanos
    plan = plan_of("random", budget=[budget] * 3, limit=Rho(rounds * cost))
    spent = np.array([(rounds - 1) * cost, (rounds - 1) * cost + 1, 0])
    after, leaving = leave(plan, replace(first_state(plan, START), spent=spent))
    assert leaving.tolist() == [1]
    assert after.has_left.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("quorum", "num_heard", "is_enough"),
    [(0.5, 2, True), (0.5, 1, False), (0.6, 2, False), (0.0, 1, True), (0.0, 0, False), (1.0, 3, False)],
)
def test_quorum_is_a_share_of_the_cohort_and_at_least_one(quorum, num_heard, is_enough):
    plan = plan_of("random", sizes=np.full(4, 5), budget=np.ones(4), cohort=4, quorum=quorum)
    now = opened(plan, first_state(plan, START))
    heard = heard_from(now, np.ones((4, 3), np.float32), silent=range(num_heard, 4))
    assert has_quorum(plan, now, heard) is is_enough


def test_wild_updates_are_refused_where_nothing_is_clipped_and_only_there():
    updates = np.array([[1.0, 0, 0], [1.1, 0, 0], [30.0, 0, 0]], np.float32)
    for mode, kept in (("none", [0, 1]), ("client", [0, 1, 2])):
        plan = plan_of("random", mode=mode, cohort=3)
        now = opened(plan, first_state(plan, START))
        found = without_outliers(plan, now, heard_from(now, updates))
        assert found.clients.tolist() == kept
        assert [(one.client, one.kind) for one in found.refused] == [(2, "norm")] * (3 - len(kept))
        assert all(isinstance(one, Refusal) for one in found.refused)


def test_a_sampler_that_asks_hears_only_available_clients_answers():
    plan = plan_of("aocs", mode="none", sizes=np.full(4, 5), budget=np.ones(4), cohort=2)
    asked = []

    def ask(question, clients):
        asked.append((question, clients.tolist()))
        return np.where(clients == 2, np.nan, 1.0 + clients)

    here = np.array([True, False, True, True])
    now = open_round(plan, first_state(plan, START), here, ask)
    assert asked == [("update_norm", [0, 2, 3])]
    assert now.view.is_available.tolist() == [True, False, False, True]
    assert set(now.draw.clients.tolist()) <= {0, 3}
    with pytest.raises(QuorumNotReached, match="aocs"):
        open_round(plan, first_state(plan, START), here, lambda question, clients: np.full(clients.size, np.nan))


@dataclass(frozen=True)
class Listener:
    """Draws at random and keeps what it hears."""

    name: ClassVar[str] = "listener"
    reads: ClassVar[tuple[str, ...]] = ()
    hears: ClassVar[tuple[str, ...]] = (
        *("update_norm", "update_distance", "noise_power", "duration"),
        *("gradient_distance", "gradient_noise_power", "local_steps"),
        *("loss", "gradient_variance"),
    )
    heard: list = field(default_factory=list)

    def draw(self, view, rng):
        return make_sampler("random").draw(view, rng)

    def start(self, num_clients):
        return {"rounds": np.zeros(1)}

    def remember(self, view, draw, feedback):
        self.heard.append(feedback)
        return {"rounds": view.memory["rounds"] + 1}


def test_what_a_sampler_hears_is_what_came_and_what_is_public():
    listener = Listener()
    plan = replace(
        plan_of("random", cohort=3, sizes=[10, 64, 30]),
        sampler=listener,
        client=ClientPlan(mode="client", clip_norm=1.0, batch_size=20, local_epochs=3, learning_rate=0.5),
    )
    state = first_state(plan, START)
    now = opened(plan, state)
    assert now.tasks[0].measures == ("loss", "gradient_variance")
    told = [{"loss": 0.5, "gradient_variance": 2.0}, {"loss": 1.5}, {"loss": 2.5, "gradient_variance": 4.0}]
    items = tuple(admitted(task, UPDATES[task.client], measures=told[task.client]) for task in now.tasks)
    after, _ = close_round(plan, state, now, Heard(items, (), ()))
    (heard,) = listener.heard
    assert after.memory["rounds"].tolist() == [1.0]
    assert heard.clients.tolist() == [0, 1, 2]
    assert heard.update_norm == pytest.approx(np.linalg.norm(UPDATES, axis=1), rel=1e-6)
    middle = np.array([10, 64, 30]) / 104 @ UPDATES.astype(float)
    assert heard.update_distance == pytest.approx(np.linalg.norm(UPDATES - middle, axis=1), rel=1e-6)
    assert heard.noise_power == pytest.approx(3 * 2.0 / BUDGET)
    # Batches of 20 from 10, 64, 30 records: 1, 4, 2 steps an epoch, three epochs.
    assert heard.duration.tolist() == [3.0, 12.0, 6.0]
    assert heard.local_steps.tolist() == [3.0, 12.0, 6.0]
    gradients = UPDATES / (0.5 * heard.local_steps[:, None])
    middle = np.array([10, 64, 30]) / 104 @ gradients
    assert heard.gradient_distance == pytest.approx(np.linalg.norm(gradients - middle, axis=1), rel=1e-12)
    assert heard.loss.tolist() == [0.5, 1.5, 2.5]
    assert heard.gradient_variance.tolist() == [2.0, 3.0, 4.0]  # the others' median for one that had none
    silent = tuple(admitted(task, UPDATES[task.client], measures={"loss": 1.0}) for task in now.tasks)
    with pytest.raises(InvalidInput, match=r"'listener' learns from gradient_variance, .* mode 'client' has sent"):
        close_round(plan, state, now, Heard(silent, (), ()))


def test_no_number_depends_on_how_many_threads_blas_has():
    updates = np.random.default_rng(0).normal(size=(3, 200_001)).astype(np.float32)
    found = []
    for num_threads in (1, 2, 3):
        listener = Listener()
        plan = replace(plan_of("random", "precision", cohort=3, num_parameters=200_001), sampler=listener)
        state = first_state(plan, np.zeros(200_001, np.float32))
        now = opened(plan, state)
        with threadpoolctl.threadpool_limits(num_threads, user_api="blas"):
            after, moved = close_round(plan, state, now, heard_from(now, updates))
        heard = listener.heard[0]
        found.append((moved.step_norm, moved.drift, heard.update_distance.tobytes(), after.parameters.tobytes()))
    assert found[0] == found[1] == found[2]
