"""Clients in worker processes, one thread each: twice as quick on two cores, and safe from clients that die or hang.

Every worker can play every client; the next task goes to whoever is free. Data sets, parameters and updates lie in
shared memory, mapped by all and copied by none. A worker that dies or passes its deadline is killed and replaced.
Results are those of the in-process engine, bit for bit: each client trains alone on one thread with draws of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import torch
import torch.multiprocessing
from torch import nn

from fedpcs._processes import WORKER, ensure_fork_server, refuse_import_of_script, start, why_no_start
from fedpcs._validate import FloatArray
from fedpcs.engines import worker_process
from fedpcs.engines.base import Score, chunks, total_score
from fedpcs.errors import FedpcsError, InvalidInput, WrongDevice
from fedpcs.learning import wire
from fedpcs.learning.client import ClientPlan, ClientSide, Question
from fedpcs.learning.client_data import ClientData
from fedpcs.learning.device import device_of_worker
from fedpcs.learning.layout import Values, as_tensor, layout_of
from fedpcs.learning.protocol import ClientFailure, FailureKind, Reply, Task

# Activations of a batch are megabytes: below the first threshold malloc does not map them anew each time.
_MALLOC = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=1073741824:glibc.malloc.hugetlb=1"
_START_SECONDS = 120.0
_MOST_STARTS_IN_A_ROW = 3
_MOST_TRIES = 3
_HEADER_ROOM = 2**20


@dataclass
class _Worker:
    """A process, its pipe, and what it is busy with. Mutable: the one place where an engine keeps changing state."""

    process: BaseProcess
    connection: Connection
    is_ready: bool = False
    job: int | None = None
    since: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class _Lost:
    """A job no reply came for."""

    kind: FailureKind
    reason: str


class WorkerEngine:
    """Plays clients in worker processes.

    Args:
        plan: How clients train; on `cuda` workers take the cards in turn.
        model: What they train.
        data: Their records.
        num_workers: How many processes; one for each core is best.
        num_slots: How many updates fit in shared memory at once: the cohort size. More still work, more slowly.
        deadline_seconds: How long one client may take before its worker is killed.
        side: What to make in each worker; a test's way to put faults in.
    """

    name = "workers"

    def __init__(
        self,
        plan: ClientPlan,
        model: nn.Module,
        data: ClientData,
        *,
        num_workers: int = 2,
        num_slots: int = 20,
        deadline_seconds: float = 600.0,
        side: Any = ClientSide,
    ) -> None:
        refuse_import_of_script()
        self._context: Any = torch.multiprocessing.get_context("forkserver")
        warm_up = ["fedpcs.engines.record_warm_up"] if plan.has_noisy_steps else []
        self._context.set_forkserver_preload(["fedpcs.engines.worker_process", *warm_up])
        _start_forkserver()
        self._num_tests = data.num_tests
        self._deadline_seconds = deadline_seconds
        num_parameters = layout_of(model).num_parameters
        self._parameters = _shared(num_parameters)
        self._slots = _shared(num_slots, num_parameters)
        self._most_bytes = 8 * num_parameters + _HEADER_ROOM
        self._side, self._made_of = side, (plan, model, data)
        self._num_failed_starts = 0
        self._workers = [self._start(position) for position in range(num_workers)]

    def run(self, parameters: Values, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Yield a reply for every task, in the order they come in."""
        jobs = [
            {
                "kind": "train",
                "task": wire.task_values(task),
                "slot": index if index < len(self._slots) else None,
            }
            for index, task in enumerate(tasks)
        ]
        for index, outcome in self._carry_out(parameters, jobs):
            yield self._reply(index, tasks[index], outcome)

    def ask(self, parameters: Values, question: Question, tasks: Sequence[Task]) -> FloatArray:
        """Return every client's answer to a question, in the order of the tasks; NaN from one that fails."""
        jobs = [{"kind": "ask", "question": question, "task": wire.task_values(task)} for task in tasks]
        answers = np.full(len(tasks), np.nan)
        for index, outcome in self._carry_out(parameters, jobs):
            if (numbers := _numbers(outcome)) is not None:
                answers[index] = numbers[0]
        return answers

    def score(self, parameters: Values) -> Score:
        """Evaluate a model on the test records."""
        jobs = [{"kind": "score", "start": start, "end": end} for start, end in chunks(self._num_tests)]
        found: dict[int, Any] = {}
        for _ in range(_MOST_TRIES):
            missing = [index for index in range(len(jobs)) if index not in found]
            for position, outcome in self._carry_out(parameters, [jobs[index] for index in missing]):
                if (numbers := _numbers(outcome)) is not None:
                    found[missing[position]] = numbers
            if len(found) == len(jobs):
                return total_score([found[index] for index in range(len(jobs))], self._num_tests)
        raise FedpcsError(f"workers could not evaluate the model, {_MOST_TRIES} times over. Try engine in-process.")

    def close(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.connection.close()  # an idle worker sees the end of its pipe and leaves
        for worker in self._workers:
            if worker.job is not None:
                worker.process.kill()
            worker.process.join(timeout=5.0)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _reply(self, index: int, task: Task, outcome: bytes | _Lost) -> Reply:
        if isinstance(outcome, _Lost):
            return ClientFailure(task.round_index, task.client, outcome.kind, outcome.reason)
        try:
            if outcome[0] == worker_process.IN_SLOT:
                return wire.report_of(wire.parse_header(outcome[1:]), self._slots[index].numpy())
            if outcome[0] == worker_process.MESSAGE:
                return wire.decode(outcome[1:])
            kind, reason = json.loads(outcome[1:])
        except (TypeError, ValueError) as error:  # InvalidInput is one
            kind, reason = "message", str(error)
        return ClientFailure(task.round_index, task.client, kind, reason)

    def _carry_out(self, parameters: Values, jobs: Sequence[dict[str, Any]]) -> Iterator[tuple[int, bytes | _Lost]]:
        """Give jobs to whoever is free; yield (number of the job, what came of it) as they are done."""
        self._parameters.copy_(as_tensor(parameters))
        messages = [json.dumps(job).encode() for job in jobs]
        waiting, num_open = deque(range(len(messages))), len(messages)
        try:
            while num_open:
                for worker in self._workers:
                    if worker.is_ready and worker.job is None and waiting:
                        self._send(worker, waiting.popleft(), messages)
                for index, outcome in self._collect():
                    num_open -= 1
                    yield index, outcome
        finally:  # left early: a busy worker would write into memory that is used again
            for position, worker in enumerate(self._workers):
                if worker.job is not None:
                    self._replace(position)

    def _send(self, worker: _Worker, index: int, messages: Sequence[bytes]) -> None:
        worker.job, worker.since = index, time.monotonic()
        with contextlib.suppress(ConnectionError):  # it has died: its end is noticed with the others'
            worker.connection.send_bytes(messages[index])

    def _collect(self) -> Iterator[tuple[int, bytes | _Lost]]:
        """Wait for something to happen, then yield what came of every job that ended."""
        due = min(worker.since + self._patience(worker) for worker in self._workers if self._is_watched(worker))
        handles: list[Any] = [worker.connection for worker in self._workers]
        ended = wait(handles, timeout=max(0.0, due - time.monotonic()))
        for position, worker in enumerate(self._workers):
            if worker.connection in ended:
                yield from self._receive(position, worker)
            elif self._is_watched(worker) and time.monotonic() >= worker.since + self._patience(worker):
                yield from self._give_up(position, "deadline", f"took longer than {self._patience(worker):g} s")

    def _is_watched(self, worker: _Worker) -> bool:
        return worker.job is not None or not worker.is_ready

    def _patience(self, worker: _Worker) -> float:
        return self._deadline_seconds if worker.is_ready else _START_SECONDS

    def _receive(self, position: int, worker: _Worker) -> Iterator[tuple[int, bytes | _Lost]]:
        reply: bytes | None = None
        with contextlib.suppress(EOFError, OSError):
            reply = worker.connection.recv_bytes(self._most_bytes)
        if reply is None:
            worker.process.join(timeout=1.0)
            if worker.process.is_alive():  # more than it may send
                yield from self._give_up(position, "message", f"sent more than {self._most_bytes:,} bytes")
            else:
                yield from self._give_up(position, "died", f"its process ended with code {worker.process.exitcode}")
            return
        if not worker.is_ready:
            if reply[:1] == bytes([worker_process.REFUSED]):
                raise InvalidInput(f"workers cannot be started: {reply[1:].decode(errors='replace')}")
            worker.is_ready, self._num_failed_starts = True, 0
            return
        if reply[:1] == bytes([worker_process.MISTAKEN]):
            raise WrongDevice(reply[1:].decode(errors="replace"))
        index, worker.job = worker.job, None
        if index is not None:
            yield index, reply or bytes([worker_process.MESSAGE])

    def _give_up(self, position: int, kind: FailureKind, reason: str) -> Iterator[tuple[int, _Lost]]:
        worker = self._workers[position]
        index = worker.job
        if not worker.is_ready:
            if why := why_no_start(worker.process):
                raise InvalidInput(f"workers cannot be started: {why}")
            self._num_failed_starts += 1
            if self._num_failed_starts >= _MOST_STARTS_IN_A_ROW:
                raise FedpcsError(f"workers cannot be started: {reason}. Run with engine in-process to see why.")
        self._replace(position)
        if index is not None:
            yield index, _Lost(kind, reason)

    def _replace(self, position: int) -> None:
        worker = self._workers[position]
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        self._workers[position] = self._start(position)

    def _start(self, position: int) -> _Worker:
        ours, theirs = self._context.Pipe()
        plan, model, data = self._made_of
        here = replace(plan, device=device_of_worker(plan.device, position))
        make_side = functools.partial(self._side, here, model, data)

        def make() -> BaseProcess:
            made: BaseProcess = self._context.Process(
                target=worker_process.serve,
                args=(theirs, make_side, self._parameters, self._slots),
                daemon=True,
                name=WORKER,
            )
            return made

        try:
            process = start(make)
        except (EOFError, OSError) as error:
            raise FedpcsError(f"workers cannot be started: {error or 'their parent process has died'}.") from error
        except RuntimeError as error:  # torch, putting the data where workers can see it
            raise _no_room(error) from error
        theirs.close()
        return _Worker(process, ours)


def _start_forkserver() -> None:
    """Start the process that workers are forked from, with a malloc that keeps what tensors give back."""
    before = os.environ.get("GLIBC_TUNABLES")
    if before is None:
        os.environ["GLIBC_TUNABLES"] = _MALLOC  # read once, when a process starts
    try:
        ensure_fork_server()
    finally:
        if before is None:
            del os.environ["GLIBC_TUNABLES"]


def _numbers(outcome: bytes | _Lost) -> Any:
    is_good = isinstance(outcome, bytes) and outcome[:1] == bytes([worker_process.NUMBERS])
    return json.loads(outcome[1:]) if is_good and isinstance(outcome, bytes) else None


def _shared(*shape: int) -> torch.Tensor:
    try:  # torch has no types for share_memory_
        found: torch.Tensor = torch.zeros(shape).share_memory_()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise _no_room(error) from error
    return found


def _no_room(error: RuntimeError) -> FedpcsError:
    return FedpcsError(
        f"shared memory for the workers cannot be had: {str(error)[:200]}. Make room in /dev/shm (in a container: "
        "--shm-size), or run with engine.kind = 'in-process'."
    )
