"""Clients and networks that misbehave on purpose, to see that a run survives them.

Faults enter where real ones do. `FaultyClients` stands in for `ClientSide`, in whichever process clients are played;
`FaultyEngine` stands around any engine and meddles with what comes back. Which clients are struck, and when, depends
on (seed, round, client) alone, so a faulty run can be repeated and resumed.
"""

from __future__ import annotations

import ctypes
import math
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from fedpcs import _random, _validate
from fedpcs._validate import FloatArray
from fedpcs.engines.base import Engine, Score
from fedpcs.learning import wire
from fedpcs.learning.client import ClientPlan, ClientSide, Question
from fedpcs.learning.client_data import ClientData
from fedpcs.learning.layout import Layout, Values
from fedpcs.learning.protocol import ClientFailure, ClientReport, Reply, Task


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong, and for whom.

    Attributes:
        kind: A key of `ACTS`, `REPORTS`, `MESSAGES` or `DELIVERIES`.
        rounds: In which rounds; None: in all.
        clients: With which clients; None: with all.
        chance: Probability that it strikes one of these: one number, or one for every client of the population.
        seed: Of these chances.
        when: Whether it strikes a client that trains, or one that a sampler asks.
        value: What the kind needs: what is claimed, what is written, whom a reply claims to be from.
        tensor: Which of the model's tensors is struck, for kinds that strike one.
    """

    kind: str
    rounds: tuple[int, ...] | None = None
    clients: tuple[int, ...] | None = None
    chance: float | tuple[float, ...] = 1.0
    seed: int = 0
    when: Literal["train", "ask"] = "train"
    value: Any = None
    tensor: int = 0

    def __post_init__(self) -> None:
        _validate.choice("kind", self.kind, (*ACTS, *REPORTS, *MESSAGES, *DELIVERIES))

    def strikes(self, round_index: int, client: int) -> bool:
        """Say whether it strikes this client in this round.

        Example:
            >>> Fault("raise", rounds=(2,)).strikes(2, 7), Fault("raise", rounds=(2,)).strikes(3, 7)
            (True, False)
        """
        if not (self.rounds is None or round_index in self.rounds) or not (
            self.clients is None or client in self.clients
        ):
            return False
        chance = self.chance[client] if isinstance(self.chance, tuple) else self.chance
        return bool(_random.generator(self.seed, f"fault {self.kind}", round_index, client).random() < chance)


class FaultyClients:
    """Clients some of whom misbehave; takes the place of `ClientSide`, in this process or in a worker's."""

    def __init__(self, plan: ClientPlan, model: nn.Module, data: ClientData, faults: Sequence[Fault] = ()) -> None:
        self.plan = plan
        self.data = data
        self.faults = tuple(fault for fault in faults if fault.kind in ACTS or fault.kind in REPORTS)
        self._side = ClientSide(plan, model, data)

    @property
    def layout(self) -> Layout:
        """The model's."""
        return self._side.layout

    def answer(self, task: Task, parameters: Tensor, out: Tensor) -> ClientReport:
        """Answer as `ClientSide` does, or go wrong."""
        struck = self._struck("train", task)
        for fault in struck:
            if fault.kind in ACTS:
                ACTS[fault.kind]()
        report = self._side.answer(task, parameters, out)
        for fault in struck:
            if fault.kind in REPORTS:
                report = REPORTS[fault.kind](report, fault)
        return report

    def ask(self, question: Question, task: Task, parameters: Tensor) -> float:
        """Answer a question, or go wrong; a fault with a value gives that for an answer."""
        for fault in self._struck("ask", task):
            if fault.value is not None:
                return float(fault.value)
            ACTS[fault.kind]()
        return self._side.ask(question, task, parameters)

    def score(self, start: int, end: int, parameters: Tensor) -> tuple[int, float]:
        """Evaluate as `ClientSide` does."""
        return self._side.score(start, end, parameters)

    def _struck(self, when: str, task: Task) -> list[Fault]:
        return [fault for fault in self.faults if fault.when == when and fault.strikes(task.round_index, task.client)]


