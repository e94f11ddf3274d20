"""What child processes owe their parent: to end when it ends."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends, however it ends. Only Linux can."""
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
