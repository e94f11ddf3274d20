"""How a run shows itself while it runs: rounds, accuracy, ε spent, time left; on stderr."""

from __future__ import annotations

from typing import Any

from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

from fedpcs import _format
from fedpcs.experiments.progress_bar import ProgressBar
from fedpcs.experiments.run_config import RunConfig


class Display(ProgressBar):
    """A progress bar over all rounds of all arms; without a terminal, a line for every finished arm."""

    def __init__(self, config: RunConfig) -> None:
        total = config.rounds * len(config.seeds) * len(config.sampling.samplers)
        news = TextColumn("{task.fields[news]}")
        super().__init__(total, MofNCompleteColumn(), news, TimeRemainingColumn(compact=True))
        self._arm, self._left = "", 0

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
            self.say(f"{self._arm}: {news}")


def _news(record: dict[str, Any]) -> str:
    accuracy = record["accuracy"]
    parts = [] if accuracy is None else [f"accuracy {_format.share(accuracy)}"]
    if record["spent"]["num_clients"]:
        parts.append(f"ε ≤ {_format.rounded_up(record['spent']['epsilon']['maximum'])}")
    return ", ".join(parts)
