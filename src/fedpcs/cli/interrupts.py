"""Ctrl-C in words: where what was done is kept, and the command that goes on with it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fedpcs.errors import Interrupted


@contextmanager
def goes_on_by(command: str, folder: Path, begun: Path) -> Iterator[None]:
    """Have an interrupt end a command with one line that names its folder and the command that goes on.

    Args:
        command: What goes on, such as "fedpcs resume FOLDER".
        folder: Where what is done is kept.
        begun: A file that is there once there is something to go on with.

    Raises:
        Interrupted: Somebody asked the command to stop, or stopped it.
    """
    try:
        yield
    except BaseException as error:
        if not is_interrupt(error):
            raise
        words = str(error) if isinstance(error, Interrupted) else "stopped."
        how = f"Go on with `{command}`." if begun.exists() else "Nothing was saved yet."
        raise Interrupted(f"{folder}: {words} {how}") from None


def is_interrupt(error: BaseException | None) -> bool:
    """Say whether an interrupt is behind an error: a file that was being written may fail to close, and hide it."""
    if isinstance(error, SystemExit):
        return False
    while error is not None and not isinstance(error, KeyboardInterrupt | Interrupted):
        error = error.__context__
    return error is not None


def hush() -> None:
    """Keep what was being written from complaining once more as it is thrown away."""
    sys.unraisablehook = lambda _: None


def command_line() -> str:
    """Return the command that is running, as it can be given again."""
    return shlex.join(["fedpcs", *sys.argv[1:]])


def resume_command(folder: Path) -> str:
    """Return the command that goes on with a run."""
    return shlex.join(["fedpcs", "resume", str(folder)])
