"""A bar on stderr, and lines above it; without a terminal, the lines alone, and one a minute that says how it goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn

from fedpcs._outside import message

LINE_SECONDS = 60.0


class ProgressBar:
    """What displays of runs and sweeps share: one bar with a description and news, shown while in a `with` block.

    Args:
        total: Of the bar.
        columns: Right of the bar.
        line: Returns what is said once a minute where there is no terminal.
    """

    def __init__(self, total: float, *columns: ProgressColumn, line: Callable[[], str]) -> None:
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            *columns,
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._progress.add_task("getting ready", total=total, news="")
        self._line, self._is_over = line, threading.Event()
        self._teller = threading.Thread(target=self._tell, name="fedpcs-progress", daemon=True)

    def __enter__(self) -> Self:
        self._progress.start()
        if not self._console.is_terminal:
            self._teller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._teller.ident is not None:
            self._teller.join()
        self._progress.stop()

    def say(self, words: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(message(words), highlight=False, markup=False, soft_wrap=True)

    def _tell(self) -> None:
        while not self._is_over.wait(LINE_SECONDS):
            self.say(self._line())
