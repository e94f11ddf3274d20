"""Cases run in a process that may fail: with a limit on memory and on time, and what became of each written down."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MOST_SECONDS = 5.0  # of the processor: other processes may keep the machine busy
_MOST_WAITING_SECONDS = 90.0
MOST_GROWTH_MB = 500
_KILLED_AFTER_SECONDS = 150.0
_MORE_ADDRESSES = 3 << 30  # a request beyond this fails in place of taking the machine down

# One case: takes its number, and returns its exit code, which codes are right, and the words printed.
Case = Callable[[int], tuple[int, frozenset[int], str]]


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        index: Its number; with the seed it makes the case again.
        what: Which mutation of what.
        problem: Empty if all is well; else traceback, code, hang, memory, crash or words.
        code: The exit code.
        seconds: Of the processor.
        growth_mb: How much the process grew.
        detail: The traceback, or the words.
    """

    index: int
    what: str
    problem: str
    code: int | None
    seconds: float
    growth_mb: float
    detail: str


_under_way = ["?"]


def doing(what: str, most_seconds: float = MOST_SECONDS) -> None:
    """Note what a case does before it does it, for a case that never comes to its end, and how long it may take."""
    _under_way[0] = what
    _limit_time(most_seconds, _MOST_WAITING_SECONDS)


class Hang(BaseException):
    """A case took too long; no code under test catches it."""


def run_all(case: Case, numbers: range) -> Iterator[Outcome]:
    """Run every case, in a forked process that is replaced whenever it is lost or has grown."""
    first = numbers.start
    while first < numbers.stop:
        for outcome in _batch(case, range(first, numbers.stop)):
            first = outcome.index + 1
            yield outcome


def _batch(case: Case, numbers: range) -> Iterator[Outcome]:
    """Run cases in one process until it is lost, has grown, or is through."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        ended = 1
        try:  # whatever happens, a child never goes on as its parent
            os.close(reading)
            _work(case, numbers, writing)
            ended = 0
        finally:
            os._exit(ended)
    os.close(writing)
    following = numbers.start
    try:
        with os.fdopen(reading, "rb") as told:
            while following < numbers.stop:
                ready, _, _ = select.select([told], [], [], _KILLED_AFTER_SECONDS)
                line = told.readline() if ready else b""
                if not line.endswith(b"\n"):
                    problem = "crash" if ready else "hang"
                    if ready and _ended_well(child):
                        child = 0
                        return
                    yield Outcome(following, "?", problem, None, _KILLED_AFTER_SECONDS, 0.0, "the process was lost")
                    return
                outcome = Outcome(**json.loads(line))
                following = outcome.index + 1
                yield outcome
    finally:
        if child:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _ended_well(child: int) -> bool:
    return os.waitpid(child, 0)[1] == 0


def _work(case: Case, numbers: range, writing: int) -> None:
    with open("/proc/self/statm", "rb") as pages:
        size = int(pages.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MORE_ADDRESSES,) * 2)
    for one in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(one, _alarm)
    before = _peak_mb()
    with os.fdopen(writing, "wb", buffering=0) as tell:
        for index in numbers:
            outcome = _judged(case, index, before)
            tell.write(json.dumps(outcome.__dict__).encode() + b"\n")
            if outcome.growth_mb > MOST_GROWTH_MB / 2:  # the next cases are measured afresh
                return


def _judged(case: Case, index: int, before: float) -> Outcome:
    began = time.process_time()
    code, problem, detail = None, "", ""
    doing("?")
    try:
        code, right, words = case(index)
        _limit_time(0.0, 0.0)
        detail = words[-600:]
        if "out of memory" in words:
            problem = "memory"
        elif code not in right:
            problem = "code"
        elif not all(one.isprintable() or one in "\n\t\xa0" for one in words):  # the last is ours: 19.4 %
            problem = "words"
    except Hang:
        problem, detail = "hang", traceback.format_exc()[-1500:]
    except BaseException as error:
        problem = "memory" if isinstance(error, MemoryError) else "traceback"
        detail = traceback.format_exc()[-1500:]
    finally:
        _limit_time(0.0, 0.0)
    growth = _peak_mb() - before
    if not problem and growth > MOST_GROWTH_MB:
        problem = "memory"
    return Outcome(index, _under_way[0], problem, code, time.process_time() - began, growth, detail)


def _limit_time(working: float, waiting: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, working)
    signal.setitimer(signal.ITIMER_REAL, waiting)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _alarm(*_: object) -> None:
    raise Hang
