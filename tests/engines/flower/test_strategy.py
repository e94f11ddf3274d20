"""Our strategy on clients of somebody else's: the cohorts and models our own server would have, whatever one sends."""

import difflib
import importlib
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp.exception import InconsistentMessageReplies
from flwr.serverapp.strategy import FedAvg
from local_grid import LocalGrid

from fedpcs.engines.flower.strategy import SampledStrategy
from fedpcs.errors import InvalidInput, QuorumNotReached
from fedpcs.game.schedule import Schedule
from fedpcs.learning.admission import Admitted
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.device import one_thread
from fedpcs.learning.layout import Layout
from fedpcs.learning.noise_plan import noise_power
from fedpcs.learning.protocol import ClientFailure, ClientReport
from fedpcs.learning.server import close_round, first_state, open_round
from fedpcs.learning.server_values import Heard, ServerPlan
from fedpcs.sampling import SAMPLERS, draw_by_size, inclusion_probability, make_sampler

NAN, INF = math.nan, math.inf
SIZES = np.array([10, 20, 30, 44, 16, 25])
BUDGETS = np.array([1.0, 1.0, 2.0, 4.0, 0.5, 3.0])
NUM_CLIENTS, NUM_PARAMETERS = SIZES.size, 5
NODES = [52, 31, 77, 12, 98, 40]  # as random as Flower's
UPDATES = np.random.default_rng(3).normal(size=(NUM_CLIENTS, NUM_PARAMETERS)).astype(np.float32)
START = np.array([0.5, 0.25, -1.0, 2.0, 0.1], np.float32)
LABELS = np.random.default_rng(4).integers(1, 20, (NUM_CLIENTS, 3))
LEARNING_RATE, BATCH = 0.1, 8


def arrays_of(flat):
    """A model of two arrays, as Flower carries it."""
    return ArrayRecord({"weight": Array(flat[:4].reshape(2, 2)), "bias": Array(flat[4:])})


def flat_of(record):
    return np.concatenate([array.numpy().ravel() for array in record.values()])


def stock_app(tells=None, faults=None, answers_queries=False, updates=UPDATES):
    """A client app as in Flower's quickstart, on made-up updates.

    `tells`: client → further metrics. `faults`: (client, round) → what to do to the reply's content.
    """
    app = ClientApp()

    def told(client):
        return {"num-examples": int(SIZES[client]), **(tells(client) if tells else {})}

    @app.train()
    def train(message, context):
        client = context.node_config["partition-id"]
        before = flat_of(message.content["arrays"])
        metrics = MetricRecord({"train_loss": 1.0 + client, **told(client)})
        content = RecordDict({"arrays": arrays_of(before - updates[client]), "metrics": metrics})
        fault = (faults or {}).get((client, message.content["config"]["server-round"]))
        return Message(content if fault is None else fault(content), reply_to=message)

    @app.evaluate()
    def evaluate(message, context):
        client = context.node_config["partition-id"]
        content = RecordDict({"metrics": MetricRecord({"eval_acc": client / 10.0, "num-examples": 5})})
        fault = (faults or {}).get((client, "evaluate"))
        return Message(content if fault is None else fault(content), reply_to=message)

    if answers_queries:

        @app.query()
        def query(message, context):
            client = context.node_config["partition-id"]
            told_first = MetricRecord({"partition-id": client, **told(client)})
            return Message(RecordDict({"metrics": told_first}), reply_to=message)

    return app


