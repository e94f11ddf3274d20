"""The one way to start a trial or to go on with it, in a simulation as in a deployment."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch

from fedpcs._files import locked
from fedpcs.errors import DeviceLost
from fedpcs.learning.layout import flat_parameters, load_parameters
from fedpcs.trial.config import RunConfig
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.rounds.results import trial_result
from fedpcs.trial.run_store import check_same, is_by_this_code, make_manifest
from fedpcs.trial.session import Session
from fedpcs.trial.setup import SetUp, simulated
from fedpcs.trial.store import TrialStore
from fedpcs.trial.tensorboard_log import tensorboard_log

# What to do with a trial that other code, data or settings have begun.
IfChanged = Literal["refuse", "go on", "begin again"]


def train(
    config: RunConfig,
    store: TrialStore,
    session: Session,
    wants_stop: Callable[[], bool] = lambda: False,
    if_changed: IfChanged = "refuse",
    set_up: SetUp = simulated,
) -> None:
    """Run one trial from its first round, or from its last checkpoint, to its result; nothing if it has one.

    Args:
        config: With one sampler and one seed.
        store: Where the trial is kept.
        session: What it shares with others.
        wants_stop: Asked between clients; true once the user wants the trial to stop.
        if_changed: What to do if other code, data or settings have begun it.
        set_up: Gives what its rounds are played with.

    Raises:
        InUse: Another process is at it.
        InvalidInput: Something differs from how it was begun, or its folder holds something else.
        DeviceLost: The device is gone, and the run is not to go on without.
    """
    if store.result is not None:
        session.observer.begin(_name_of(config), config.rounds, config.rounds)
        return
    began = time.monotonic()
    with locked(store.folder):
        is_new = _begin(config, store, session, if_changed)
        try:
            _play(config, store, session, wants_stop, set_up)
        except DeviceLost as error:
            if config.engine.if_device_lost == "stop" or session.device == "cpu":
                raise
            session.observer.say(f"{error} Going on on the CPU.")
            session.device = "cpu"
            session.notes.append(f"{error} Trained on the CPU from there on.")
            store.add_note(session.notes[-1])
            _play(config, store, session, wants_stop, set_up)
        if is_new:
            store.write_seconds(time.monotonic() - began)


def _name_of(config: RunConfig) -> str:
    return f"{config.sampling.samplers[0]}, seed {config.seeds[0]}"


def _begin(config: RunConfig, store: TrialStore, session: Session, if_changed: IfChanged) -> bool:
    """Write down what a trial is, or check that it is what was begun; return whether it is new."""
    if store.has_begun and if_changed == "begin again" and not is_by_this_code(store, config):
        _empty(store.folder)
    now = make_manifest(config, session.identity, session.data_dir, list(session.notes))
    if store.has_begun:
        check_same(store, now, force=if_changed == "go on")
        for note in session.notes:
            store.add_note(note)
        return False
    store.begin(config, now)
    return True


def _empty(folder: Path) -> None:
    """Delete what is in a folder but its lock, which is held. The manifest goes last: until then it is a trial."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "manifest.json"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _play(
    config: RunConfig, store: TrialStore, session: Session, wants_stop: Callable[[], bool], set_up: SetUp
) -> None:
    """Play the rounds that are not yet done, and write down what they came to."""
    observed = tensorboard_log(store.folder, session.observer) if config.tensorboard else nullcontext(session.observer)
    with set_up(config, session) as setup, observed as watching:
        watching.begin(_name_of(config), setup.plan.num_rounds, len(store.rounds()))
        settings = Settings(
            delta=float(config.privacy.delta),
            evaluate_every=config.evaluate_every,
            checkpoint_every=config.checkpoint_every,
            redraws=config.engine.redraws,
            presence=setup.presence,
            wants_stop=wants_stop,
            say=watching.say,
            notify=watching.round_done,
            replan=setup.replan,
        )
        finished = run_trial(setup.plan, flat_parameters(setup.model), setup.engine, store, settings)
    load_parameters(setup.model, torch.from_numpy(finished.model))
    store.save_model(setup.model.state_dict())
    plan = replace(setup.plan, schedule=setup.announced())
    store.finish(trial_result(config, plan, finished, session.identity.num_test, setup.label_counts))
