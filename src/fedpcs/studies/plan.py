"""What a sweep is about to do, and how long that will take."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedpcs import _format, _plugins
from fedpcs._threads import num_cores
from fedpcs.studies.cell_store import CellStore
from fedpcs.studies.estimate import estimate
from fedpcs.studies.grid import Cell
from fedpcs.studies.pool import unsolved_games
from fedpcs.trial.preflight import try_rules

_FEW_CLASSES = 10  # where rules are tried out, any number will do


@dataclass(frozen=True)
class SweepPlan:
    """What a sweep is about to do.

    Attributes:
        cells: All of them.
        num_done: How many are there already.
        seconds: By key, what each that is missing will take on one core.
        num_jobs: How many run at a time.
        num_games: How many games must be solved first; `seconds` knows nothing of them.
    """

    cells: tuple[Cell, ...]
    num_done: int
    seconds: dict[str, float]
    num_jobs: int
    num_games: int

    @property
    def estimated_seconds(self) -> float:
        """How long all that is missing will take."""
        return sum(self.seconds.values()) / self.num_jobs

    @property
    def text(self) -> str:
        """The plan in a line: how many cells, how many are there already, how long the rest takes."""
        places = {str((cell.variant, sorted(cell.point.items()))) for cell in self.cells}
        counts = {
            "sampler": len({cell.sampler for cell in self.cells}),
            **({"setting": len(places)} if len(places) > 1 else {}),
            "seed": len({cell.seed for cell in self.cells}),
        }
        is_product = math.prod(counts.values()) == len(self.cells)  # variants may have samplers of their own
        factors = f" ({' × '.join(_counted(number, name) for name, number in counts.items())})" if is_product else ""
        before = f"; {self.num_done} done before" if self.num_done else ""
        words = f"{_counted(len(self.cells), 'cell')}{factors}{before}"
        if self.num_done == len(self.cells):
            return words
        first = f", after {_counted(self.num_games, 'game')} to be solved" if self.num_games else ""
        return f"{words}; about {_format.duration(self.estimated_seconds)} on {_counted(self.num_jobs, 'core')}{first}"

    @property
    def numbers(self) -> dict[str, Any]:
        """The plan for a program."""
        cells = [
            {"cell": cell.key, "label": cell.label, "is_done": cell.key not in self.seconds} for cell in self.cells
        ]
        return {
            "num_cells": len(cells),
            "num_done": self.num_done,
            "num_games": self.num_games,
            "estimated_seconds": self.estimated_seconds,
            "cells": cells,
        }


def plan_sweep(
    cells: Sequence[Cell], store: CellStore, data_dir: Path | None, num_jobs: int | None = None
) -> SweepPlan:
    """Return what is to be done, with its time; nothing is run but one client's training, to measure it."""
    wanted = tuple({cell.key: cell for cell in cells}.values())  # one cell may stand at several places of a table
    for cell in wanted:
        _plugins.look_here(cell.config.data.name, cell.config.training.model, cell.sampler)
    missing = [cell for cell in wanted if not store.is_done(cell)]
    _try_rules(missing)
    jobs = num_jobs or num_cores()
    num_games = len(unsolved_games(missing, store))
    return SweepPlan(wanted, len(wanted) - len(missing), estimate(missing, data_dir), jobs, num_games)


def _try_rules(cells: Sequence[Cell]) -> None:
    """Refuse a sweep of which a sampler cannot be weighed by its rule, before any cell of it is run."""
    tried: set[str] = set()
    for cell in cells:
        config = cell.config
        asked = json.dumps([config.sampling.model_dump(mode="json"), config.data.num_clients])
        if asked not in tried:
            tried.add(asked)
            try_rules(config, _FEW_CLASSES)


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"