class FaultyEngine:
    """An engine whose replies come late, twice, damaged, from strangers or not at all.

    Args:
        inner: Who really runs the clients.
        faults: What goes wrong on the way back.
        most_bytes: The largest message let through.
    """

    def __init__(self, inner: Engine, faults: Sequence[Fault], most_bytes: int = 2**22) -> None:
        self._inner = inner
        self._faults = tuple(fault for fault in faults if fault.kind in MESSAGES or fault.kind in DELIVERIES)
        self._most_bytes = most_bytes
        self._late: list[Reply] = []

    @property
    def name(self) -> str:
        """The inner engine's."""
        return self._inner.name

    def run(self, parameters: Values, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Yield what is left of the replies, and what is late from the call before."""
        late, self._late = self._late, []
        yield from late
        for reply in self._inner.run(parameters, tasks):
            yield from self._delivered(reply)

    def ask(self, parameters: Values, question: Question, tasks: Sequence[Task]) -> FloatArray:
        """Ask as the inner engine does."""
        return self._inner.ask(parameters, question, tasks)

    def score(self, parameters: Values) -> Score:
        """Evaluate as the inner engine does."""
        return self._inner.score(parameters)

    def close(self) -> None:
        """Close the inner engine."""
        self._inner.close()

    def _delivered(self, reply: Reply) -> list[Reply]:
        found = [reply]
        for fault in self._faults:
            if not fault.strikes(reply.round_index, reply.client):
                continue
            if fault.kind in MESSAGES:
                found = [self._sent(one, fault) for one in found]
            elif fault.kind == "late":
                self._late += [_kept(one) for one in found]
                found = []
            else:
                found = DELIVERIES[fault.kind](found, fault)
        return found

    def _sent(self, reply: Reply, fault: Fault) -> Reply:
        """Send a report as bytes, some of which do not arrive as they left."""
        if isinstance(reply, ClientFailure):
            return reply
        rng = _random.generator(fault.seed, f"damage {fault.kind}", reply.round_index, reply.client)
        message = MESSAGES[fault.kind](wire.encode(reply), fault, rng)
        try:
            return wire.decode(message, self._most_bytes)
        except wire.MessageRefused as error:
            return ClientFailure(reply.round_index, reply.client, "message", str(error))


class Payload:
    """What runs code when it is unpickled: here, code that makes a file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (Path(self._path),)


# --- What a client's process does to itself, before it trains ---


def _raise() -> None:
    raise RuntimeError("injected: the client's code failed")


def _exit() -> None:
    sys.exit(3)


def _kill() -> None:
    """Die as the system's out-of-memory killer makes a process die. Only where clients have a process of their own."""
    os.kill(os.getpid(), signal.SIGKILL)


def _use_up_memory() -> None:
    torch.empty(2**50)


def _hang() -> None:
    while True:
        time.sleep(0.01)


def _hang_in_c() -> None:
    """Hang where Python cannot interrupt. Only where clients have a process of their own."""
    ctypes.PyDLL(None).sleep(3600)


def _lose_device() -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def _mix_devices() -> None:
    raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")


ACTS: dict[str, Callable[[], None]] = {
    "raise": _raise,
    "exit": _exit,
    "kill": _kill,
    "memory": _use_up_memory,
    "hang": _hang,
    "hang-in-c": _hang_in_c,
    "device": _lose_device,
    "wrong-device": _mix_devices,
}


# --- What is wrong with a report when it leaves the client ---


def _with_numbers(report: ClientReport, fault: Fault) -> ClientReport:
    """Write `value` over one tensor of the update, where it lies."""
    report.values[_span(report.layout, fault.tensor)] = fault.value
    return report


def _with_one_number(report: ClientReport, fault: Fault) -> ClientReport:
    """Write `value` over the last number of one tensor."""
    report.values[_span(report.layout, fault.tensor).stop - 1] = fault.value
    return report


def _denormal(report: ClientReport, fault: Fault) -> ClientReport:
    report.values[:] = 1e-42
    return report


def _enormous(report: ClientReport, fault: Fault) -> ClientReport:
    report.values[:] *= np.float32(1e30 if fault.value is None else fault.value)
    return report


def _reshaped(report: ClientReport, fault: Fault) -> ClientReport:
    """Give one tensor the shape `value`, and as many numbers as that takes."""
    where = _span(report.layout, fault.tensor)
    numbers = np.resize(report.values[where], math.prod(fault.value)).astype(np.float32)
    shapes = [fault.value if k == fault.tensor else shape for k, shape in enumerate(report.layout.shapes)]
    values = np.concatenate([report.values[: where.start], numbers, report.values[where.stop :]])
    return replace(report, layout=Layout(report.layout.names, tuple(shapes)), values=values)


def _of_dtype(report: ClientReport, fault: Fault) -> ClientReport:
    return replace(report, values=report.values.astype(fault.value))


def _without_key(report: ClientReport, fault: Fault) -> ClientReport:
    where, layout = _span(report.layout, fault.tensor), report.layout
    keep = [k for k in range(len(layout.names)) if k != fault.tensor]
    smaller = Layout(tuple(layout.names[k] for k in keep), tuple(layout.shapes[k] for k in keep))
    return replace(report, layout=smaller, values=np.delete(report.values, where))


def _with_extra_key(report: ClientReport, fault: Fault) -> ClientReport:
    larger = Layout((*report.layout.names, "extra"), (*report.layout.shapes, (1,)))
    return replace(report, layout=larger, values=np.append(report.values, np.float32(0.0)))


def _with_keys_swapped(report: ClientReport, fault: Fault) -> ClientReport:
    return replace(report, layout=Layout(report.layout.names[::-1], report.layout.shapes[::-1]))


def _claiming(name: str) -> Callable[[ClientReport, Fault], ClientReport]:
    def claim(report: ClientReport, fault: Fault) -> ClientReport:
        changed: dict[str, Any] = {name: fault.value}
        return replace(report, **changed)

    return claim


def _bloated(report: ClientReport, fault: Fault) -> ClientReport:
    return replace(report, values=np.zeros(2**20, dtype=np.float32))


def _with_payload(report: ClientReport, fault: Fault) -> ClientReport:
    return replace(report, values=np.array([Payload(fault.value)] * report.values.size, dtype=object))


REPORTS: dict[str, Callable[[ClientReport, Fault], ClientReport]] = {
    "numbers": _with_numbers,
    "one-number": _with_one_number,
    "denormal": _denormal,
    "enormous": _enormous,
    "shape": _reshaped,
    "dtype": _of_dtype,
    "missing-key": _without_key,
    "extra-key": _with_extra_key,
    "swapped-keys": _with_keys_swapped,
    "size": _claiming("num_samples"),
    "budget": _claiming("budget"),
    "measures": _claiming("measures"),
    "nonce": _claiming("nonce"),
    "bloated": _bloated,
    "payload": _with_payload,
}


# --- What happens to a message on its way ---


def _truncated(message: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    return message[: int(rng.integers(len(message)))]


def _flipped(message: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    damaged, where = bytearray(message), int(rng.integers(8 * len(message)))
    damaged[where // 8] ^= 1 << where % 8
    return bytes(damaged)


def _random_bytes(message: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    return rng.bytes(len(message))


def _too_large(message: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    return message + bytes(2**22)


def _pickled(message: bytes, fault: Fault, rng: np.random.Generator) -> bytes:
    return pickle.dumps(Payload(fault.value))


MESSAGES: dict[str, Callable[[bytes, Fault, np.random.Generator], bytes]] = {
    "truncated": _truncated,
    "flipped": _flipped,
    "random": _random_bytes,
    "too-large": _too_large,
    "pickle": _pickled,
}


# --- What the network does with replies ---


def _dropped(replies: list[Reply], fault: Fault) -> list[Reply]:
    return []


def _twice(replies: list[Reply], fault: Fault) -> list[Reply]:
    return [*replies, *map(_kept, replies)]


def _and_a_stranger(replies: list[Reply], fault: Fault) -> list[Reply]:
    return [*replies, *(replace(_kept(reply), client=fault.value) for reply in replies)]


DELIVERIES: dict[str, Callable[[list[Reply], Fault], list[Reply]]] = {
    "drop": _dropped,
    "late": _dropped,  # and kept by the engine for its next call
    "twice": _twice,
    "stranger": _and_a_stranger,
}


def _kept(reply: Reply) -> Reply:
    """Return a reply whose values outlive the call that brought it."""
    return reply if isinstance(reply, ClientFailure) else replace(reply, values=reply.values.copy())


def _span(layout: Layout, tensor: int) -> slice:
    sizes = [math.prod(shape) for shape in layout.shapes]
    return slice(sum(sizes[:tensor]), sum(sizes[: tensor + 1]))
