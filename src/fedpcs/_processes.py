"""What child processes owe their parent: to end when it ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends, however it ends. Only Linux can."""
    if os.uname().sysname == "Linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end_with_starter() -> None:
    """End this process when the one that started it ends, which a fork server, its parent, may outlive."""
    starter = multiprocessing.parent_process()
    if starter is not None:
        threading.Thread(target=_end_after, args=(starter,), name="fedpcs-starter", daemon=True).start()


def _end_after(starter: BaseProcess) -> None:
    starter.join()
    os._exit(1)
