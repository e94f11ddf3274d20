"""Where arithmetic runs: on which device, and on how many threads.

How sums are split over threads changes their last bits, and processes share the cores. A mistake of ours about devices
is told from a client's failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController

from fedpcs.errors import WrongDevice

# What torch says when tensors of two devices meet, when NumPy is to read what lies on a device, and when a device lacks
# a type or an operation. It has no type of error for any of them.
_TORCH_SAYS = re.compile(
    r"(at|in|on|have)( the)? same device"
    r"|on different devices?"
    r"|device type tensor to numpy"
    r"|indices should be either on"
    r"|is on \S+, (but expected|different from other tensors)"
    r"|expected (object of )?device"
    r"|device type for generator"
    r"|(Input|weight) type \((torch\.cuda\.|MPS)"
    r"|(on|a|the) MPS (device|tensor|framework|backend)"
    r"|MPS does not support"
    r"|Could not run 'aten::.* from the '\w*(CUDA|MPS|Meta|PrivateUse1)\w*' backend",
    re.IGNORECASE,
)
_LONGEST = 300
WRONG_DEVICE = "a tensor is on the wrong device:"


def why_missing(device: str) -> str | None:
    """Return in words why tensors cannot live on a device of this machine; None if they can."""
    kind, _, index = device.partition(":")
    if kind == "mps":
        return None if torch.backends.mps.is_available() else "torch finds no such device"
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(index or 0) < count:
            return None
        return f"torch finds only {count} of them, numbered from 0" if count else "torch finds no such device"
    return None


def device_of_worker(device: str, worker: int) -> str:
    """Return the device of one of several worker processes: `cuda` is all cards, taken in turn."""
    count = torch.cuda.device_count() if device == "cuda" else 0
    return f"cuda:{worker % count}" if count else device


@contextmanager
def no_mistaken_device() -> Iterator[None]:
    """Raise `WrongDevice` in place of what torch raises in the block when a tensor is not where it should be."""
    try:
        yield
    except Exception as error:
        if isinstance(error, WrongDevice) or not _TORCH_SAYS.search(str(error)):
            raise
        words = " ".join(str(error).split())[:_LONGEST]
        raise WrongDevice(
            f"{WRONG_DEVICE} {words} This is a mistake in a program, no client dropped out. If the "
            "model is your own, let it make tensors on the device of its input; if not, please report it. "
            "engine.device = 'cpu' avoids it."
        ) from error


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch and BLAS compute on one thread within the block, as workers do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with _controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries, which takes milliseconds