def all_told(client):
    """Everything a client can tell that a sampler may want."""
    return {
        "budget": float(BUDGETS[client]),
        "label-counts": LABELS[client].tolist(),
        "loss-energy": 2.0 + client,
        "gradient-variance": 0.3 * client,
        "local-steps": int(-(-SIZES[client] // BATCH)),
        "duration": float(-(-SIZES[client] // BATCH)),
    }


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level("CRITICAL", logger="flwr")


def play(strategy, grid, num_rounds, start=START):
    """Return the model after each round, by Flower's own loop."""
    models = []

    def note(_, arrays):
        models.append(flat_of(arrays))

    strategy.start(grid, arrays_of(start), num_rounds, evaluate_fn=note)
    return models[1:]


def partitions(strategy, grid, which="drawn"):
    """The partitions of each round's cohort."""
    number = {node: context.node_config["partition-id"] for node, context in grid.contexts.items()}
    return [[number[node] for node in getattr(one, which)] for one in strategy.history]


# --- The same as our own server ---

SERVED = {
    "random": {},
    "fedpcs": {},
    "fedpcs, with replacement": {"design": "with-replacement"},
    "clustered": {},
    "optimal": {},
    "aocs": {"norms": "last-known", "subtract_noise": True},
    "delta": {},
    "delta, without variances": {"variance_ratio": 0.0},
    "power-of-choice": {"losses": "last-known"},
    "oort": {},
    "fed-cbs": {},
}


def own_rounds(sampler, rule, mode, num_rounds, silent=(), **changes):
    """Our own server on the same clients: cohorts, weights and models, round by round."""
    client = ClientPlan(mode=mode, clip_norm=1.0, batch_size=BATCH, learning_rate=LEARNING_RATE)
    plan = ServerPlan(
        run="toy",
        seed=7,
        client=client,
        layout=Layout(("all",), ((NUM_PARAMETERS,),)),
        num_samples=SIZES,
        sampler=sampler,
        rule=rule,
        schedule=Schedule(
            reward=np.zeros(num_rounds),
            mean_budget=np.ones(num_rounds),
            cohort_size=np.full(num_rounds, 3),
            budget=np.tile(BUDGETS, (num_rounds, 1)),
            pay=np.zeros((num_rounds, NUM_CLIENTS)),
        ),
        label_counts=LABELS.astype(float),
        **changes,
    )
    state, found = first_state(plan, START), []
    for t in range(num_rounds):
        now = open_round(plan, state, np.ones(NUM_CLIENTS, dtype=bool), None)
        admitted, failures = [], []
        for task in now.tasks:
            told = all_told(task.client)
            measured = {"loss": 1.0 + task.client, "loss_energy": told["loss-energy"]}
            measured["gradient_variance"] = told["gradient-variance"]
            # What arrives is w − (w − u), rounded twice.
            values = state.parameters - (state.parameters - UPDATES[task.client])
            if (task.client, t + 1) in silent:
                failures.append(ClientFailure(t, task.client, "died", "gone"))
                continue
            report = ClientReport("toy", t, task.client, task.nonce, task.budget, 1, plan.layout, values, measured)
            admitted.append(Admitted(report, l2_norm(values)))
        state, moved = close_round(plan, state, now, Heard(tuple(admitted), (), tuple(failures)))
        found.append((now.draw.clients.tolist(), moved.rule, moved.weights, state.parameters))
    return found


def assert_same(sampler, rule, mode="client", silent=(), num_rounds=6, **changes):
    plan = ClientPlan(mode=mode, clip_norm=1.0, batch_size=BATCH, learning_rate=LEARNING_RATE)
    noise = noise_power(plan, BUDGETS, SIZES, NUM_PARAMETERS)

    def break_down(content):
        raise RuntimeError("out of memory")

    app = stock_app(
        lambda client: {**all_told(client), "noise-power": float(noise[client])},
        dict.fromkeys(silent, break_down),
        answers_queries=True,
    )
    grid = LocalGrid(app, NODES)
    strategy = SampledStrategy(
        sampler,
        cohort_size=3,
        rule=rule,
        seed=7,
        query=True,
        learning_rate=LEARNING_RATE,
        fraction_evaluate=0.0,
        **changes,
    )
    models = play(strategy, grid, num_rounds)
    expected = own_rounds(sampler, rule, mode, num_rounds, silent, **changes)
    assert partitions(strategy, grid) == [clients for clients, *_ in expected]
    for round_, model, (_, own_rule, weights, parameters) in zip(strategy.history, models, expected, strict=True):
        assert round_.rule == own_rule
        assert round_.weights == pytest.approx(weights, rel=1e-12)
        assert model.tobytes() == parameters.tobytes()
    return strategy


@pytest.mark.parametrize("way", SERVED)
def test_every_sampler_draws_and_moves_as_our_own_server_does(way):
    assert_same(make_sampler(way.partition(",")[0], **SERVED[way]), "default")


@pytest.mark.parametrize("rule", ["horvitz-thompson", "hajek", "normalised", "paper", "precision", "own"])
@pytest.mark.parametrize("mode", ["none", "client"])
def test_every_rule_weighs_as_our_own_server_does(rule, mode):
    assert_same(make_sampler("fedpcs"), rule, mode)


@pytest.mark.parametrize(("mode", "rule"), [("none", "normalised"), ("client", "precision")])
def test_by_default_noise_that_clients_tell_of_decides_the_rule(mode, rule):
    strategy = assert_same(make_sampler("fedpcs"), "default", mode)
    assert {round_.rule for round_ in strategy.history} == {rule}


@pytest.mark.parametrize(
    ("rule", "changes"), [("horvitz-thompson", {"weight_cap": 1.0}), ("precision", {"by_design": True})]
)
def test_a_cap_and_the_design_are_heeded_as_in_our_own_server(rule, changes):
    strategy = assert_same(make_sampler("fedpcs"), rule, **changes)
    plain = assert_same(make_sampler("fedpcs"), rule)
    assert [one.weights for one in strategy.history] != [one.weights for one in plain.history]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"weight_cap": 0.5}, "weight_cap must be .*got 0.5"),
        ({"weight_cap": float("nan")}, "weight_cap must be .*got nan"),
        ({"by_design": 1}, "by_design must be .*got 1"),
        ({"by_design": True}, "by_design is a setting of precision, got it with default"),
    ],
)
def test_a_cap_below_one_and_a_design_for_another_rule_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        SampledStrategy("random", cohort_size=2, **changes)


