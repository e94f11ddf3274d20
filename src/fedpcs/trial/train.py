"""The one way to start a trial or to go on with it, and what trials share that run in one process."""

from __future__ import annotations

import functools
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn

from fedpcs._files import write_json
from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.errors import DeviceLost
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import PartitionedData
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.layout import flat_parameters, load_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import Sampler
from fedpcs.trial import flower_run
from fedpcs.trial.assemble import Trial, counts_of, dealt_out, device_of, load_for, presence, sampler_of, server_plan
from fedpcs.trial.config import RunConfig
from fedpcs.trial.loop import Settings, run_trial
from fedpcs.trial.observer import Observer
from fedpcs.trial.records import DataIdentity
from fedpcs.trial.replanning import Replanner
from fedpcs.trial.results import trial_result
from fedpcs.trial.run_store import check_free, check_same, is_by_this_code, locked, make_manifest
from fedpcs.trial.schedule import is_played, selection_of
from fedpcs.trial.schedule_store import remembered_schedule, schedule_key, schedule_path
from fedpcs.trial.store import TrialStore
from fedpcs.trial.tensorboard_log import tensorboard_log

if TYPE_CHECKING:
    from fedpcs.engines.flower.simulation import Federation

_MOST_COUNTS = 20_000
# What to do with a trial that other code, data or settings have begun.
IfChanged = Literal["refuse", "go on", "begin again"]


@dataclass
class Session:
    """What trials share that run in one process.

    Attributes:
        dataset: On what.
        data_dir: Where it lies.
        games: Folder of solved games.
        observer: Whom to tell.
        device: Where to train; the CPU from the moment that another is lost.
        notes: What manifests must say.
        federation: Clients that Flower plays; None with an engine of our own.
        schedules: The games solved so far, by their keys.
    """

    dataset: Dataset
    data_dir: Path | None
    games: Path
    observer: Observer
    device: str
    notes: list[str]
    federation: Federation | None = None
    schedules: dict[str, Schedule] = field(default_factory=dict)


def open_session(config: RunConfig, data_dir: Path | None, games: Path, observer: Observer) -> Session:
    """Return what trials of a configuration share; Flower's clients come with `federated`."""
    device, notes = device_of(config)
    return Session(load_for(config, data_dir), data_dir, games, observer, device, notes)


@contextmanager
def federated(session: Session, config: RunConfig) -> Iterator[None]:
    """Have Flower play the clients of all trials in the block, if the run is to."""
    if config.engine.kind != "flower":
        yield
        return
    with flower_run.flower_federation(config, session.data_dir, session.device) as federation:
        session.federation = federation
        yield


def identity_of(config: RunConfig, dataset: Dataset) -> DataIdentity:
    """Return which data a run reads."""
    return DataIdentity(
        name=dataset.name,
        checksum=dataset.checksum,
        num_train=len(dataset.train_targets),
        num_test=len(dataset.test_targets),
        evaluated_on=config.data.evaluated_on,
    )


def train(
    config: RunConfig,
    store: TrialStore,
    session: Session,
    wants_stop: Callable[[], bool] = lambda: False,
    if_changed: IfChanged = "refuse",
) -> None:
    """Run one trial from its first round, or from its last checkpoint, to its result; nothing if it has one.

    Args:
        config: With one sampler and one seed.
        store: Where the trial is kept.
        session: What it shares with others.
        wants_stop: Asked between clients; true once the user wants the trial to stop.
        if_changed: What to do if other code, data or settings have begun it.

    Raises:
        InUse: Another process is at it.
        InvalidInput: Something differs from how it was begun, or its folder holds something else.
        DeviceLost: The device is gone, and the run is not to go on without.
    """
    trial = Trial(config.sampling.samplers[0], config.seeds[0])
    if store.result is not None:
        session.observer.begin(f"{trial.sampler}, seed {trial.seed}", config.rounds, config.rounds)
        return
    began = time.monotonic()
    with locked(store.folder):
        is_new = _begin(config, store, session, if_changed)
        try:
            _run(config, trial, store, session, wants_stop)
        except DeviceLost as error:
            if config.engine.if_device_lost == "stop" or session.device == "cpu":
                raise
            session.observer.say(f"{error} Going on on the CPU.")
            session.device = "cpu"
            session.notes.append(f"{error} Trained on the CPU from there on.")
            store.add_note(session.notes[-1])
            _run(config, trial, store, session, wants_stop)
        if is_new:
            write_json(store.folder / "seconds.json", round(time.monotonic() - began, 3))


