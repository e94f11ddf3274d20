"""How a sweep shows itself while it runs, on stderr."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.progress import TextColumn

from fedpcs import _format
from fedpcs.studies.grid import Cell
from fedpcs.trial.progress import ProgressBar


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
        at = running[0][0].label if running else "done"
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
