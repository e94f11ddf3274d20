"""A federation simulated by Flower on Ray, as an engine for the length of a `with` block.

Flower runs a server app and ends when it returns. Here the server app hands its grid over and waits: whoever runs the
rounds stays in charge, in the main thread, as with every other engine.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from flwr.app import ConfigRecordValues, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp
from flwr.simulation import run_simulation

from fedpcs.engines.flower import messages
from fedpcs.engines.flower.client_app import Member, make_client_app
from fedpcs.engines.flower.grid_engine import content_of, exchange
from fedpcs.errors import FedpcsError

_START_SECONDS = 180.0
_END_SECONDS = 60.0


@dataclass(frozen=True)
class Federation:
    """Clients that can be reached.

    Attributes:
        grid: Over which.
        nodes: Flower's id of each client's node, by the client's number.
    """

    grid: Grid
    nodes: Mapping[int, int]


@contextmanager
def simulated_federation(
    member_of: Callable[[Context, str], Member], num_clients: int, num_workers: int = 2, num_cards: int = 0
) -> Iterator[Federation]:
    """Start a simulation that lasts as long as the block.

    Args:
        member_of: The client a node plays in a run; sent to Ray's processes, so it must be small and picklable.
        num_clients: N, one node each; a client's number is its name.
        num_workers: Ray processes, one core each.
        num_cards: CUDA cards they share; each process sees one of them, and no other.
    """
    logging.getLogger("flwr").setLevel(logging.ERROR)
    grids: queue.Queue[Grid | BaseException] = queue.Queue()
    is_over = threading.Event()
    app, backend = ServerApp(), _backend(num_workers, num_cards)

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        grids.put(grid)
        is_over.wait()

    def play() -> None:
        try:
            run_simulation(app, make_client_app(member_of), num_clients, backend_config=backend)
        except BaseException as error:  # told to whoever waits for the grid
            grids.put(error)

    thread = threading.Thread(target=play, name="flower-simulation", daemon=True)
    thread.start()
    try:
        grid = grids.get(timeout=_START_SECONDS)
        if isinstance(grid, BaseException):
            raise FedpcsError(f"Flower's simulation cannot be started: {grid}.") from grid
        yield Federation(grid, _numbered(grid, num_clients))
    finally:
        is_over.set()
        thread.join(_END_SECONDS)


def _backend(num_workers: int, num_cards: int) -> dict[str, dict[str, ConfigRecordValues]]:
    share = 0.0
    if num_cards:
        share = math.floor(1e4 / -(-num_workers // num_cards)) / 1e4  # Ray counts ten-thousandths of a card
    here: dict[str, ConfigRecordValues] = {"num_cpus": num_workers, "log_to_driver": False, "logging_level": "ERROR"}
    return {
        "client_resources": {"num_cpus": 1, "num_gpus": share},
        "init_args": {**here, "num_gpus": num_cards} if num_cards else here,
    }


def _numbered(grid: Grid, num_clients: int) -> dict[int, int]:
    """Return every client's node: Flower's ids are random, so clients are asked who they are."""
    until = time.monotonic() + _START_SECONDS
    while len(ids := list(grid.get_node_ids())) < num_clients and time.monotonic() < until:
        time.sleep(0.05)
    sent = {node: Message(RecordDict(), node, messages.HELLO, ttl=_START_SECONDS) for node in ids}
    nodes = {}
    for node, reply in exchange(grid, sent, _START_SECONDS, 0.05):
        try:
            nodes[int(messages.read_hello(content_of(reply)).name)] = node
        except ConnectionError as error:
            raise FedpcsError(f"a simulated client does not start: {error}") from None
    return nodes
