"""How a run shows itself while it runs: rounds, accuracy, ε spent, time left; on stderr."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from fedpcs.experiments.run_config import RunConfig
from fedpcs.experiments.run_table import rounded_up


class Display:
    """A progress bar over all rounds of all arms; without a terminal, a line for every finished arm."""

    def __init__(self, config: RunConfig) -> None:
        self._console = Console(stderr=True)
        self._total = config.rounds * len(config.seeds) * len(config.sampling.samplers)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            TimeRemainingColumn(compact=True),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar: TaskID = self._progress.add_task("getting ready", total=self._total, news="")
        self._arm, self._left = "", 0

    def __enter__(self) -> Display:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def say(self, words: str) -> None:
        """Print a line above the bar."""
        self._progress.console.print(words, highlight=False, markup=False, soft_wrap=True)

    def begin(self, arm: str, num_rounds: int, num_done: int) -> None:
        """Show which arm is running."""
        self._arm, self._left = arm, num_rounds - num_done
        self._progress.update(self._bar, description=arm, advance=num_done)

    def round_done(self, record: dict[str, Any], seconds: float) -> None:
        """Show a finished round."""
        news = _news(record)
        self._left -= 1
        self._progress.update(self._bar, advance=1, news=news)
        if not self._console.is_terminal and self._left == 0:
            self._console.print(f"{self._arm}: {news}", highlight=False, markup=False, soft_wrap=True)


def _news(record: dict[str, Any]) -> str:
    accuracy = record["accuracy"]
    parts = [] if accuracy is None else [f"accuracy {accuracy:.1%}"]
    if record["spent"]["num_clients"]:
        parts.append(f"ε ≤ {rounded_up(record['spent']['epsilon']['maximum'])}")
    return ", ".join(parts)