@pytest.mark.parametrize("rule", ["horvitz-thompson", "hajek", "normalised", "precision"])
def test_clients_that_fail_are_stood_for_as_in_our_own_server(rule):
    silent = {(client, server_round) for client in (2, 3) for server_round in (2, 4, 5)}
    strategy = assert_same(make_sampler("fedpcs"), rule, silent=silent, num_rounds=8)
    assert len(strategy.refused) >= 2
    assert {one.reason for one in strategy.refused} == {"<class 'RuntimeError'>:<'out of memory'>"}


def test_with_everyone_drawn_it_is_fedavg():
    ours = SampledStrategy("random", rule="normalised", cohort_size=NUM_CLIENTS)
    theirs = play(FedAvg(), LocalGrid(stock_app(), NODES), 3)  # in float32, in an order drawn anew each time
    assert play(ours, LocalGrid(stock_app(), NODES), 3)[-1] == pytest.approx(theirs[-1], abs=3e-6)


# --- Weights by hand, and on average ---


@pytest.mark.parametrize(
    ("rule", "weights"),
    [
        # Sizes 10, 20, 30 of budgets 1, 1, 2, two drawn: θ = 1/6, 1/3, 1/2 and π = 1/2, 1/2, 1.
        ("horvitz-thompson", {0: (1 / 3, 1 / 2), 1: (2 / 3, 1 / 2)}),
        ("hajek", {0: (2 / 5, 3 / 5), 1: (4 / 7, 3 / 7)}),
        ("normalised", {0: (1 / 4, 3 / 4), 1: (2 / 5, 3 / 5)}),
    ],
)
def test_weights_are_those_worked_out_by_hand(rule, weights):
    app = stock_app(lambda client: {"budget": float(BUDGETS[client])}, answers_queries=True)
    grid = LocalGrid(app, NODES[:3])
    strategy = SampledStrategy(cohort_size=2, rule=rule, query=True)
    models = [START, *play(strategy, grid, 12)]
    cohorts = partitions(strategy, grid)
    assert {cohort[0] for cohort in cohorts} == {0, 1}
    for cohort, round_, before, after in zip(cohorts, strategy.history, models[:-1], models[1:], strict=True):
        assert cohort == [cohort[0], 2]
        assert round_.weights == pytest.approx(weights[cohort[0]], rel=1e-12)
        direction = sum(w * UPDATES[client].astype(float) for w, client in zip(round_.weights, cohort, strict=True))
        assert after == pytest.approx(before - direction, abs=1e-5)


def test_before_sizes_are_known_all_are_alike_and_weights_go_by_the_sizes_heard():
    grid = LocalGrid(stock_app(lambda client: {"budget": float(BUDGETS[client])}), NODES)
    strategy = SampledStrategy(cohort_size=2, rule="horvitz-thompson")
    play(strategy, grid, 1)
    sizes = SIZES[partitions(strategy, grid)[0]]
    # π = 2/6 for all; the four not heard are taken for the mean of the two, so all hold 3·(n_1 + n_2).
    assert strategy.history[0].weights == pytest.approx(3.0 * sizes / (3.0 * sizes.sum()))


def test_clients_not_yet_heard_are_taken_for_the_mean_of_those_that_were():
    grid = LocalGrid(stock_app(lambda client: {"budget": float(BUDGETS[client])}), NODES)
    strategy = SampledStrategy(cohort_size=2, rule="horvitz-thompson")
    play(strategy, grid, 3)
    cohorts, is_heard = partitions(strategy, grid), np.zeros(NUM_CLIENTS, dtype=bool)
    for cohort, round_ in zip(cohorts, strategy.history, strict=True):
        budgets = np.where(is_heard, BUDGETS, BUDGETS[is_heard].mean() if is_heard.any() else 1.0)
        is_heard[cohort] = True
        sizes = np.where(is_heard, SIZES, SIZES[is_heard].mean())
        expected = sizes / sizes.sum() / inclusion_probability(budgets, 2)
        assert round_.weights == pytest.approx(expected[cohort])
    assert not is_heard.all()


def mean_step(rule, updates, num_rounds):
    """Mean and its standard error of the step from one and the same model, over many draws."""
    app = stock_app(lambda client: {"budget": float(BUDGETS[client])}, answers_queries=True, updates=updates)
    grid = LocalGrid(app, NODES)
    strategy = SampledStrategy(cohort_size=3, rule=rule, query=True)
    steps = []
    for server_round in range(1, num_rounds + 1):
        messages = strategy.configure_train(server_round, arrays_of(START), ConfigRecord(), grid)
        moved, _ = strategy.aggregate_train(server_round, grid.send_and_receive(messages))
        steps.append(START - flat_of(moved).astype(float))
    return np.mean(steps, axis=0), np.std(steps, axis=0) / np.sqrt(num_rounds)