def _begin(config: RunConfig, store: TrialStore, session: Session, if_changed: IfChanged) -> bool:
    """Write down what a trial is, or check that it is what was begun; return whether it is new."""
    if store.has_begun and if_changed == "begin again" and not is_by_this_code(store, config):
        _empty(store.folder)
    now = make_manifest(config, identity_of(config, session.dataset), session.data_dir, list(session.notes))
    if store.has_begun:
        check_same(store, now, force=if_changed == "go on")
        for note in session.notes:
            store.add_note(note)
        return False
    check_free(store.folder)
    store.begin(config, now)
    return True


def _empty(folder: Path) -> None:
    """Delete what is in a folder but its lock, which is held. The manifest goes last: until then it is a trial."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "manifest.json"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _run(config: RunConfig, trial: Trial, store: TrialStore, session: Session, wants_stop: Callable[[], bool]) -> None:
    dataset, observer = session.dataset, session.observer
    sampler = sampler_of(config, trial.sampler)
    schedule = _schedule(config, session, sampler)
    data = dealt_out(config, dataset, trial.seed)
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=trial.seed)
    plan = server_plan(config, trial, sampler, schedule, data, model, session.device)
    observed = tensorboard_log(store.folder, observer) if config.tensorboard else nullcontext(observer)
    with _engine(config, session, plan, model, data) as engine, observed as watching:
        watching.begin(f"{trial.sampler}, seed {trial.seed}", plan.num_rounds, len(store.rounds()))
        may_replan = config.game.replan == "on-change" and schedule.standing != "not-played"
        settings = Settings(
            delta=float(config.privacy.delta),
            evaluate_every=config.evaluate_every,
            checkpoint_every=config.checkpoint_every,
            redraws=config.engine.redraws,
            presence=functools.partial(presence, config) if config.presence else None,
            wants_stop=wants_stop,
            say=watching.say,
            notify=watching.round_done,
            replan=Replanner(config, sampler, schedule) if may_replan else None,
        )
        finished = run_trial(plan, flat_parameters(model), engine, store, settings)
    load_parameters(model, torch.from_numpy(finished.model))
    store.save_model(model.state_dict())
    store.finish(trial_result(config, trial, sampler, plan, schedule, finished, data.num_tests, _label_counts(data)))


def _schedule(config: RunConfig, session: Session, sampler: Sampler) -> Schedule:
    """Return the schedule of the game a sampler's clients play; it is solved once for all seeds."""
    key = schedule_key(config, sampler)
    if key not in session.schedules:
        is_known = schedule_path(session.games, config, sampler).exists()
        if is_played(config, sampler) and not is_known:
            selection = selection_of(config, sampler)
            session.observer.say(f"solving the game clients play under {selection} sampling …")
        session.schedules[key] = remembered_schedule(session.games, config, sampler)
    return session.schedules[key]


@contextmanager
def _engine(
    config: RunConfig, session: Session, plan: ServerPlan, model: nn.Module, data: PartitionedData
) -> Iterator[Engine]:
    engine = _make_engine(config, session, plan, model, data)
    try:
        yield engine
    finally:
        engine.close()


def _make_engine(
    config: RunConfig, session: Session, plan: ServerPlan, model: nn.Module, data: PartitionedData
) -> Engine:
    deadline = float(config.engine.deadline_seconds)
    if session.federation is not None:
        return flower_run.flower_engine(session.federation, plan.client, model, data, deadline)
    if config.engine.kind == "in-process":
        return InProcessEngine(ClientSide(plan.client, model, data), deadline)
    return WorkerEngine(
        plan.client,
        model,
        data,
        num_workers=config.engine.num_workers,
        num_slots=int(plan.schedule.cohort_size.max()),
        deadline_seconds=deadline,
    )


def _label_counts(data: PartitionedData) -> list[list[int]] | None:
    """Return how many records of each class a client has, for figures; None of a population too large to show."""
    if data.num_samples.size * data.num_classes > _MOST_COUNTS:
        return None
    found: list[list[int]] = counts_of(data).astype(int).tolist()
    return found
