"""A run: the trials of every sampler with every seed, one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fedpcs._files import locked
from fedpcs._processes import refuse_import_of_script
from fedpcs._stop_signal import stop_signal
from fedpcs.errors import BudgetExhausted, InvalidInput
from fedpcs.trial.config import RunConfig
from fedpcs.trial.identity import alone
from fedpcs.trial.progress import Observer, Silent
from fedpcs.trial.run_store import RunStore, check_same, make_manifest, open_run
from fedpcs.trial.session import Session, open_session, prepare
from fedpcs.trial.setup import SetUp, simulated
from fedpcs.trial.simulated import federated
from fedpcs.trial.train import IfChanged, train


def start_run(
    config: RunConfig,
    folder: Path,
    data_dir: Path | None = None,
    observer: Observer | None = None,
    *,
    games: Path | None = None,
) -> RunStore:
    """Run a configuration from the beginning, in a new folder.

    Args:
        config: What to run.
        folder: Where to keep it.
        data_dir: Where data sets lie.
        observer: Whom to tell how it goes.
        games: Folder of solved games, which several runs may share; None: the run's own.
    """
    refuse_import_of_script()
    observer = observer or Silent()
    store = RunStore(folder)
    store.check_free()  # before the data are read
    session = open_session(config, data_dir, games or folder / "games", observer)
    prepare(config, session)
    with locked(folder):
        store.begin(config, make_manifest(config, session.identity, data_dir, list(session.notes)))
        with federated(session, config), stop_signal() as stopping:
            return carry_on(store, config, session, stopping.is_set)


def resume_run(
    folder: Path,
    observer: Observer | None = None,
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
    observer = observer or Silent()
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
            observer.say(f"{folder} is done already.")
            return store
        if data_dir is None and before.data_dir is not None:
            data_dir = Path(before.data_dir)
        session = open_session(config, data_dir, games or folder / "games", observer)
        now = make_manifest(config, session.identity, data_dir, list(session.notes))
        check_same(store, now, force=force)
        for note in session.notes:
            store.add_note(note)
        with federated(session, config), stop_signal() as stopping:
            return carry_on(store, config, session, stopping.is_set, "go on" if force else "refuse")


def carry_on(
    store: RunStore,
    config: RunConfig,
    session: Session,
    wants_stop: Callable[[], bool] = lambda: False,
    if_changed: IfChanged = "refuse",
    set_up: SetUp = simulated,
) -> RunStore:
    """Do what is not done yet: trials, then the result."""
    if config.data.validation_share > 0.0:
        session.observer.say("accuracies are on validation records, for tuning; test records are not read")
    trials = [alone(config, sampler, seed) for seed in config.seeds for sampler in config.sampling.samplers]
    for trial in trials:
        train(trial, store.trial_of(trial), session, wants_stop, if_changed, set_up)
    for note in session.notes:
        store.add_note(note)
    store.finish(store.outcome(config))
    return store


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
