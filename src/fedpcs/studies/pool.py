"""Run the cells of a sweep, several at a time, each in a process of its own on one core.

Cells that are done are not run again; one that was stopped goes on from its last checkpoint, so a sweep that was killed
ends with the same numbers. A cell that fails does not stop the others: its reason is kept, and it is tried again the
next time.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from threading import Event
from typing import Any

from fedpcs._files import is_locked
from fedpcs._processes import CELL, ensure_fork_server, refuse_import_of_script, start, why_no_start
from fedpcs._stop_signal import stop_signal
from fedpcs._threads import num_cores
from fedpcs.errors import Interrupted, NotConverged
from fedpcs.studies.cell_store import IN_USE, CellStore
from fedpcs.studies.grid import Cell
from fedpcs.trial.assemble import sampler_of
from fedpcs.trial.schedule import is_played, remembered_schedule, schedule_key, schedule_path, selection_of

_LOOK_SECONDS = 1.0
_STOP_SECONDS = 60.0
Say = Callable[[str], None]
# Is told which cells are done, and which are at work, each with its rounds so far.
Moved = Callable[[Sequence[Cell], Sequence[tuple[Cell, int]]], None]


@dataclass(frozen=True)
class _Job:
    """A cell at work."""

    cell: Cell
    process: Any
    connection: Any


def run_cells(
    cells: Sequence[Cell],
    store: CellStore,
    data_dir: Path | None = None,
    *,
    num_jobs: int | None = None,
    say: Say = lambda words: None,
    moved: Moved = lambda done, running: None,
) -> dict[str, str]:
    """Run what is not done yet.

    Args:
        cells: What is wanted.
        store: Where cells are kept.
        data_dir: Where data sets lie.
        num_jobs: How many cells at a time; None: one for each core.
        say: Is told what happens.
        moved: Is told how far the sweep has come.

    Returns:
        Why cells could not be run, by their key.

    Raises:
        Interrupted: Somebody asked to stop; what was done is kept.
    """
    refuse_import_of_script()
    # One cell may stand at several places of a table; it is run once.
    wanted = list({cell.key: cell for cell in cells}.values())
    done = [cell for cell in wanted if store.is_done(cell)]
    missing = [cell for cell in wanted if not store.is_done(cell)]
    with stop_signal() as stopping:
        failures = solve_games(missing, store, say, stopping)
        waiting = [cell for cell in missing if cell.key not in failures]
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fedpcs.studies.cell_process"])
        ensure_fork_server()
        jobs: list[_Job] = []
        while (waiting and not stopping.is_set()) or jobs:
            while len(jobs) < (num_jobs or num_cores()) and not stopping.is_set():
                if (cell := _take(waiting, done, store)) is None:
                    break
                jobs.append(_start(context, cell, store, data_dir))
            moved(done, [(job.cell, store.num_rounds_done(job.cell)) for job in jobs])
            wait([job.process.sentinel for job in jobs], timeout=_LOOK_SECONDS)
            if stopping.is_set():
                _stop(jobs)
            for job in [job for job in jobs if not job.process.is_alive()]:
                jobs.remove(job)
                code, reason = _answer(job)
                if code == 0 or store.is_done(job.cell):
                    done.append(job.cell)
                elif code == IN_USE or is_locked(store.trial_of(job.cell).folder):  # another command was quicker
                    waiting.append(job.cell)
                elif not stopping.is_set():
                    failures[job.cell.key] = reason
                    _fail(job.cell, reason, store, say)
        if stopping.is_set():
            raise Interrupted(f"stopped; {len(done)} of {len(wanted)} cells are done.")
    moved(done, [])
    return failures


def solve_games(cells: Sequence[Cell], store: CellStore, say: Say, stopping: Event | None = None) -> dict[str, str]:
    """Solve the games that cells will need, each once, before any of them begins.

    Returns:
        Why cells cannot be run whose game has no certified equilibrium, by their key.
    """
    failures: dict[str, str] = {}
    for players in unsolved_games(cells, store):
        config, sampler = players[0].config, sampler_of(players[0].config, players[0].sampler)
        if stopping is not None and stopping.is_set():
            break
        words = f"{selection_of(config, sampler)} sampling, {config.game.behaviour} clients"
        say(f"solving the game of {words} …")
        try:
            remembered_schedule(store.games, config, sampler)
        except NotConverged as error:
            for cell in players:
                failures[cell.key] = str(error)
                _fail(cell, str(error), store, say)
    return failures


def unsolved_games(cells: Sequence[Cell], store: CellStore) -> list[list[Cell]]:
    """Return the cells of each game that must be solved before they can begin."""
    games: dict[str, list[Cell]] = {}
    for cell in cells:
        sampler = sampler_of(cell.config, cell.sampler)
        if is_played(cell.config, sampler) and not schedule_path(store.games, cell.config, sampler).exists():
            games.setdefault(schedule_key(cell.config, sampler), []).append(cell)
    return list(games.values())


def _take(waiting: list[Cell], done: list[Cell], store: CellStore) -> Cell | None:
    """Take a cell off the list that no other command is at; what one has finished meanwhile is done."""
    for cell in list(waiting):
        if store.is_done(cell):
            waiting.remove(cell)
            done.append(cell)
        elif not is_locked(store.trial_of(cell).folder):
            waiting.remove(cell)
            return cell
    return None


def _fail(cell: Cell, reason: str, store: CellStore, say: Say) -> None:
    store.fail(cell, reason)
    say(f"{cell.label}: {reason}")


def _start(context: Any, cell: Cell, store: CellStore, data_dir: Path | None) -> _Job:
    from fedpcs.studies import cell_process

    ours, theirs = context.Pipe(duplex=False)
    folder = store.trial_of(cell).folder
    store.forget_failure(cell)
    where = None if data_dir is None else str(data_dir.resolve())
    arguments = (theirs, str(folder), cell.config.model_dump_json(), where, str(store.games))
    names = (cell.config.data.name, cell.config.training.model, cell.sampler)
    process = start(
        lambda: context.Process(target=cell_process.work, args=arguments, name=CELL),
        needs_main=any(name.startswith("__main__:") for name in names),
    )
    theirs.close()
    return _Job(cell, process, ours)


def _answer(job: _Job) -> tuple[int, str]:
    """Return how a cell's process ended: its exit code, and why."""
    try:
        found: tuple[int, str] = job.connection.recv()
    except EOFError:
        job.process.join()
        found = 1, why_no_start(job.process) or f"its process ended with code {job.process.exitcode}"
    job.connection.close()
    job.process.join()
    return found


def _stop(jobs: Sequence[_Job]) -> None:
    """Ask cells to stop after the client they are at; those that do not within a minute are ended."""
    for job in jobs:
        job.process.terminate()
    for job in jobs:
        job.process.join(_STOP_SECONDS)
        if job.process.is_alive():
            job.process.kill()
            job.process.join()
