"""Whom trials tell how they go: the terminal or nobody; `tensorboard_log` has another. What is shown goes to stderr."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from fedpcs import _format
from fedpcs._outside import message
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import RoundRecord

LINE_SECONDS = 60.0


class Observer(Protocol):
    """Is told how trials go."""

    def say(self, words: str) -> None:
        """Something happened that a user should know."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """A trial begins, with some of its rounds done before."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """A round was saved."""


class Silent:
    """An observer that says nothing."""

    def say(self, words: str) -> None:
        """Say nothing."""

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """Say nothing."""

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Say nothing."""


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


class Display(ProgressBar):
    """A bar over all rounds of all trials; without a terminal a line at the start, each minute, and for every trial."""

    def __init__(self, config: RunConfig) -> None:
        total = config.rounds * len(config.seeds) * len(config.sampling.samplers)
        news = TextColumn("{task.fields[news]}")
        super().__init__(total, MofNCompleteColumn(), news, TimeRemainingColumn(compact=True), line=self._now)
        self._trial, self._num_rounds, self._left, self._news = "getting ready", config.rounds, config.rounds, ""
        self._left_in_all, self._timed, self._seconds = total, 0, 0.0
        self._has_begun = False

    def begin(self, trial: str, num_rounds: int, num_done: int) -> None:
        """Show which trial is running."""
        if not self._console.is_terminal and not self._has_begun:
            self.say(f"{self._left_in_all:,} rounds in all; a line each minute says how far they are")
        self._has_begun = True
        self._trial, self._num_rounds, self._left, self._news = trial, num_rounds, num_rounds - num_done, ""
        self._left_in_all -= num_done
        self._progress.update(self._bar, description=trial, advance=num_done)

    def round_done(self, record: RoundRecord, seconds: float) -> None:
        """Show a finished round."""
        news = self._news = _news(record) or self._news
        self._left, self._left_in_all = self._left - 1, self._left_in_all - 1
        self._timed, self._seconds = self._timed + 1, self._seconds + seconds
        self._progress.update(self._bar, advance=1, news=news)
        if not self._console.is_terminal and self._left == 0:
            self.say(f"{self._trial}: {news}")

    def _now(self) -> str:
        done = f"{self._trial}: round {self._num_rounds - self._left} of {self._num_rounds}"
        pace = self._seconds / self._timed if self._timed else 0.0
        left = f"about {_format.duration(pace * self._left_in_all)} left" if self._timed else ""
        return ", ".join(part for part in (done, self._news, left) if part)


def _news(record: RoundRecord) -> str:
    accuracy = record.accuracy
    parts = [] if accuracy is None else [f"accuracy {_format.share(accuracy)}"]
    if record.spent.num_clients:
        parts.append(f"ε ≤ {_format.rounded_up(record.spent.epsilon.maximum)}")
    return ", ".join(parts)
