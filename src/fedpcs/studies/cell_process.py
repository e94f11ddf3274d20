"""Run one cell of a sweep, in a process of its own: begin it, or go on with it where it was stopped."""

from __future__ import annotations

import contextlib
import shutil
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from fedpcs import _plugins
from fedpcs._files import write_json
from fedpcs._processes import end_with_parent, end_with_starter
from fedpcs.errors import CorruptFile, FedpcsError, InUse, InvalidInput
from fedpcs.studies.cell_store import IN_USE
from fedpcs.trial.config import RunConfig
from fedpcs.trial.run import resume_run, start_run
from fedpcs.trial.run_store import RunStore, is_by_this_code, locked
from fedpcs.trial.same_code import code_digest, solver_digest

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
    """Begin a cell, or go on with it. One that other code, or other libraries, have begun is begun again.

    Raises:
        CorruptFile: What is in its folder cannot be gone on with; says what to do.
    """
    is_new = not folder.is_dir() or all(path.name == "lock" for path in folder.iterdir())
    try:
        _run(folder, config, data_dir, games)
    except (CorruptFile, InvalidInput) as error:
        if is_new or isinstance(error, InUse):
            raise
        raise CorruptFile(f"{error} Or delete the folder {folder}: the cell is run again.") from None


def _run(folder: Path, config: RunConfig, data_dir: Path | None, games: Path) -> None:
    _plugins.look_here(*config.named)
    began = time.monotonic()
    if (folder / "manifest.json").exists() and not is_by_this_code(RunStore(folder)):
        with locked(folder):
            _empty(folder)
    if (folder / "manifest.json").exists():
        resume_run(folder, data_dir=data_dir, games=games)
        return
    start_run(config, folder, data_dir, games=games)
    write_json(folder / "seconds.json", round(time.monotonic() - began, 3))


def _empty(folder: Path) -> None:
    """Delete what is in a folder but its lock, which is held. The manifest goes last: until then it is a run."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name == "manifest.json"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "lock":
            path.unlink()


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
