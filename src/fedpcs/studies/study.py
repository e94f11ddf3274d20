"""The folder of a study, read: what `fedpcs run` or `fedpcs compare` has kept there, finished or not."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from fedpcs.studies.cell_store import read_trial
from fedpcs.studies.compare import is_sweep, read_sweep
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import Study
from fedpcs.trial.config import RunConfig
from fedpcs.trial.identity import alone
from fedpcs.trial.run_store import open_run


def read_study(folder: Path) -> Study:
    """Read the folder of a run or a sweep.

    Raises:
        InvalidInput: There is none.
        CorruptFile: A file of a run, or the sweep's own, is damaged; damaged trials of a sweep are named by the study.
    """
    return _read_sweep(folder) if is_sweep(folder) else _read_run(folder)


def cells_of(config: RunConfig) -> Iterator[Cell]:
    """Give a run's trials, each as a configuration of its own: seeds outermost."""
    for seed in config.seeds:
        for name in config.sampling.samplers:
            yield Cell(alone(config, name, seed), "", {})


def _read_run(folder: Path) -> Study:
    store = open_run(folder)
    config = store.config()
    cells = tuple(cells_of(config))
    trials = [read_trial(cell, trial) for cell in cells if (trial := store.trial_of(cell.config)).has_begun]
    command = shlex.join(["fedpcs", "resume", str(folder)])
    return Study(config.name, folder, config, cells, tuple(trials), {}, {}, command)


def _read_sweep(folder: Path) -> Study:
    kept = read_sweep(folder / "sweep.json")
    done, damaged = kept.store.read_all(kept.cells)
    readable = {one.cell.key for one in done}
    missing = [cell for cell in kept.cells if cell.key not in readable]
    failures = {cell.key: reason for cell in missing if (reason := kept.store.failure_of(cell))}
    return Study(kept.name, folder, None, tuple(kept.cells), tuple(done), failures, damaged, kept.command)
