"""One thread for arithmetic: how sums are split over threads changes their last bits, and processes share the cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController


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
