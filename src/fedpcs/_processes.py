"""How child processes begin, and what they owe their parent: to end when it ends."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from types import ModuleType

WORKER, CELL = "fedpcs-worker", "fedpcs-cell"
_PR_SET_PDEATHSIG = 1
_NO_GUARD = 97  # no signal, and nothing that Python ends with


def start(make: Callable[[], BaseProcess], *, needs_main: bool = False) -> BaseProcess:
    """Start a process that imports the user's script only if it must, and so needs no `__main__` guard there.

    Python imports the script that was run into every process it starts. Here the script is out of sight while a process
    starts; only if what the process is given cannot be found without it, the process is started again with it.

    Args:
        make: Returns the process, not yet started.
        needs_main: The process will look for something in the script by name.
    """
    if not needs_main:
        script, process = sys.modules["__main__"], make()
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            process.start()
            return process
        except (AttributeError, pickle.PicklingError):  # something of the script's: before anything was started
            pass
        finally:
            sys.modules["__main__"] = script
    process = make()
    process.start()
    return process


def ensure_fork_server() -> None:
    """Start the process that others are forked from, deaf to Ctrl-C: it would print a traceback while it imports."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a child starts with its parent's mask
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def refuse_import_of_script() -> None:
    """End this process if it is one of ours and imports the user's script, which begins work as it is imported."""
    process = multiprocessing.current_process()
    # As multiprocessing itself asks; processes of the user's own making get its own words.
    if getattr(process, "_inheriting", False) and process.name in (WORKER, CELL):
        os._exit(_NO_GUARD)


def why_no_start(process: BaseProcess) -> str:
    """Return what to tell the user of a process that ended early because of the script; empty if it was not that."""
    if process.exitcode != _NO_GUARD:
        return ""
    script = getattr(sys.modules["__main__"], "__file__", "the script")
    return (
        f"{script} begins its work as it is imported, and defines what other processes need, so that they import it. "
        "Put the lines that begin the work under `if __name__ == '__main__':`."
    )


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
