"""A run's rounds as TensorBoard shows them: accuracy, loss, ε, budgets and norms, one folder for each trial.

TensorBoard is the extra `tensorboard`, and its files are a copy for looking at: `rounds.jsonl`
has all there is, and nothing is ever read from here.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

from fedpcs._files import disk_errors
from fedpcs._plugins import pip_install
from fedpcs.errors import InvalidInput
from fedpcs.trial.progress import Observer
from fedpcs.trial.records import RoundRecord

# What TensorBoard calls it, and where a round's line has it.
_SCALARS: dict[str, str] = {
    "test/accuracy": "accuracy",
    "test/loss": "loss",
    "privacy/epsilon_median": "spent.epsilon.median",
    "privacy/epsilon_maximum": "spent.epsilon.maximum",
    "privacy/rho_maximum": "spent.rho.maximum",
    "game/reward": "reward",
    "game/mean_budget": "mean_budget",
    "game/realised_mean_budget": "realised_mean_budget",
    "game/cohort_budget": "cohort_budget",
    "game/paid_so_far": "paid_so_far",
    "norms/update_median": "update_norm.median",
    "norms/update_maximum": "update_norm.maximum",
    "norms/noise_median": "noise_norm.median",
    "norms/step": "step_norm",
    "cohort/num_heard": "draw.num_heard",
    "cohort/effective_sample_size": "draw.effective_sample_size",
}


def check_installed() -> None:
    """Say at once that TensorBoard is missing, before a run that is to be watched has begun.

    Raises:
        InvalidInput: It is not installed.
    """
    if importlib.util.find_spec("tensorboard") is None:
        raise InvalidInput(
            "tensorboard = true needs the package tensorboard, which is not installed. Run "
            f"`{pip_install('tensorboard')}`, or set tensorboard = false: rounds.jsonl has the same numbers."
        )


class TensorBoardLog:
    """An observer that writes each finished round to TensorBoard, and tells another one.

    Args:
        folder: The trial's; event files go to `tensorboard/` in it.
        observer: Told the same.

    Guarantees:
        The first round it is told decides where it goes on: steps from that round on, written in a life before this
        one, are marked as void, so a resumed run shows each round once.
    """

    def __init__(self, folder: Path, observer: Observer) -> None:
        self._target, self.begin, self.say, self._next = folder / "tensorboard", observer.begin, observer.say, observer
        self._writer: Any = None

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Write a round."""
        with disk_errors(self._target):
            self._writer = self._writer or _writer(self._target, record.round)
            for name, path in _SCALARS.items():
                if (value := attrgetter(path)(record)) is not None:
                    self._writer.add_scalar(name, value, record.round)
            self._writer.flush()  # what was told is on disk, also if the run is killed before the next round
        self._next.round_done(record, seconds)

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def tensorboard_log(folder: Path, observer: Observer) -> Iterator[Observer]:
    """Give an observer that writes to TensorBoard too; its file is closed at the end of the block.

    Raises:
        InvalidInput: TensorBoard is not installed.
    """
    check_installed()
    log = TensorBoardLog(folder, observer)
    try:
        yield log
    finally:
        log.close()


def _writer(target: Path, first_round: int) -> Any:
    from torch.utils.tensorboard import SummaryWriter  # brings in TensorBoard, for which only watched runs wait

    # An empty log gets no such mark: nothing is there to be void.
    purge_step = first_round if target.is_dir() else None
    return SummaryWriter(str(target), purge_step=purge_step)
