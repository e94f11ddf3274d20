"""How a run shows itself while it runs: rounds, accuracy, ε spent, time left; on stderr."""

from __future__ import annotations

from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

from fedpcs import _format
from fedpcs.trial.config import RunConfig
from fedpcs.trial.progress_bar import ProgressBar
from fedpcs.trial.records import RoundRecord


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
