"""Whole runs on a few digits: every sampler, against federated averaging written out, stopped and resumed."""

import copy
import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest
import torch
from tiny_runs import Watcher, play, prepared, tiny
from torch.nn import functional

from fedpcs import _random
from fedpcs.errors import BudgetExhausted, FedpcsError, Interrupted, InvalidInput
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.sampling import SAMPLERS
from fedpcs.trial import preflight, run
from fedpcs.trial import server_plan as trial_plan
from fedpcs.trial.records import StudyResult
from fedpcs.trial.run_store import RunStore


def rows_of(store, table):
    with closing(sqlite3.connect(store.ledger)) as ledger:
        return ledger.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_runs_end_to_end(tmp_path, name):
    config = tiny(sampling={"samplers": [name]}, data={"partition": "dirichlet"})
    finished, store = play(tmp_path, config)
    records = store.rounds()
    assert (finished.ended_by, [record.round for record in records]) == ("rounds", [0, 1, 2])
    assert np.isfinite(finished.model).all()
    drawn = np.zeros(8, int)
    for record in records:
        drawn[record.cohort] += 1
        assert record.heard == record.cohort != []
    assert finished.state.tally.drawn.tolist() == drawn.tolist()
    charged = sum(len(record.cohort) for record in records)
    assert len(rows_of(store, "charges")) == len(rows_of(store, "rewards")) == charged


@pytest.mark.parametrize("mode", ["none", "record"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("delta", {"score": "authors-code"}),
        ("aocs", {"norms": "last-known", "subtract_noise": True}),
        ("power-of-choice", {"losses": "last-known"}),
        ("optimal", {"norms": "current"}),
    ],
)
def test_samplers_that_learn_do_so_in_other_modes_and_settings(tmp_path, mode, name, settings):
    config = tiny(
        rounds=2,
        sampling={"samplers": [name], "settings": {name: settings}},
        privacy={"mode": mode},
        training={"batch_size": 0},
    )
    finished, _ = play(tmp_path, config)
    assert finished.ended_by == "rounds"
    memory = finished.state.memory
    assert name == "optimal" or any(value.size and np.asarray(value).any() for value in memory.values())


def test_a_sampler_that_needs_what_no_run_provides_says_what(tmp_path):
    config = tiny(sampling={"samplers": ["delta"], "settings": {"delta": {"information": "ideal"}}})
    with pytest.raises(InvalidInput, match="needs gradient_") as refused:
        play(tmp_path, config)
    assert len(str(refused.value).splitlines()) == 1


def test_a_draw_of_nobody_is_a_round_without_a_step_and_ends_no_run(tmp_path):
    """A Poisson design with K = 1 draws nobody in a third of all draws."""
    config = tiny(
        rounds=17,
        data={"num_clients": 8},
        sampling={"samplers": ["aocs"], "sampling_ratio": 0.125},
        privacy={"mode": "none"},
    )
    assert play(tmp_path, config, evaluate_every=100)[0].ended_by == "rounds"


def test_a_run_of_everyone_is_federated_averaging_written_out(tmp_path):
    """McMahan et al. 2017, Algorithm 1: every client's minibatch SGD, averaged by data size."""
    config = tiny(
        rounds=2,
        data={"num_clients": 5, "partition": "dirichlet"},
        privacy={"mode": "none"},
        sampling={"sampling_ratio": 1.0},
        training={"local_epochs": 2, "server_momentum": 0.5},
    )
    finished, _ = play(tmp_path, config)
    plan, model, data = prepared(config)
    weights = flat_parameters(model).astype(np.float64)
    velocity = np.zeros_like(weights)
    for t in range(2):
        updates = []
        for client in range(5):
            local = copy.deepcopy(model)
            torch.nn.utils.vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), local.parameters())
            inputs, targets = data.records(client)
            order = _random.generator(0, "batches", t, client)
            for _ in range(2):
                shuffled = order.permutation(len(targets))
                for start in range(0, len(targets), 40):
                    chosen = shuffled[start : start + 40]
                    loss = functional.cross_entropy(local(inputs[chosen]), targets[chosen])
                    gradients = torch.autograd.grad(loss, list(local.parameters()))
                    with torch.no_grad():
                        for one, gradient in zip(local.parameters(), gradients, strict=True):
                            one -= 0.5 * gradient
            updates.append(weights - flat_parameters(local))
        velocity = 0.5 * velocity + data.num_samples / data.num_samples.sum() @ np.array(updates)
        weights = weights - velocity
    assert np.linalg.norm(finished.model - weights) < 1e-5 * np.linalg.norm(weights - flat_parameters(model))
    assert plan.num_rounds == 2
    right = 0
    torch.nn.utils.vector_to_parameters(torch.from_numpy(weights.astype(np.float32)), model.parameters())
    inputs, targets = data.tests(0, data.num_tests)
    with torch.no_grad():
        right = int((model(inputs).argmax(1) == targets).sum())
    assert finished.score.accuracy == pytest.approx(right / data.num_tests, abs=1.5 / data.num_tests)
    assert right > 0.7 * data.num_tests


