"""How far a transfer is, shown on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from fedpcs.learning.datasets.download import Progress


@contextlib.contextmanager
def transfers(*, is_shown: bool) -> Iterator[Callable[[str], Progress]]:
    """Give a function that opens a line for a file and returns what to call as its bytes arrive."""
    if not is_shown:
        yield lambda file_name: lambda done, total: None
        return
    from rich import progress
    from rich.console import Console

    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.DownloadColumn()
    with progress.Progress(*columns, progress.TimeRemainingColumn(), console=Console(stderr=True)) as bars:

        def opened(file_name: str) -> Progress:
            task = bars.add_task(file_name, total=None)
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield opened