def test_horvitz_thompson_is_unbiased_and_the_test_would_see_if_it_were_not():
    """α = 1e-6 over five coordinates, 250 draws: |z| < 5.2. Each coordinate singles out one client but the last."""
    updates = 4.0 * np.eye(NUM_CLIENTS, NUM_PARAMETERS, dtype=np.float32)
    full = (SIZES / SIZES.sum()) @ updates.astype(float)
    mean, error = mean_step("horvitz-thompson", updates, 250)
    assert np.abs((mean - full) / np.maximum(error, 1e-7)).max() < 5.2
    mean, error = mean_step("normalised", updates, 120)
    assert np.abs((mean - full) / np.maximum(error, 1e-7)).max() > 10.0


# --- Which samplers can be served ---

UNSERVED = {
    "aocs": ({}, "update_norm", "norms='last-known'"),
    "optimal": ({"norms": "current"}, "update_norm", "norms='last-known'"),
    "power-of-choice": ({}, "loss", "losses='last-known'"),
    "delta": ({"information": "ideal"}, "gradient_distance", "information='practical'"),
}


def test_every_sampler_is_served_in_some_setting():
    assert {way.partition(",")[0] for way in SERVED} == set(SAMPLERS)


@pytest.mark.parametrize("name", UNSERVED)
def test_what_reads_clients_data_before_the_draw_is_refused_with_a_remedy(name):
    settings, field, remedy = UNSERVED[name]
    with pytest.raises(InvalidInput) as told:
        SampledStrategy(name, cohort_size=2, settings=settings)
    assert f"sampler {name!r} reads {field} before it draws" in str(told.value)
    assert remedy in str(told.value)


STOCK = {
    "random": {},
    "clustered": {},
    "optimal": {},
    "aocs": {"norms": "last-known"},
    "delta": {"score": "authors-code"},
    "power-of-choice": {"losses": "last-known"},
}


@pytest.mark.parametrize("name", STOCK)
def test_six_samplers_need_nothing_that_a_stock_app_does_not_tell(name):
    grid = LocalGrid(stock_app(), NODES)
    strategy = SampledStrategy(name, cohort_size=3, settings=STOCK[name])
    models = play(strategy, grid, 8)
    assert np.isfinite(models[-1]).all()
    assert not strategy.refused
    if name not in ("aocs", "clustered"):  # designs of random size, or that draw one twice
        assert {len(one.heard) for one in strategy.history} == {3}


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("fedpcs", "budget"),
        ("fed-cbs", "label-counts"),
        ("oort", "loss-energy"),
    ],
)
def test_the_others_need_one_more_metric_and_say_which(name, metric):
    with pytest.raises(InvalidInput, match=f"sampler '{name}' goes by .* no reply tells '{metric}'"):
        play(SampledStrategy(name, cohort_size=2), LocalGrid(stock_app(), NODES), 1)
    app = stock_app(lambda client: {metric: all_told(client)[metric]})
    strategy = SampledStrategy(name, cohort_size=3)
    assert np.isfinite(play(strategy, LocalGrid(app, NODES), 8)).all()
    assert not strategy.refused


def test_delta_needs_two_more_and_the_learning_rate_and_says_which():
    """An update over learning rate and steps is a gradient; without them it cannot be weighed against a variance."""
    with pytest.raises(InvalidInput, match="learning_rate must be given for sampler 'delta', got None"):
        SampledStrategy("delta", cohort_size=3)
    told = {
        name: lambda client, name=name: {name: all_told(client)[name]} for name in ("local-steps", "gradient-variance")
    }
    for name, lacking in (("local-steps", "gradient-variance"), ("gradient-variance", "local-steps")):
        strategy = SampledStrategy("delta", cohort_size=3, learning_rate=LEARNING_RATE)
        with pytest.raises(InvalidInput, match=f"sampler 'delta' goes by .* no reply tells '{lacking}'"):
            play(strategy, LocalGrid(stock_app(told[name]), NODES), 1)
    with pytest.raises(InvalidInput, match="no reply tells 'local-steps'"):
        play(
            SampledStrategy("delta", cohort_size=3, settings={"variance_ratio": 0.0}), LocalGrid(stock_app(), NODES), 1
        )
    strategy = SampledStrategy("delta", cohort_size=3, learning_rate=LEARNING_RATE)
    assert np.isfinite(play(strategy, LocalGrid(stock_app(all_told), NODES), 8)).all()
    assert not strategy.refused


@pytest.mark.parametrize("value", [0, -3, 2.5, float("nan")])
def test_a_number_of_steps_that_cannot_be_is_refused(value):
    app = stock_app(lambda client: {**all_told(client), "local-steps": value if client == 2 else 4})
    strategy = SampledStrategy("delta", cohort_size=NUM_CLIENTS, learning_rate=LEARNING_RATE)
    play(strategy, LocalGrid(app, NODES), 1)
    assert [("local-steps" in one.reason) for one in strategy.refused] == [True]


@dataclass(frozen=True)
class Onlooker:
    """A sampler of somebody's own, that keeps what it is shown."""

    shown: list
    name: ClassVar[str] = "onlooker"
    reads: ClassVar[tuple[str, ...]] = ("budget", "noise_power", "label_counts")
    hears: ClassVar[tuple[str, ...]] = ()

    def draw(self, view, rng):
        self.shown.append(view)
        return draw_by_size(view, view.budget, "pivotal", rng)


