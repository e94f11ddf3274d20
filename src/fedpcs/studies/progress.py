"""How a sweep shows itself: a plan with its time before it starts, then cells and rounds while it runs; on stderr."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

from rich.progress import TextColumn

from fedpcs import _format
from fedpcs.studies.grid import Cell
from fedpcs.trial.progress import ProgressBar


def plan_words(cells: Sequence[Cell], num_done: int, seconds: float, num_jobs: int, num_games: int) -> str:
    """Return the plan in a line: how many cells, how many are there already, how long the rest takes."""
    samplers = len({cell.sampler for cell in cells})
    places = len({str((cell.variant, sorted(cell.point.items()))) for cell in cells})
    seeds = len({cell.seed for cell in cells})
    kept = f"; {num_done} done before" if num_done else ""
    cores = f"{num_jobs} core{'s' if num_jobs > 1 else ''}"
    first = f", after {num_games} game{'s' if num_games > 1 else ''} to be solved" if num_games else ""
    left = f"; about {_format.duration(seconds)} on {cores}{first}" if num_done < len(cells) else ""
    factors = {"sampler": samplers, **({"setting": places} if places > 1 else {}), "seed": seeds}
    words = " × ".join(_counted(number, name) for name, number in factors.items())
    is_product = math.prod(factors.values()) == len(cells)  # variants may have samplers of their own
    kinds = f" ({words})" if is_product else ""
    return f"{_counted(len(cells), 'cell')}{kinds}{kept}{left}"


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


class SweepDisplay(ProgressBar):
    """A bar over the seconds of work that a sweep was estimated at; without a terminal, a line each minute."""

    def __init__(self, cells: Sequence[Cell], seconds: Mapping[str, float]) -> None:
        self._seconds = {cell.key: seconds.get(cell.key, 1.0) for cell in cells}
        self._total = sum(self._seconds.values())
        self._began, self._before, self._now = time.monotonic(), -1.0, "getting ready"
        super().__init__(self._total, TextColumn("{task.fields[news]}"), line=lambda: self._now)

    def moved(self, done: Sequence[Cell], running: Sequence[tuple[Cell, int]]) -> None:
        """Show how far the sweep has come."""
        under_way = sum(self._seconds[cell.key] * rounds / cell.config.rounds for cell, rounds in running)
        worked = sum(self._seconds[cell.key] for cell in done) + under_way
        if self._before < 0.0:
            self._before = worked
        news = f"{len(done)}/{len(self._seconds)} cells, {self._left(worked)}"
        at = running[0][0].words if running else "done"
        self._progress.update(self._bar, completed=worked, description=at, news=news)
        rounds = f", round {running[0][1]} of {running[0][0].config.rounds}" if running else ""
        self._now = f"{news}; {at}{rounds}"
        if not self._console.is_terminal and len(done) == len(self._seconds):
            self.say(news)

    def _left(self, worked: float) -> str:
        passed, gained = time.monotonic() - self._began, worked - self._before
        if worked >= self._total:
            return f"{_format.duration(passed)} in all"
        return (
            f"{_format.duration((self._total - worked) * passed / gained)} left"
            if gained > 0.0 and passed > 5.0
            else "…"
        )
