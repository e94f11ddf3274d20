"""Solved games on disk: a game takes longer to solve than to read, and many trials play the same one.

A file's name is a digest of all that a schedule depends on, the solver's own code included, so a file is either the
answer to the question asked or is not found.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from fedpcs._files import disk_errors, read_arrays, write_arrays
from fedpcs.game.schedule import PATHS, Schedule
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig
from fedpcs.trial.same_code import solver_digest
from fedpcs.trial.schedule import is_played, make_schedule, selection_of

# A larger one is solved again: with so many clients games are played by types and quick, and files would be large.
_MOST_BYTES = 2**26
_FACTS = ("standing", "exploitability", "settled_by")


def schedule_key(config: RunConfig, sampler: Sampler) -> str:
    """Return the digest of everything the schedule of a sampler's clients depends on."""
    asked = {
        "game": config.game.model_dump(mode="json"),
        "rounds": config.rounds,
        "num_clients": config.data.num_clients,
        "sampling_ratio": float(config.sampling.sampling_ratio),
        "selection": selection_of(config, sampler),
        "is_played": is_played(config, sampler),
        "solver": solver_digest(),
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:24]


def remembered_schedule(folder: Path, config: RunConfig, sampler: Sampler) -> Schedule:
    """Read the schedule of a sampler's clients from a folder; solve the game and write it there if it is not.

    Raises:
        NotConverged: No equilibrium was found to the tolerance asked for; nothing is written.
    """
    path = schedule_path(folder, config, sampler)
    if (found := _read(path)) is not None:
        return found
    made = make_schedule(config, sampler)
    if is_played(config, sampler) and made.budget.nbytes <= _MOST_BYTES:
        _write(path, made)
    return made


def schedule_path(folder: Path, config: RunConfig, sampler: Sampler) -> Path:
    """Return where a schedule is kept once it is solved."""
    return folder / f"{schedule_key(config, sampler)}.npz"


def _write(path: Path, schedule: Schedule) -> None:
    with disk_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    facts = json.dumps({name: getattr(schedule, name) for name in _FACTS})
    write_arrays(path, facts=np.array(facts), **schedule.paths)


def _read(path: Path) -> Schedule | None:
    """Return a schedule that was kept; None if there is none, or it is damaged: then it is solved again."""
    try:
        kept = read_arrays(path, 8 * _MOST_BYTES)
        facts: dict[str, Any] = json.loads(str(kept["facts"]))
        return Schedule(**{**facts, **{name: kept[name] for name in PATHS}})
    except (OSError, KeyError, TypeError, ValueError):
        return None
