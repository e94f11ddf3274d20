"""A whole run: the data, the games, every sampler with every seed. What `fedpcs run` and `resume` call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import nn

from fedpcs._processes import refuse_import_of_script
from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.errors import BudgetExhausted, DeviceLost, InvalidInput
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client import ClientSide
from fedpcs.learning.client_data import PartitionedData
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.layout import flat_parameters, load_parameters
from fedpcs.learning.models import make_model
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import Sampler
from fedpcs.trial import flower_run
from fedpcs.trial.assemble import (
    Trial,
    counts_of,
    dealt_out,
    delta_note,
    device_of,
    load_for,
    presence,
    sampler_of,
    server_plan,
)
from fedpcs.trial.config import RunConfig
from fedpcs.trial.loop import Settings, run_trial
from fedpcs.trial.preflight import try_out, untrained_classes
from fedpcs.trial.records import DataIdentity, RoundRecord
from fedpcs.trial.replanning import Replanner
from fedpcs.trial.results import run_result, trial_result
from fedpcs.trial.run_store import RunStore, check_free, check_same, create_run, locked, make_manifest, open_run
from fedpcs.trial.schedule import is_played, selection_of
from fedpcs.trial.schedule_store import remembered_schedule, schedule_key, schedule_path
from fedpcs.trial.stop_signal import stop_signal
from fedpcs.trial.tensorboard_log import check_installed, tensorboard_log

if TYPE_CHECKING:
    from fedpcs.engines.flower.simulation import Federation

_MOST_COUNTS = 20_000
Notify = Callable[[RoundRecord, float], None]


class Silent:
    """A watcher that says nothing."""

    def say(self, words: str) -> None:
        """Say nothing."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """Say nothing."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Say nothing."""


class Watcher(Protocol):
    """Whom a run tells how it goes."""

    def say(self, words: str) -> None:
        """Something happened."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """A trial begins, with some of its rounds done before."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """A round was saved."""


@dataclass(frozen=True)
class _Session:
    """What all trials of a run share.

    Attributes:
        store: The run's folder.
        config: What to run.
        dataset: On what.
        watcher: Whom to tell.
        games: Folder of solved games.
        federation: Clients that Flower plays; None with an engine of our own.
        schedules: The games solved so far, by their keys.
    """

    store: RunStore
    config: RunConfig
    dataset: Dataset
    watcher: Watcher
    games: Path
    federation: Federation | None
    schedules: dict[str, Schedule] = field(default_factory=dict)


def start_run(
    config: RunConfig,
    folder: Path,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
    *,
    games: Path | None = None,
) -> RunStore:
    """Run a configuration from the beginning, in a new folder.

    Args:
        config: What to run.
        folder: Where to keep it.
        data_dir: Where data sets lie.
        watcher: Whom to tell how it goes.
        games: Folder of solved games, which several runs may share; None: the run's own.
    """
    refuse_import_of_script()
    watcher = watcher or Silent()
    device, notes = device_of(config)
    dataset = load_for(config, data_dir)
    if config.tensorboard:
        check_installed()
    if config.engine.kind == "flower":
        flower_run.check_installed()
    try_out(config, dataset)
    for words in filter(None, (untrained_classes(dataset), delta_note(config))):
        notes.append(words)
        watcher.say(words)
    check_free(folder)
    with locked(folder):
        store = create_run(folder, config, make_manifest(config, _identity(config, dataset), data_dir, notes))
        with _federation(config, data_dir, device) as federation:
            session = _Session(store, config, dataset, watcher, games or folder / "games", federation)
            return _carry_on(session, device)


def resume_run(
    folder: Path,
    watcher: Watcher | None = None,
    *,
    force: bool = False,
    data_dir: Path | None = None,
    games: Path | None = None,
) -> RunStore:
    """Go on with a run that was stopped, from its last checkpoints; its data may lie elsewhere now, in `data_dir`.

    Raises:
        InvalidInput: Configuration, code or data are no longer those it began with, and `force` is not set.
    """
    refuse_import_of_script()
    watcher = watcher or Silent()
    store = open_run(folder)
    if (folder / "roster.json").exists():
        raise InvalidInput(
            f"{folder} is a deployment's: its clients are on machines of their own. Start its server app again, with "
            "`flwr run`."
        )
    with locked(folder):
        config, before = store.config_as_it_stands(), store.manifest
        if store.result is not None:
            store.config()  # a result belongs to the configuration it was made with
            watcher.say(f"{folder} is done already.")
            return store
        if data_dir is None and before.data_dir is not None:
            data_dir = Path(before.data_dir)
        device, notes = device_of(config)
        dataset = load_for(config, data_dir)
        check_same(store, make_manifest(config, _identity(config, dataset), data_dir, notes), force=force)
        for note in notes:
            store.add_note(note)
        with _federation(config, data_dir, device) as federation:
            session = _Session(store, config, dataset, watcher, games or folder / "games", federation)
            return _carry_on(session, device)


@contextmanager
def _federation(config: RunConfig, data_dir: Path | None, device: str) -> Iterator[Federation | None]:
    """Give the clients of a whole run if Flower plays them."""
    if config.engine.kind != "flower":
        yield None
        return
    with flower_run.flower_federation(config, data_dir, device) as federation:
        yield federation


def _carry_on(session: _Session, device: str) -> RunStore:
    """Do what is not done yet: trials, then the result."""
    store, config, watcher = session.store, session.config, session.watcher
    if config.data.validation_share > 0.0:
        watcher.say("accuracies are on validation records, for tuning; test records are not read")
    with stop_signal() as stopping:
        for trial in [Trial(sampler, seed) for seed in config.seeds for sampler in config.sampling.samplers]:
            if store.trial(trial.sampler, trial.seed).result is not None:
                watcher.begin(f"{trial.sampler}, seed {trial.seed}", config.rounds, config.rounds)
                continue
            try:
                _run_one(session, trial, device, stopping.is_set)
            except DeviceLost as error:
                if config.engine.if_device_lost == "stop" or device == "cpu":
                    raise
                store.add_note(f"{error} Trained on the CPU from there on.")
                watcher.say(f"{error} Going on on the CPU.")
                device = "cpu"
                _run_one(session, trial, device, stopping.is_set)
    store.finish(run_result(store, config))
    return store


def _run_one(session: _Session, trial: Trial, device: str, wants_stop: Callable[[], bool]) -> None:
    config, dataset, watcher = session.config, session.dataset, session.watcher
    sampler = sampler_of(config, trial.sampler)
    schedule = _schedule(session, sampler)
    data = dealt_out(config, dataset, trial.seed)
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=trial.seed)
    plan = server_plan(config, trial, sampler, schedule, data, model, device)
    store = session.store.trial(trial.sampler, trial.seed)
    store.create()
    with _engine(session, plan, model, data) as engine, _notifier(session, store.folder) as notify:
        watcher.begin(f"{trial.sampler}, seed {trial.seed}", plan.num_rounds, len(store.rounds()))
        settings = _settings(session, sampler, schedule, notify, wants_stop)
        finished = run_trial(plan, flat_parameters(model), engine, store, settings)
    load_parameters(model, torch.from_numpy(finished.model))
    store.save_model(model.state_dict())
    store.finish(trial_result(config, trial, sampler, plan, schedule, finished, data.num_tests, _label_counts(data)))


def _schedule(session: _Session, sampler: Sampler) -> Schedule:
    """Return the schedule of the game a sampler's clients play; it is solved once for all seeds."""
    key = schedule_key(session.config, sampler)
    if key not in session.schedules:
        is_known = schedule_path(session.games, session.config, sampler).exists()
        if is_played(session.config, sampler) and not is_known:
            selection = selection_of(session.config, sampler)
            session.watcher.say(f"solving the game clients play under {selection} sampling …")
        session.schedules[key] = remembered_schedule(session.games, session.config, sampler)
    return session.schedules[key]


