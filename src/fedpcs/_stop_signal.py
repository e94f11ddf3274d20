"""Ctrl-C and SIGTERM as a question a long computation asks itself, at places where it can stop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """Set an event at the first SIGINT or SIGTERM; the second ends the process at once.

    Python takes signals in the main thread only: in another one the event is never set.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def note(_: int, __: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        os.write(2, b"stopping as soon as everything is safe; once more to stop at once\n")  # print may be under way

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