def stop_after(num_replies):
    count = iter(range(10**9))
    return lambda: next(count) >= num_replies


@pytest.mark.parametrize(("kind", "checkpoint_every"), [("in-process", 1), ("in-process", 3), ("workers", 2)])
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(tmp_path, kind, checkpoint_every):
    config = tiny(
        rounds=4,
        checkpoint_every=checkpoint_every,
        sampling={"samplers": ["oort"]},
        training={"server_momentum": 0.9, "averaging": 0.5},
    )
    whole, whole_store = play(tmp_path / "whole", config)
    with pytest.raises(Interrupted):
        play(tmp_path / "cut", config, kind=kind, wants_stop=stop_after(10))  # in the third round
    done, store = play(tmp_path / "cut", config, kind=kind)
    assert done.model.tobytes() == whole.model.tobytes()
    assert (done.score, done.spent, done.state.paid) == (whole.score, whole.spent, whole.state.paid)
    assert store.log.read_bytes() == whole_store.log.read_bytes()
    # But for the hour: who was charged and owed what, once.
    for table in ("charges", "rewards"):
        assert len(rows_of(store, table)) == len(rows_of(whole_store, table)) == 16


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory):
    """A run of two samplers through the front door."""
    folder = tmp_path_factory.mktemp("runs") / "one"
    watcher = Watcher()
    config = tiny(sampling={"samplers": ["fedpcs", "random"]}, privacy={"limit_epsilon": 30.0})
    store = run.start_run(config, folder, None, watcher)
    return config, store, watcher


def test_a_run_keeps_what_it_was_asked_for(finished_run):
    config, store, _ = finished_run
    assert store.config() == config
    assert store.manifest.config == config.model_dump(mode="json")
    assert store.manifest.data.name == "digits"


def test_a_result_has_every_trial_in_the_order_asked_for(finished_run):
    _, store, watcher = finished_run
    result = store.result
    assert [(trial.sampler, trial.seed) for trial in result.trials] == [("fedpcs", 0), ("random", 0)]
    assert result.is_exhausted is False
    assert len(watcher.records) == 6
    run.raise_if_exhausted(store)


def test_the_model_that_is_kept_is_the_one_that_was_scored(finished_run):
    config, store, _ = finished_run
    dataset = load_dataset("digits")
    for trial in store.result.trials:
        model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=99)
        kept = torch.load(store.trial(trial.sampler, 0).folder / "model.pt", weights_only=True)
        model.load_state_dict(kept)
        inputs, targets = prepared(config)[2].tests(0, len(dataset.test_targets))
        with torch.no_grad():
            scores = model(inputs)
        assert trial.accuracy == pytest.approx(float((scores.argmax(1) == targets).float().mean()), abs=1e-6)
        assert trial.loss == pytest.approx(float(functional.cross_entropy(scores, targets)), rel=1e-5)


def test_what_was_spent_and_owed_is_what_the_ledger_has(finished_run):
    _, store, _ = finished_run
    for trial in store.result.trials:
        with closing(sqlite3.connect(store.trial(trial.sampler, 0).ledger)) as ledger:
            spent = dict(ledger.execute("SELECT client, SUM(rho_nanos) FROM charges GROUP BY client").fetchall())
            (paid,) = ledger.execute("SELECT SUM(amount_nanos) FROM rewards").fetchone()
        assert trial.spent.rho.maximum == pytest.approx(max(spent.values()) / 1e9)
        assert trial.spent.num_clients == len(spent)
        assert trial.paid == pytest.approx(paid / 1e9, abs=1e-6)


