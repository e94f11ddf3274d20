"""Run one cell of a sweep, in a process of its own: begin it, or go on with it where it was stopped."""

from __future__ import annotations

import contextlib
import signal
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from fedpcs import _plugins
from fedpcs._processes import end_with_parent, end_with_starter
from fedpcs._stop_signal import stop_signal
from fedpcs.errors import CorruptFile, FedpcsError, InUse, InvalidInput
from fedpcs.studies.cell_store import IN_USE
from fedpcs.trial.config import RunConfig
from fedpcs.trial.progress import Silent
from fedpcs.trial.same_code import code_digest, solver_digest
from fedpcs.trial.session import open_session, prepare
from fedpcs.trial.store import TrialStore
from fedpcs.trial.train import train

# Cells are forked from a process that has loaded this code, and are run by it whatever becomes of files.
code_digest()
solver_digest()


def work(connection: Connection, folder: str, config: str, data_dir: str | None, games: str) -> None:
    """Run a cell to its end; send (exit code, words) to the sweep.

    Args:
        connection: To the sweep.
        folder: Where the cell is kept.
        config: The run, as JSON.
        data_dir: Where data sets lie.
        games: Where solved games lie.
    """
    end_with_parent()
    end_with_starter()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the sweep passes it on as SIGTERM
    torch.set_num_threads(1)
    try:
        run_cell(Path(folder), RunConfig.model_validate_json(config), _path(data_dir), Path(games))
        answer = (0, "")
    except InUse as error:
        answer = (IN_USE, str(error))
    except FedpcsError as error:
        answer = (error.exit_code, str(error))
    except KeyboardInterrupt:
        answer = (130, "interrupted")
    except Exception as error:  # a user's own model or data may fail in any way; other cells go on
        answer = (1, f"{type(error).__name__}: {error}")
    with contextlib.suppress(OSError):
        connection.send(answer)


def run_cell(folder: Path, config: RunConfig, data_dir: Path | None, games: Path) -> None:
    """Begin a trial, or go on with it. One that other code, or other libraries, have begun is begun again.

    Raises:
        CorruptFile: What is in its folder cannot be gone on with; says what to do.
    """
    is_new = not folder.is_dir() or all(path.name == "lock" for path in folder.iterdir())
    _plugins.look_here(*config.named)
    try:
        store = TrialStore(folder)
        if data_dir is None and store.has_begun and store.manifest.data_dir is not None:
            data_dir = Path(store.manifest.data_dir)
        session = open_session(config, data_dir, games, Silent())
        if not store.has_begun:
            prepare(config, session)
        with stop_signal() as stopping:
            train(config, store, session, stopping.is_set, "begin again")
    except (CorruptFile, InvalidInput) as error:
        if is_new or isinstance(error, InUse):
            raise
        raise CorruptFile(f"{error} Or delete the folder {folder}: the trial is run again.") from None


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
