"""Processes for the ledger's crash tests: a server that imports once and forks a fresh child for every job.

It reads one job per line from stdin and answers each with one line. A child belongs to the server alone, so the only
process it ever kills is one that it started and has not yet waited for.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from fedpcs.errors import BudgetExhausted
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import CLIENT_LEVEL, Event, Family
from fedpcs.privacy.ledger import PrivacyLedger, ReleaseKey

RHO = 0.1
# What a child says: a mark at each place it passes, that it waits to be killed, or its result.
MARK, PAUSED = b".", b"!"


def train(job: dict[str, Any], checkpoint: Any) -> None:
    """Run rounds × clients: charge, then let the value leave. Resumes at the start of the round it was in."""
    checkpoint("start", 0)
    event = Event(Rho.of(RHO), CLIENT_LEVEL, "noise", Family.GAUSSIAN, job["is_replayable"])
    log = Path(job["log"])
    lines = log.read_text().splitlines() if log.exists() else []
    first = max((int(line.split()[0]) for line in lines), default=0)
    with PrivacyLedger.open(job["ledger"]) as ledger, log.open("a") as released:
        for round_index in range(first, job["rounds"]):
            for client in range(job["clients"]):
                step = round_index * job["clients"] + client
                checkpoint("before charge", step)
                receipt = ledger.charge(ReleaseKey("run", round_index, client), event)
                checkpoint("between charge and release", step)
                released.write(f"{round_index} {client} {receipt.attempt}\n")
                released.flush()
                os.fsync(released.fileno())
                checkpoint("after release", step)


def spend(job: dict[str, Any], checkpoint: Any) -> int:
    """Charge one client again and again; return how many charges were allowed."""
    event = Event(Rho.of(job["rho"]), CLIENT_LEVEL, "noise", Family.GAUSSIAN)
    allowed = 0
    with PrivacyLedger.open(job["ledger"]) as ledger:
        for number in range(job["charges"]):
            try:
                ledger.charge(ReleaseKey(job["run"], number, "ada"), event)
                allowed += 1
            except BudgetExhausted:
                pass
    return allowed


def start(job: dict[str, Any]) -> tuple[int, int]:
    """Fork a child that does the job. Return its id and the pipe on which it speaks."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading

    def checkpoint(place: str, step: int) -> None:
        os.write(writing, MARK)
        if job.get("pause") == [place, step]:
            os.write(writing, PAUSED)
            time.sleep(60.0)

    code = 1
    try:
        result = {"train": train, "spend": spend}[job["do"]](job, checkpoint)
        os.write(writing, json.dumps(result).encode())
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(child: int, reading: int, job: dict[str, Any]) -> dict[str, Any]:
    """Wait for a child; kill it if it pauses, or `kill_delay` seconds after it has made `kill_mark` marks."""
    said = b""
    while heard := os.read(reading, 4096):
        said += heard
        if PAUSED in said or said.count(MARK) >= job.get("kill_mark", math.inf):
            time.sleep(job.get("kill_delay", 0.0))
            os.kill(child, signal.SIGKILL)
            break
    os.close(reading)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    result = said.strip(MARK + PAUSED)
    return {"status": status, "result": json.loads(result) if result else None}


def main() -> None:
    """Serve jobs until stdin ends. The jobs of one line run at the same time."""
    for line in sys.stdin:
        jobs = json.loads(line)
        children = [start(job) for job in jobs]
        answers = [finish(*child, job) for child, job in zip(children, jobs, strict=True)]
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