def test_a_sampler_of_ones_own_is_shown_what_clients_told_and_the_mean_of_it_for_the_others():
    def tells(client):  # the first half does not know the last class, and has no noise
        labels = LABELS[client, : 2 + client // 3].tolist()
        return {
            "budget": float(BUDGETS[client]),
            "label-counts": labels,
            **({"noise-power": 3.0} if client > 2 else {}),
        }

    sampler, grid = Onlooker([]), LocalGrid(stock_app(tells), NODES)
    strategy = SampledStrategy(sampler, cohort_size=2)
    play(strategy, grid, 4)
    first, *later = sampler.shown
    assert (first.budget == 1.0).all()
    assert (first.noise_power == 0.0).all()
    assert first.label_counts.tolist() == [[1.0, 1.0]] * NUM_CLIENTS
    padded = np.where((np.arange(NUM_CLIENTS)[:, None] < 3) & (np.arange(3) == 2), 0, LABELS)
    order = np.argsort(NODES)  # clients are numbered by node id
    heard = set()
    for view, cohort in zip(later, partitions(strategy, grid), strict=False):
        heard |= set(cohort)
        is_heard = np.isin(order, list(heard))
        num_classes = view.label_counts.shape[1]
        assert num_classes == (3 if max(heard) > 2 else 2)
        for found, told in (
            (view.budget, BUDGETS[order]),
            (view.noise_power, np.where(order > 2, 3.0, 0.0)),
            (view.num_samples, SIZES[order]),
            (view.label_counts, padded[order, :num_classes]),
        ):
            assert (found[is_heard] == told[is_heard]).all()
            assert found[~is_heard] == pytest.approx(
                np.broadcast_to(told[is_heard].mean(axis=0), found[~is_heard].shape)
            )


def test_metrics_may_have_other_names():
    grid = LocalGrid(stock_app(lambda client: {"rho": float(BUDGETS[client])}), NODES)
    play(SampledStrategy(cohort_size=2, metric_names={"budget": "rho"}), grid, 2)
    with pytest.raises(InvalidInput, match="no field 'rho'"):
        SampledStrategy(cohort_size=2, metric_names={"rho": "budget"})


def test_a_rule_the_sampler_cannot_serve_is_refused_before_anyone_trains():
    grid = LocalGrid(stock_app(), NODES)
    settings = {"losses": "last-known"}
    strategy = SampledStrategy("power-of-choice", cohort_size=2, rule="horvitz-thompson", settings=settings)
    with pytest.raises(InvalidInput, match="biased by intention"):
        play(strategy, grid, 1)
    assert not grid.replies


def test_settings_that_cannot_be_meant_are_refused():
    with pytest.raises(InvalidInput, match="cohort_size takes its place"):
        SampledStrategy("random", cohort_size=2, fraction_train=0.5)
    with pytest.raises(InvalidInput, match="made already"):
        SampledStrategy(make_sampler("random"), cohort_size=2, settings={"floor": 0.1})
    with pytest.raises(InvalidInput, match="rule"):
        SampledStrategy("random", cohort_size=2, rule="median")
    with pytest.raises(InvalidInput, match="must be drawn"):
        SampledStrategy("random", cohort_size=2).aggregate_train(1, [])


# --- One bad reply ---


def with_arrays(change):
    return lambda content: RecordDict({**content, "arrays": ArrayRecord(change(dict(content["arrays"])))})


def with_metrics(**changes):
    renamed = {name.replace("_", "-"): value for name, value in changes.items()}
    return lambda content: RecordDict({**content, "metrics": MetricRecord({**content["metrics"], **renamed})})


def without_size(content):
    return RecordDict({**content, "metrics": MetricRecord({"train_loss": 1.0})})


def raising(content):
    raise ValueError("no such file")


def array(*values, kind=np.float32):
    return Array(np.array(values, kind))


BAD = {
    "NaN": (with_arrays(lambda a: {**a, "bias": array(NAN)}), "key 'bias' holds numbers that are not finite"),
    "infinite": (with_arrays(lambda a: {**a, "bias": array(-INF)}), "key 'bias' holds numbers that are not finite"),
    "enormous": (with_arrays(lambda a: {**a, "bias": array(1e30)}), "more than 10 times the median"),
    "broadcastable": (with_arrays(lambda a: {**a, "weight": array(1.0, 2.0)}), "'weight' is float32 of shape (2,)"),
    "other shape": (with_arrays(lambda a: {**a, "bias": array(1.0, 2.0)}), "expected float32 of (1,)"),
    "other type": (with_arrays(lambda a: {**a, "bias": array(1.0, kind=np.float64)}), "'bias' is float64"),
    "missing key": (with_arrays(lambda a: {"weight": a["weight"]}), "key 'bias' is missing"),
    "extra key": (with_arrays(lambda a: {**a, "more": array(1.0)}), "key 'more' is none of the model"),
    "no bytes": (
        with_arrays(lambda a: {**a, "bias": Array("float32", (1,), "numpy.ndarray", b"\x93NUMPY")}),
        "an array cannot be read",
    ),
    "pickle": (
        with_arrays(lambda a: {**a, "bias": Array("float32", (1,), "numpy.ndarray", b"\x80\x04N.")}),
        "an array cannot be read",
    ),
    "no arrays": (lambda content: RecordDict({"metrics": content["metrics"]}), "one ArrayRecord, got 0"),
    "no metrics": (lambda content: RecordDict({"arrays": content["arrays"]}), "one MetricRecord, got 0"),
    "no size": (without_size, "num-examples must be a number in [1, 9.0072e+15], got None"),
    "no records": (with_metrics(num_examples=0), "num-examples must be"),
    "negative size": (with_metrics(num_examples=-5), "num-examples must be"),
    "NaN size": (with_metrics(num_examples=NAN), "num-examples must be"),
    "giant size": (with_metrics(num_examples=10**18), "num-examples must be"),
    "broken size": (with_metrics(num_examples=2.5), "num-examples must be a whole number"),
    "list of sizes": (with_metrics(num_examples=[1, 2]), "num-examples must be"),
    "NaN noise": (with_metrics(noise_power=NAN), "noise-power must be"),
    "exception": (raising, "no such file"),
}


@pytest.mark.parametrize("fault", BAD)
def test_one_bad_reply_neither_ends_the_run_nor_moves_the_model(fault):
    """The victim is in every cohort; the run must be that of a victim who does not answer at all in round two."""
    change, reason = BAD[fault]
    victim, found = 3, []
    for spoil in (change, raising):
        grid = LocalGrid(stock_app(faults={(victim, 2): spoil}), NODES)
        strategy = SampledStrategy("random", cohort_size=NUM_CLIENTS)
        found.append(np.stack(play(strategy, grid, 3)).tobytes())
        (refused,) = strategy.refused
        assert (refused.server_round, refused.phase, refused.node) == (2, "train", NODES[victim])
        if spoil is change:
            assert reason in refused.reason
    assert found[0] == found[1]


@pytest.mark.parametrize("metric", ["budget", "noise-power", "other"])
def test_long_updates_are_left_out_unless_noise_explains_them(metric):
    updates = UPDATES.copy()
    updates[1] *= 100.0
    grid = LocalGrid(stock_app(lambda _: {metric: 2.0}, updates=updates), NODES)
    strategy = SampledStrategy("random", cohort_size=NUM_CLIENTS)
    play(strategy, grid, 1)
    assert [one.node for one in strategy.refused] == ([NODES[1]] if metric == "other" else [])


def test_a_reply_nobody_asked_for_and_a_second_one_are_left_out():
    grid = LocalGrid(stock_app(), NODES)
    strategy = SampledStrategy("random", cohort_size=3)
    messages = list(strategy.configure_train(1, arrays_of(START), ConfigRecord(), grid))
    replies = grid.send_and_receive(messages)
    drawn = [message.metadata.dst_node_id for message in messages]
    stranger = next(node for node in NODES if node not in drawn)
    strange = grid.send_and_receive([Message(messages[0].content, stranger, "train")])
    moved, _ = strategy.aggregate_train(1, [*strange, *replies, replies[0]])
    assert [one.reason for one in strategy.refused] == ["it was not asked.", "it answers a second time."]
    again = SampledStrategy("random", cohort_size=3)
    messages = again.configure_train(1, arrays_of(START), ConfigRecord(), grid)
    alone, _ = again.aggregate_train(1, grid.send_and_receive(messages))
    assert flat_of(moved).tobytes() == flat_of(alone).tobytes()


def test_a_round_in_which_nobody_is_heard_leaves_the_model_and_the_run_goes_on():
    faults = {(client, 2): raising for client in range(NUM_CLIENTS)}
    strategy = SampledStrategy("aocs", cohort_size=4, settings={"norms": "last-known", "design": "pivotal"})
    first, second, third = play(strategy, LocalGrid(stock_app(faults=faults), NODES), 3)
    assert first.tobytes() == second.tobytes() != third.tobytes()
    assert [len(one.heard) for one in strategy.history] == [4, 0, 4]
    assert len(strategy.refused) == 4


def test_a_step_to_numbers_that_are_not_finite_is_not_taken():
    huge = with_arrays(lambda a: {**a, "bias": array(-3e38)})
    faults = {(client, 2): huge for client in range(NUM_CLIENTS)}
    strategy = SampledStrategy("random", cohort_size=2, rule="horvitz-thompson")
    models = play(strategy, LocalGrid(stock_app(faults=faults), NODES), 3)
    assert sum(strategy.history[1].weights) > 1.0 + 1e-3 or np.isfinite(models[1]).all()
    assert np.isfinite(models).all()


def test_a_designs_empty_cohort_passes():
    strategy = SampledStrategy("aocs", cohort_size=1, settings={"norms": "last-known"})
    play(strategy, LocalGrid(stock_app(), NODES), 12)
    assert {0, 1} <= {len(one.drawn) for one in strategy.history}


def test_a_sampler_learns_from_the_others_when_one_does_not_tell():
    silent = {(client, 3): lambda content: without(content, "train_loss") for client in range(NUM_CLIENTS)}
    silent[(0, 2)] = silent[(0, 3)]
    strategy = SampledStrategy("power-of-choice", cohort_size=NUM_CLIENTS, settings={"losses": "last-known"})
    play(strategy, LocalGrid(stock_app(faults=silent), NODES), 4)
    assert not strategy.refused


def without(content, name):
    kept = {key: value for key, value in content["metrics"].items() if key != name}
    return RecordDict({**content, "metrics": MetricRecord(kept)})


def test_bad_words_on_evaluation_are_left_out_where_fedavg_stops():
    faults = {(2, "evaluate"): lambda _: RecordDict({}), (4, "evaluate"): raising}
    strategy = SampledStrategy("random", cohort_size=2)
    result = strategy.start(LocalGrid(stock_app(faults=faults), NODES), arrays_of(START), 1)
    assert result.evaluate_metrics_clientapp[1] == {"eval_acc": pytest.approx((0.0 + 0.1 + 0.3 + 0.5) / 4)}
    assert sorted(one.node for one in strategy.refused) == sorted([NODES[2], NODES[4]])
    with pytest.raises(InconsistentMessageReplies):
        FedAvg().start(LocalGrid(stock_app(faults=faults), NODES), arrays_of(START), 1)


def test_metrics_that_cannot_be_averaged_do_not_end_the_run():
    def fails(contents, key):
        raise KeyError("accuracy")

    strategy = SampledStrategy("random", cohort_size=2, train_metrics_aggr_fn=fails)
    result = strategy.start(LocalGrid(stock_app(), NODES), arrays_of(START), 2)
    assert result.train_metrics_clientapp == {}
    assert len(strategy.history) == 2


# --- The same again ---


def test_the_same_seed_draws_the_same_clients_whatever_ids_flower_gives_them():
    app = stock_app(all_told, answers_queries=True)
    found = []
    for nodes, seed in ((NODES, 1), (sorted(NODES), 1), (NODES[::-1], 1), (NODES, 2)):
        grid = LocalGrid(app, nodes)
        strategy = SampledStrategy(cohort_size=3, seed=seed, query=True)
        models = play(strategy, grid, 5)
        found.append((partitions(strategy, grid), np.stack(models).tobytes()))
    assert found[0] == found[1] == found[2] != found[3]


def test_the_order_of_replies_and_the_global_generators_change_nothing():
    class Shuffling(LocalGrid):
        def send_and_receive(self, messages, *, timeout=None):
            replies = super().send_and_receive(messages)
            random.shuffle(replies)
            np.random.seed(random.randrange(99))  # noqa: NPY002 - the global generator is the point
            return replies

    found = set()
    for kind in (LocalGrid, Shuffling, Shuffling):
        strategy = SampledStrategy(cohort_size=4, fraction_evaluate=0.5)
        models = play(strategy, kind(stock_app(all_told), NODES), 4)
        found.add(np.stack(models).tobytes())
    assert len(found) == 1


def test_evaluation_asks_as_many_as_told_to_and_the_same_again():
    asked = []
    for _ in range(2):
        grid = LocalGrid(stock_app(), NODES)
        strategy = SampledStrategy("random", cohort_size=2, fraction_evaluate=0.5)
        play(strategy, grid, 2)
        said = [one.metadata for one in grid.replies.values() if one.metadata.message_type == "evaluate"]
        asked.append([one.src_node_id for one in said])
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2 * NUM_CLIENTS // 2


def test_a_round_configured_again_is_drawn_again():
    grid = LocalGrid(stock_app(), NODES)

    def drawn(strategy, server_round):
        messages = strategy.configure_train(server_round, arrays_of(START), ConfigRecord(), grid)
        return [message.metadata.dst_node_id for message in messages]

    strategy = SampledStrategy("random", cohort_size=3)
    attempts = [drawn(strategy, 5) for _ in range(4)]
    assert len({tuple(one) for one in attempts}) > 1
    assert attempts == [drawn(SampledStrategy("random", cohort_size=3), 5), *attempts[1:]]
    assert [drawn(strategy, 6), drawn(strategy, 5)][1] == attempts[0]


def test_the_callers_configuration_is_left_alone():
    config = ConfigRecord({"lr": 0.1})
    strategy = SampledStrategy("random", cohort_size=2)
    messages = list(strategy.configure_train(3, arrays_of(START), config, LocalGrid(stock_app(), NODES)))
    assert dict(config) == {"lr": 0.1}
    assert dict(messages[0].content["config"]) == {"lr": 0.1, "server-round": 3}


# --- Who is there ---


def test_clients_come_and_go():
    grid = LocalGrid(stock_app(), NODES)
    grid.node_ids = NODES[:4]
    strategy = SampledStrategy("aocs", cohort_size=3, settings={"norms": "last-known", "design": "pivotal"})
    arrays = arrays_of(START)
    for server_round in range(1, 31):
        if server_round == 6:
            grid.node_ids = NODES
        if server_round == 16:
            grid.node_ids = NODES[2:]
        messages = strategy.configure_train(server_round, arrays, ConfigRecord(), grid)
        arrays, _ = strategy.aggregate_train(server_round, grid.send_and_receive(messages))
    drawn = partitions(strategy, grid)
    assert {client for cohort in drawn[:5] for client in cohort} == {0, 1, 2, 3}
    assert {client for cohort in drawn[5:15] for client in cohort} == set(range(6))
    assert {client for cohort in drawn[15:] for client in cohort} == {2, 3, 4, 5}
    assert not strategy.refused


def test_a_client_whose_budget_is_spent_is_drawn_no_more():
    left = dict.fromkeys(range(NUM_CLIENTS), 3)

    def tells(client):
        left[client] = max(0, left[client] - 1)
        return {"budget": float(left[client])}

    grid = LocalGrid(stock_app(tells), NODES)
    strategy = SampledStrategy(cohort_size=2)
    with pytest.raises(QuorumNotReached, match="no client with a budget left"):
        play(strategy, grid, 20)
    drawn = [client for cohort in partitions(strategy, grid) for client in cohort]
    assert sorted(drawn) == sorted(3 * list(range(NUM_CLIENTS)))
    assert not strategy.refused


def test_too_few_nodes_are_waited_for_and_then_told():
    grid = LocalGrid(stock_app(), NODES[:2])
    with pytest.raises(QuorumNotReached, match="2 of 3 nodes"):
        play(SampledStrategy("random", cohort_size=3, patience_seconds=0.05), grid, 1)


def test_clients_that_do_not_answer_the_query_are_known_once_they_are_heard():
    grid = LocalGrid(stock_app(all_told), NODES)
    strategy = SampledStrategy(cohort_size=3, query=True)
    play(strategy, grid, 3)
    assert [one.phase for one in strategy.refused] == ["query"] * NUM_CLIENTS
    assert "No query function registered" in strategy.refused[0].reason
    assert len(strategy.history) == 3


def test_numbers_of_other_types_keep_their_types():
    start = {
        "running_var": np.array([1.0, 2.0], np.float32),
        "num_batches_tracked": np.array(4, np.int64),
        "half": np.array([0.5], np.float16),
        "double": np.array([[0.1]]),
    }
    app = ClientApp()

    @app.train()
    def train(message, context):
        client = context.node_config["partition-id"]
        arrays = {name: array.numpy() for name, array in message.content["arrays"].items()}
        moved = {name: Array(np.asarray(array + client, array.dtype)) for name, array in arrays.items()}
        metrics = MetricRecord({"num-examples": 6 - client})
        return Message(RecordDict({"arrays": ArrayRecord(moved), "metrics": metrics}), reply_to=message)

    strategy = SampledStrategy("random", cohort_size=6)
    grid = LocalGrid(app, NODES)
    arrays = ArrayRecord({name: Array(array) for name, array in start.items()})
    moved, _ = strategy.aggregate_train(
        1, grid.send_and_receive(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    )
    for name, before in start.items():
        after = moved[name].numpy()
        assert (after.dtype, after.shape) == (before.dtype, before.shape)
        # Σ i·(6 − i)/Σ (6 − i) = 35/21.
        digits = {"half": 1e-3, "running_var": 1e-6, "double": 1e-14}
        assert after == (6 if name == "num_batches_tracked" else pytest.approx(before + 35 / 21, rel=digits[name]))


# --- The example ---

EXAMPLE = Path(__file__).parents[3] / "examples" / "flower_stock"


def test_the_example_changes_three_lines():
    stock, ours = ((EXAMPLE / "digits_app" / name).read_text() for name in ("server_app.py", "sampled_server_app.py"))
    lines = list(difflib.unified_diff(stock.splitlines(), ours.splitlines(), n=0, lineterm=""))[2:]
    for mark in "-+":
        assert sum(line.startswith(mark) for line in lines) == 3
    readme = (EXAMPLE / "README.md").read_text()
    assert all(line in readme for line in lines if line[0] in "-+")


@pytest.mark.parametrize("name", ["server_app", "sampled_server_app"])
def test_the_example_learns_with_either_server(monkeypatch, name):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    client = importlib.import_module("digits_app.client_app").app
    server = importlib.import_module(f"digits_app.{name}")
    said, evaluate = [], server.global_evaluate
    monkeypatch.setattr(server, "global_evaluate", lambda *round_: said.append(evaluate(*round_)["accuracy"]))
    config = {"num-server-rounds": 2, "learning-rate": 0.1, "batch-size": 16, "local-epochs": 2}
    config |= {"fraction-train": 0.75, "cohort-size": 3, "fraction-evaluate": 0.0}
    grid = LocalGrid(client, range(100, 104), config)
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        server.app(grid, grid.contexts[100])
    assert len(said) == 3
    assert said[-1] > 0.6 > 0.3 > said[0]
