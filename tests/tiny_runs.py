"""Runs on a few digits that take tens of milliseconds: what the tests of whole runs share."""

import functools
from typing import Any, NamedTuple

from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.learning.client import ClientSide
from fedpcs.learning.datasets import load_dataset
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import make_sampler
from fedpcs.trial.assemble import Trial, dealt_out
from fedpcs.trial.config import RunConfig
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.schedule import make_schedule
from fedpcs.trial.server_plan import server_plan
from fedpcs.trial.store import TrialStore

_TABLES = {
    "name": "tiny",
    "rounds": 3,
    "data": {"num_clients": 8, "partition": "iid"},
    "training": {"learning_rate": 0.5, "batch_size": 40},
    "privacy": {"mode": "client", "clip_norm": 0.5},
    "game": {"budget_unit": 0.01, "reward": 20.0},
    "sampling": {"samplers": ["random"], "sampling_ratio": 0.5},
    "engine": {"kind": "in-process"},
}


def tiny(**changes):
    """The tiny run, with some keys of its tables changed: `tiny(rounds=4, privacy={"mode": "none"})`."""
    tables = {name: {**value} if isinstance(value, dict) else value for name, value in _TABLES.items()}
    for name, value in changes.items():
        tables[name] = {**tables.get(name, {}), **value} if isinstance(value, dict) else value
    return RunConfig.model_validate(tables)


class Watcher:
    """Keeps what a run says."""

    def __init__(self):
        self.said, self.records = [], []

    def say(self, words):
        self.said.append(words)

    def begin(self, trial, num_rounds, num_done):
        self.said.append(f"{trial}: {num_done} of {num_rounds}")

    def round_done(self, record, seconds):
        self.records.append(record)


class Prepared(NamedTuple):
    """All that a trial needs, made once."""

    plan: ServerPlan
    model: Any
    data: Any


@functools.cache
def _prepared(text):
    config = RunConfig.model_validate_json(text)
    trial = Trial(config.sampling.samplers[0], config.seeds[0])
    dataset = load_dataset(config.data.name)
    sampler = make_sampler(trial.sampler, **config.sampling.settings.get(trial.sampler, {}))
    data = dealt_out(config, dataset, trial.seed)
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=trial.seed)
    return Prepared(server_plan(config, trial, sampler, make_schedule(config, sampler), data, model), model, data)


def prepared(config):
    """All that a configuration's first trial needs."""
    return _prepared(config.model_dump_json())


def play(folder, config, *, kind="in-process", **settings):
    """Run a configuration's first trial in a folder, or go on with it; return its end and its store."""
    plan, model, data = prepared(config)
    store = TrialStore(folder)
    store.create()
    if kind == "in-process":
        engine = InProcessEngine(ClientSide(plan.client, model, data))
    else:
        engine = WorkerEngine(plan.client, model, data, num_workers=2, num_slots=4)
    try:
        how = Settings(**{"delta": 1e-5, "checkpoint_every": config.checkpoint_every, **settings})
        return run_trial(plan, flat_parameters(model), engine, store, how), store
    finally:
        engine.close()