@contextmanager
def _engine(session: _Session, plan: ServerPlan, model: nn.Module, data: PartitionedData) -> Iterator[Engine]:
    engine = _make_engine(session, plan, model, data)
    try:
        yield engine
    finally:
        engine.close()


def _make_engine(session: _Session, plan: ServerPlan, model: nn.Module, data: PartitionedData) -> Engine:
    config = session.config
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


def _settings(
    session: _Session, sampler: Sampler, schedule: Schedule, notify: Notify, wants_stop: Callable[[], bool]
) -> Settings:
    config = session.config
    may_replan = config.game.replan == "on-change" and schedule.standing != "not-played"
    return Settings(
        delta=float(config.privacy.delta),
        evaluate_every=config.evaluate_every,
        checkpoint_every=config.checkpoint_every,
        redraws=config.engine.redraws,
        presence=functools.partial(presence, config) if config.presence else None,
        wants_stop=wants_stop,
        say=session.watcher.say,
        notify=notify,
        replan=Replanner(config, sampler, schedule) if may_replan else None,
    )


@contextmanager
def _notifier(session: _Session, folder: Path) -> Iterator[Notify]:
    """Give whom to tell of finished rounds: the watcher, and TensorBoard if asked for."""
    if not session.config.tensorboard:
        yield session.watcher.round_done
        return
    with tensorboard_log(folder) as write:

        def notify(record: RoundRecord, seconds: float) -> None:
            write(record)
            session.watcher.round_done(record, seconds)

        yield notify


def _identity(config: RunConfig, dataset: Dataset) -> DataIdentity:
    return DataIdentity(
        name=dataset.name,
        checksum=dataset.checksum,
        num_train=len(dataset.train_targets),
        num_test=len(dataset.test_targets),
        evaluated_on=config.data.evaluated_on,
    )


def _label_counts(data: PartitionedData) -> list[list[int]] | None:
    """Return how many records of each class a client has, for figures; None of a population too large to show."""
    if data.num_samples.size * data.num_classes > _MOST_COUNTS:
        return None
    found: list[list[int]] = counts_of(data).astype(int).tolist()
    return found


def raise_if_exhausted(store: RunStore) -> None:
    """Raise if every trial ended because nobody could afford another round; models and report are there anyway."""
    result = store.result
    if result is not None and result.is_exhausted:
        raise BudgetExhausted(
            f"{store.folder}: before the last round no client was left that could afford another release under "
            "privacy.limit_epsilon. Models and report are kept; raise the limit, or run fewer rounds.",
            remaining=0.0,
            requested=0.0,
        )
