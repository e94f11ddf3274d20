"""What a worker process does: play clients, one task at a time, until its pipe is closed.

Tasks and replies are JSON; parameters come and updates go through memory shared with the server, so that a report takes
no copying. The process dies with its server, however that ends.
"""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

from fedpcs._processes import end_with_parent
from fedpcs.engines.failures import kind_of, reason_of
from fedpcs.errors import WrongDevice
from fedpcs.learning import wire
from fedpcs.learning.client import ClientSide
from fedpcs.learning.device import no_mistaken_device
from fedpcs.learning.protocol import ClientReport

READY, REFUSED, IN_SLOT, MESSAGE, NUMBERS, FAILED, MISTAKEN = b"RXSMNFD"


def serve(connection: Connection, make_side: Callable[[], ClientSide], parameters: Tensor, slots: Tensor) -> None:
    """Answer tasks from `connection` until it closes.

    Args:
        connection: To the server.
        make_side: Returns the clients' side; called here, so that what it holds is this process's own.
        parameters: (parameters,) shared; the server writes it before it sends tasks.
        slots: (slots, parameters) shared; a task says into which an update goes.
    """
    _settle_in()
    with contextlib.suppress(EOFError, ConnectionError):  # the server has gone, or has no more work
        try:
            side = make_side()
        except Exception as error:  # to be told to the user by the server
            connection.send_bytes(bytes([REFUSED]) + reason_of(error).encode())
            return
        connection.send_bytes(bytes([READY]))
        while True:
            job = json.loads(connection.recv_bytes())
            try:
                with no_mistaken_device():
                    reply = _reply(side, job, parameters, slots)
            except WrongDevice as error:  # it would strike every client
                reply = bytes([MISTAKEN]) + str(error).encode()
            except Exception as error:  # whatever a client's model or data do, the worker goes on
                reply = bytes([FAILED]) + json.dumps([kind_of(error), reason_of(error)]).encode()
            connection.send_bytes(reply)


def _reply(side: ClientSide, job: dict[str, Any], parameters: Tensor, slots: Tensor) -> bytes:
    if job["kind"] == "score":
        return bytes([NUMBERS]) + json.dumps(side.score(job["start"], job["end"], parameters)).encode()
    task = wire.task_of(job["task"])
    if job["kind"] == "ask":
        return bytes([NUMBERS]) + json.dumps([side.ask(job["question"], task, parameters)]).encode()
    slot = job["slot"]
    out = slots[slot] if slot is not None else torch.empty_like(parameters)
    report = side.answer(task, parameters, out)
    if slot is not None and _lies_in(report, out):
        return bytes([IN_SLOT]) + json.dumps(wire.header_of(report)).encode()
    return bytes([MESSAGE]) + wire.encode(report)


def _lies_in(report: ClientReport, out: Tensor) -> bool:
    values = report.values
    return (
        values.shape == tuple(out.shape) and values.ctypes.data == out.data_ptr() and values.dtype == out.numpy().dtype
    )


def _settle_in() -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server decides what it means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
