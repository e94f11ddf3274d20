"""A bar on stderr, and lines above it; without a terminal, the lines alone."""

from __future__ import annotations

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn


class ProgressBar:
    """What displays of runs and sweeps share: one bar with a description and news, shown while in a `with` block."""

    def __init__(self, total: float, *columns: ProgressColumn) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            *columns,
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._progress.add_task("getting ready", total=total, news="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, words: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(words, highlight=False, markup=False, soft_wrap=True)