def test_resuming_what_is_done_does_nothing_and_says_so(finished_run):
    _, store, _ = finished_run
    before = {path: path.read_bytes() for path in store.folder.rglob("*") if path.is_file() and path.name != "lock"}
    watcher = Watcher()
    run.resume_run(store.folder, watcher)
    assert [words for words in watcher.said if "done already" in words]
    assert watcher.records == []
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_in_use_is_not_written_over(finished_run):
    config, store, _ = finished_run
    with pytest.raises(InvalidInput, match="is not empty"):
        run.start_run(config, store.folder, None, Watcher())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"sampling": {"samplers": ["no_such_module:Sampler"]}},
            "'no_such_module:Sampler' cannot be imported",
        ),
        ({"sampling": {"samplers": ["oort"], "rule": "hajek"}}, "hajek"),
        ({"sampling": {"samplers": ["delta"], "settings": {"delta": {"information": "ideal"}}}}, "delta"),
        ({"data": {"num_clients": 2000}}, "num_clients"),
    ],
)
def test_what_can_be_known_before_the_start_is_refused_before_anything_is_written(tmp_path, changes, words):
    with pytest.raises(FedpcsError, match=words) as refused:
        run.start_run(tiny(**changes), tmp_path / "run", None, Watcher())
    assert len(str(refused.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("num_candidates", "sampling_ratio", "is_good"), [(1, 0.125, True), (3, 0.5, False)])
def test_samplers_are_tried_out_on_as_many_clients_as_there_are(num_candidates, sampling_ratio, is_good):
    settings = {"power-of-choice": {"num_candidates": num_candidates}}
    config = tiny(sampling={"samplers": ["power-of-choice"], "settings": settings, "sampling_ratio": sampling_ratio})
    if is_good:
        preflight.dry_run(config, load_dataset("digits"))
    else:
        with pytest.raises(InvalidInput, match="candidates"):
            preflight.dry_run(config, load_dataset("digits"))


def test_an_exhausted_run_is_told_from_a_finished_one(tmp_path):
    store = RunStore(tmp_path)
    store.finish(StudyResult(name="x", trials=[], is_exhausted=True))
    with pytest.raises(BudgetExhausted) as ended:
        run.raise_if_exhausted(store)
    assert ended.value.exit_code == 4
    run.raise_if_exhausted(RunStore(tmp_path / "unfinished"))


def test_presence_is_from_when_a_client_joins_until_before_it_leaves():
    config = tiny(
        presence=[{"client": 1, "joins": 2}, {"client": 3, "leaves": 1}, {"client": 5, "joins": 1, "leaves": 3}]
    )
    away = [np.flatnonzero(~trial_plan.presence(config, t)).tolist() for t in range(4)]
    assert away == [[1, 5], [1, 3], [3], [3, 5]]


def test_the_limit_is_the_largest_budget_that_keeps_epsilon():
    from fedpcs.privacy.conversion import to_epsilon

    for noise, law in (("fast", "exact"), ("secure", "exact"), ("exact", "tight")):
        privacy = tiny(privacy={"limit_epsilon": 8.0, "noise": noise, "delta": 1e-5}).privacy
        limit = trial_plan._limit(privacy)
        assert to_epsilon(limit, 1e-5, law) <= 8.0
        assert to_epsilon(type(limit)(limit.nanos + 2), 1e-5, law) > 8.0 - 1e-7
    assert trial_plan._limit(tiny().privacy) is None


def test_log_lines_hold_nothing_of_the_hour_or_the_machine(finished_run):
    _, store, _ = finished_run
    lines = store.trial("random", 0).log.read_text().splitlines()
    for line in lines:
        assert not {"time", "seconds", "host", "pid"} & set(json.loads(line))


@pytest.mark.parametrize("samplers", [["random", "fedpcs"], ["fedpcs", "random"]])
def test_a_game_is_shared_by_those_who_play_it_whatever_their_order(tmp_path, samplers):
    """Without noise random sampling plays no game, and FedPCS does, though told to believe in the same draw."""
    config = tiny(
        privacy={"mode": "none"}, sampling={"samplers": samplers, "rule": "default"}, game={"selection": "budget-aware"}
    )
    store = run.start_run(config, tmp_path / "run")
    standing = {trial.sampler: trial.game.standing for trial in store.result.trials}
    assert standing == {"random": "not-played", "fedpcs": "converged"}


def test_validation_records_are_never_called_test_records(tmp_path):
    from fedpcs.report.study import write_study

    store = run.start_run(tiny(data={"validation_share": 0.3}), tmp_path / "run")
    assert store.manifest.data.evaluated_on == "validation records"
    page = write_study(store.folder).report.read_text()
    assert "Of the last model, on validation records" in page
