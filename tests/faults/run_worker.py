"""Processes for the tests that kill whole runs: a server that imports once and forks a fresh child for every command.

It reads one job per line from stdin and answers each with one line. A child is `fedpcs` with the arguments of the job,
in a session of its own. A child belongs to the server alone, so the only process it ever signals is one that it started
and has not yet waited for.
"""

from __future__ import annotations

import json
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def prepare() -> None:
    """Import all that a run needs, and start the process that forks its workers."""
    from fedpcs.learning.datasets import load_dataset
    from fedpcs.sampling import make_sampler
    from fedpcs.trial import run_store
    from fedpcs.trial.config import RunConfig
    from fedpcs.trial.schedule import make_schedule

    digest = run_store.code_digest()  # of the code that was imported, whatever becomes of the files
    run_store.code_digest = lambda: digest
    load_dataset("digits")
    config = RunConfig.model_validate({"rounds": 2, "data": {"num_clients": 4}, "game": {"reward": 20.0}})
    make_schedule(config, make_sampler("random"))  # so that the solver's compiled code is loaded once
    multiprocessing.forkserver.set_forkserver_preload(["fedpcs.engines.worker_process", "fault_injection"])
    multiprocessing.forkserver.ensure_running()
    multiprocessing.resource_tracker.ensure_running()


def command(job: dict[str, Any]) -> None:
    """Be `fedpcs` with the job's arguments."""
    import fedpcs.cli
    from fedpcs.report import study

    # The server's process that forks workers serves its children too: its start takes longer than a whole run.
    multiprocessing.forkserver._forkserver.ensure_running = lambda: None
    multiprocessing.forkserver.ensure_running = lambda: None
    if not job.get("draws_report"):  # figures take longer than all the rest of these runs
        study.write_report_safely = lambda store, say: None
    _die_at_write(job.get("die_at_write"))
    _limit_files(job.get("most_bytes"))
    sys.argv = ["fedpcs", *job["arguments"]]
    os.chdir(job["folder"])
    with open(job["talk"], "ab", buffering=0) as talk:
        os.dup2(talk.fileno(), 1)
        os.dup2(talk.fileno(), 2)
    fedpcs.cli.main()


def _die_at_write(number: int | None) -> None:
    """Kill this process right before the given one of its calls that put something on the disk for good."""
    if number is None:
        return
    left, fsync, replace = [number], os.fsync, os.replace

    def counting(call: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return counted

    os.fsync, os.replace = counting(fsync), counting(replace)  # Path.replace calls os.replace


def _limit_files(most_bytes: int | None) -> None:
    """Let no file grow beyond this: what a full disk or a quota does."""
    if most_bytes is not None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))


def start(job: dict[str, Any]) -> int:
    """Fork a child that does the job. Return its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        command(job)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def finish(child: int, job: dict[str, Any]) -> dict[str, Any]:
    """Wait for a child; send it signals at the times the job says, as (seconds, number), or once a file is there."""
    began = time.monotonic()
    signals = sorted(job.get("signals", []))
    sent = 0
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        now = time.monotonic() - began
        if pid:
            return {"status": os.waitstatus_to_exitcode(status), "seconds": now, "sent": sent}
        if now > 120.0:
            signals, sent = [(0.0, signal.SIGKILL)], 0
        if sent < len(signals) and now >= signals[sent][0] and _is_there(job.get("once")):
            os.kill(child, signals[sent][1])
            sent += 1
        time.sleep(0.0005)


def _is_there(path: str | None) -> bool:
    """Whether a log has the rounds the job waits for: PATH:LINES."""
    if path is None:
        return True
    name, _, lines = path.rpartition(":")
    return Path(name).exists() and Path(name).read_bytes().count(b"\n") >= int(lines)


def revive_forkserver() -> None:
    """Start the process that forks workers anew if it has died: a run killed in mid-request takes it along.

    In a real run it is the run's own, and nobody misses it.
    """
    for _ in range(100):
        try:
            probe = multiprocessing.get_context("forkserver").Process(target=int)
            probe.start()
            probe.join()
            return
        except (EOFError, OSError):  # it is dying, which takes a while with all it has loaded
            time.sleep(0.2)
    raise RuntimeError("the process that forks workers cannot be started")


def main() -> None:
    """Serve jobs until stdin ends. The jobs of one line run at the same time."""
    prepare()
    for line in sys.stdin:
        jobs = json.loads(line)
        children = [start(job) for job in jobs]
        answers = [finish(child, job) for child, job in zip(children, jobs, strict=True)]
        if any(answer["status"] < 0 for answer in answers):
            revive_forkserver()
        print(json.dumps(answers), flush=True)


if __name__ == "__main__":
    main()
