"""What trials share that run in one process: data, device, solved games, whom to tell."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fedpcs._plugins import pip_install
from fedpcs.errors import InvalidInput
from fedpcs.game.schedule import Schedule
from fedpcs.learning.datasets import Dataset
from fedpcs.sampling import Sampler
from fedpcs.trial.assemble import delta_note, device_of, load_for
from fedpcs.trial.config import RunConfig
from fedpcs.trial.preflight import dry_run, untrained_classes
from fedpcs.trial.progress import Observer
from fedpcs.trial.records import DataIdentity
from fedpcs.trial.schedule import is_played, remembered_schedule, schedule_key, schedule_path, selection_of
from fedpcs.trial.tensorboard_log import check_installed as check_tensorboard

if TYPE_CHECKING:
    from fedpcs.engines.flower.simulation import Federation


@dataclass
class Session:
    """What trials share that run in one process.

    Attributes:
        dataset: On what.
        identity: Which data that are, for manifests.
        data_dir: Where it lies.
        games: Folder of solved games.
        observer: Whom to tell.
        device: Where to train; the CPU from the moment that another is lost.
        notes: What manifests must say.
        federation: Clients that Flower plays; None with an engine of our own.
        schedules: The games solved so far, by their keys.
    """

    dataset: Dataset
    identity: DataIdentity
    data_dir: Path | None
    games: Path
    observer: Observer
    device: str
    notes: list[str]
    federation: Federation | None = None
    schedules: dict[str, Schedule] = field(default_factory=dict)

    def schedule(self, config: RunConfig, sampler: Sampler) -> Schedule:
        """Return the schedule of the game a sampler's clients play; it is solved once for all seeds."""
        key = schedule_key(config, sampler)
        if key not in self.schedules:
            if is_played(config, sampler) and not schedule_path(self.games, config, sampler).exists():
                self.observer.say(f"solving the game clients play under {selection_of(config, sampler)} sampling …")
            self.schedules[key] = remembered_schedule(self.games, config, sampler)
        return self.schedules[key]

    def note(self, words: str) -> None:
        """Tell the user something that whoever reads the results must know, too."""
        self.notes.append(words)
        self.observer.say(words)


def open_session(config: RunConfig, data_dir: Path | None, games: Path, observer: Observer) -> Session:
    """Return what trials of a configuration share; Flower's clients come with `simulated.federated`."""
    device, notes = device_of(config)
    dataset = load_for(config, data_dir)
    identity = DataIdentity(
        name=dataset.name,
        checksum=dataset.checksum,
        num_train=len(dataset.train_targets),
        num_test=len(dataset.test_targets),
        evaluated_on=config.data.evaluated_on,
    )
    return Session(dataset, identity, data_dir, games, observer, device, notes)


def prepare(config: RunConfig, session: Session) -> None:
    """Find what cannot work before anything is written, and note what a reader must know."""
    if config.tensorboard:
        check_tensorboard()
    if config.engine.kind == "flower":
        _check_flower()
    dry_run(config, session.dataset)
    for words in filter(None, (untrained_classes(session.dataset), delta_note(config))):
        session.note(words)


def _check_flower() -> None:
    """Refuse a run on Flower where Flower is not.

    Raises:
        InvalidInput: It cannot be imported.
    """
    try:
        importlib.import_module("fedpcs.engines.flower.simulation")
    except ImportError as error:
        raise InvalidInput(
            f"engine.kind is 'flower', and Flower cannot be imported ({error}). Run `{pip_install('flower')}`."
        ) from None
