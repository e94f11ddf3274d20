"""From a run's configuration to the game its clients play, and to their schedule.

A game takes longer to solve than to read, and many trials play the same one, so solved games are kept on disk. A file's
name is a digest of all that a schedule depends on, the solver's own code included: a file is either the answer to the
question asked or is not found.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import disk_errors, read_arrays, write_arrays
from fedpcs.errors import NotConverged
from fedpcs.game import equilibrium
from fedpcs.game.assemble import game_from
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.population import Population, individuals, uniform
from fedpcs.game.rules import Selection, cohort_from_ratio
from fedpcs.game.schedule import PATHS, Schedule, not_played, schedule_of
from fedpcs.sampling import Sampler
from fedpcs.trial.config import RunConfig
from fedpcs.trial.same_code import solver_digest

# A larger one is solved again: with so many clients games are played by types and quick, and files would be large.
_MOST_BYTES = 2**26
_FACTS = ("standing", "exploitability", "settled_by")


def selection_of(config: RunConfig, sampler: Sampler) -> Selection:
    """Return how clients believe to be drawn, which is what they respond to: as they are, unless the run says other."""
    if config.game.selection != "as-drawn":
        return config.game.selection
    return "budget-aware" if "budget" in sampler.reads else "budget-blind"


def is_played(config: RunConfig, sampler: Sampler) -> bool:
    """Say whether budgets matter at all: they set the draw, the noise, or both."""
    return config.privacy.is_private or "budget" in sampler.reads


def make_schedule(config: RunConfig, sampler: Sampler) -> Schedule:
    """Solve the game a sampler's clients face, and let them behave as configured.

    Raises:
        NotConverged: No equilibrium was found to the tolerance asked for.
    """
    clients = config.data.num_clients
    if not is_played(config, sampler):
        return not_played(config.rounds, clients, cohort_from_ratio(float(config.sampling.sampling_ratio), clients))
    return scheduled(config, solve_for(config, sampler, _population(config), config.rounds))


def solve_for(config: RunConfig, sampler: Sampler, crowd: Population, rounds: int) -> Equilibrium:
    """Solve the game over the last `rounds` rounds for a population."""
    game = game_from(
        config.game,
        crowd,
        last_round=rounds - 1,
        selection=selection_of(config, sampler),
        sampling_ratio=float(config.sampling.sampling_ratio),
    )
    reward = config.game.reward
    try:
        return equilibrium.solve(
            game, reward[-rounds:] if isinstance(reward, list) else reward, tolerance=float(config.game.tolerance)
        )
    except NotConverged as error:
        raise NotConverged(
            f"the game of {crowd.num_clients} clients over {rounds} rounds has no equilibrium that certifies to "
            f"game.tolerance = {config.game.tolerance:g} under rewards {config.game.reward!r}: {error} Raise "
            "game.tolerance, or announce a constant reward, such as game.reward = 6.0, under which small games settle.",
            error.solution,
        ) from None


def scheduled(config: RunConfig, found: Equilibrium) -> Schedule:
    """Return the schedule clients follow under an equilibrium's announcement, behaving as configured."""
    return schedule_of(found, budget_unit=float(config.game.budget_unit), behaviour=config.game.behaviour)


def replanned(
    config: RunConfig, sampler: Sampler, before: Schedule, now: int, is_present: NDArray[np.bool_]
) -> Schedule:
    """Return the schedule with the rounds from `now` on solved anew for the clients that are still there.

    Everyone starts from the budget it had come to; clients that are away keep theirs, and are owed nothing for it.

    Raises:
        NotConverged: No equilibrium was found; the caller decides whether the one before still stands.
    """
    unit, aversion = float(config.game.budget_unit), _population(config).privacy_aversion
    crowd = individuals(aversion[is_present], before.budget[now, is_present] / unit)
    fresh = scheduled(config, solve_for(config, sampler, crowd, config.rounds - now))
    return before.followed_by(now, fresh, is_present)


def _population(config: RunConfig) -> Population:
    return uniform(config.data.num_clients, config.game.population_seed, config.game.bounds)


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
