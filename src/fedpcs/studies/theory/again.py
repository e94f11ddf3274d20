"""A finished run once more, bit for bit, with the model after every round."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedpcs._stop_signal import stop_signal
from fedpcs.learning.layout import Values
from fedpcs.trial import checkpoint
from fedpcs.trial.config import RunConfig
from fedpcs.trial.progress import Silent
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.run_store import RunStore
from fedpcs.trial.session import Session, open_session
from fedpcs.trial.store import TrialStore
from fedpcs.trial.train import train


@dataclass
class _Recorder:
    """Keeps each round's line and model as a trial writes them."""

    trial: TrialStore
    lines: list[RoundRecord] = field(default_factory=list)
    models: list[Values] = field(default_factory=list)

    def say(self, words: str) -> None:
        """Say nothing."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """Say nothing."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Keep the round, and what the model was after it."""
        self.lines.append(record)
        latest = checkpoint.latest(self.trial.checkpoints)
        assert latest is not None
        self.models.append(latest[0].parameters)


def session_of(store: RunStore, data_dir: Path | None) -> Session:
    """Return what the trials of a finished run share: its data, where it lay for the run if absent, and its games."""
    before = store.manifest.data_dir
    place = data_dir or (None if before is None else Path(before))
    return open_session(store.config(), place, store.folder / "games", Silent())


def made_again(config: RunConfig, session: Session) -> tuple[list[RoundRecord], list[Values]]:
    """Run one trial again, in a folder that is thrown away; return its log and the model after each round.

    Args:
        config: With one sampler and one seed. Clients that Flower played are played by workers: bits are the same.
        session: What it shares with the run's other trials.
    """
    kind = "workers" if config.engine.kind == "flower" else config.engine.kind
    engine = config.engine.model_copy(update={"kind": kind})
    every_round = config.model_copy(update={"checkpoint_every": 1, "tensorboard": False, "engine": engine})
    with tempfile.TemporaryDirectory() as place, stop_signal() as stopping:
        recorder = _Recorder(TrialStore(Path(place) / "trial"))
        train(every_round, recorder.trial, replace(session, observer=recorder), stopping.is_set)
    return recorder.lines, recorder.models
