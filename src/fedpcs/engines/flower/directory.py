"""Who is connected: each node is asked for its client's name once, and is told terms by the client's number.

Without node authentication Flower gives a node a new id whenever it starts, so that a client is known by the name it
says. With it, a node's id goes with its key, and a name can be bound to the node that had it when the run began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from numpy.typing import NDArray

from fedpcs.engines.flower import messages
from fedpcs.engines.flower.announcement import Announcement
from fedpcs.engines.flower.grid_engine import content_of, exchange
from fedpcs.errors import InvalidInput, QuorumNotReached

_HELLO_SECONDS = 120.0
# Once a run goes on, nobody waits that long for a stranger, and it is not asked in every round.
_HELLO_SECONDS_LATER = 20.0
_ASK_AGAIN_SECONDS = 300.0
_LONGEST_WORDS = 300  # of a client's, from their end
IntArray = NDArray[np.int64]


class Directory:
    """Knows which node plays which client, now.

    A name belongs to the node that said it first, until that node is gone: a second one that claims it is not heard.

    Args:
        grid: Of the server app.
        poll_seconds: How often to look for replies.
        say: Told of nodes that come, go, or cannot be used.
    """

    def __init__(self, grid: Grid, poll_seconds: float, say: Callable[[str], None]) -> None:
        self._grid, self._poll_seconds, self._say = grid, poll_seconds, say
        self._hellos: dict[int, messages.Hello] = {}
        self._refused: dict[int, messages.Hello] = {}
        self._numbers: dict[str, int] = {}
        self._sizes: dict[str, int] = {}
        self._bound: dict[str, int] = {}
        self._silent_until: dict[int, float] = {}

    def wait_for(self, num_clients: int, seconds: float) -> None:
        """Wait until so many clients are connected.

        Raises:
            QuorumNotReached: They were not in time.
        """
        until = time.monotonic() + seconds
        while len(self.refresh()) < num_clients:
            if time.monotonic() > until:
                raise QuorumNotReached(
                    f"{len(self._hellos)} of {num_clients} clients were connected after {seconds:g} s. Start the "
                    "others, or raise federation.wait_seconds."
                )
            time.sleep(max(self._poll_seconds, 0.2))

    def enrol(self, roster: Mapping[str, int], bound: Mapping[str, int]) -> None:
        """Fix who takes part, in this order, with so many records each; others are strangers from now on.

        Args:
            roster: How many records each client has, by name.
            bound: The only node that may have a name; names that are not in it are free.
        """
        self._numbers = {name: number for number, name in enumerate(roster)}
        self._sizes, self._bound = dict(roster), dict(bound)
        before, self._hellos = self._hellos, {}
        for node, hello in before.items():
            self._welcome(node, hello, is_known=True)

    def roster(self) -> list[dict[str, str | int]]:
        """Return connected clients in the order of names: how many records each has, and its node."""
        known = sorted(self._hellos.items(), key=lambda item: item[1].name)
        return [{"name": hello.name, "num_samples": hello.num_samples, "node": node} for node, hello in known]

    def refresh(self) -> Mapping[int, messages.Hello]:
        """Look who is connected; ask those that are new for their names."""
        ids = set(self._grid.get_node_ids())
        for gone in set(self._hellos) - ids:
            self._say(f"{self._hellos.pop(gone).name} has gone")
        self._refused = {node: hello for node, hello in self._refused.items() if node in ids}
        now = time.monotonic()
        silent = {node for node, until in self._silent_until.items() if until > now}
        for node, hello in self._asked(sorted(ids - set(self._hellos) - set(self._refused) - silent)):
            self._welcome(node, hello)
        for node, hello in list(self._refused.items()):  # whoever had its name may have gone
            self._welcome(node, hello)
        return self._hellos

    def nodes(self) -> dict[int, int]:
        """Return the node of each enrolled client that is connected, by the client's number."""
        return {self._numbers[hello.name]: node for node, hello in self._hellos.items() if hello.name in self._numbers}

    def is_connected(self) -> NDArray[np.bool_]:
        """Return (clients,) who is connected."""
        self.refresh()
        found = np.zeros(len(self._numbers), dtype=np.bool_)
        found[list(self.nodes())] = True
        return found

    def _welcome(self, node: int, hello: messages.Hello, *, is_known: bool = False) -> None:
        problem = None
        if any(other.name == hello.name for other in self._hellos.values()):
            problem = "another node has this name"
        elif self._bound.get(hello.name, node) != node:
            problem = "the name belongs to the node that had it when the run began"
        elif self._numbers and hello.name not in self._numbers:
            problem = "it was not there when the run began"
        elif self._sizes and hello.num_samples != self._sizes[hello.name]:
            problem = f"it had {self._sizes[hello.name]} records when the run began, and says {hello.num_samples} now"
        if problem is None:
            self._refused.pop(node, None)
            self._hellos[node] = hello
            if not is_known:
                self._say(f"{hello.name} is connected")
        elif node not in self._refused:
            self._refused[node] = hello
            self._say(f"a node that calls itself {hello.name} is not heard: {problem}")

    def ask_terms(self, announcement: Announcement, clients: IntArray, seconds: float) -> dict[int, IntArray]:
        """Announce terms to clients; return the budgets of those that answer, in billionths, by client.

        Args:
            announcement: What to tell them.
            clients: Their numbers.
            seconds: How long to wait for the next answer.
        """
        nodes, content = self.nodes(), messages.announcement_content(announcement)
        sent = {
            int(client): Message(content, nodes[int(client)], messages.TERMS, ttl=seconds)
            for client in clients
            if int(client) in nodes
        }
        found = {}
        for client, reply in exchange(self._grid, sent, seconds, self._poll_seconds):
            try:
                found[client] = messages.read_budgets(content_of(reply), len(announcement.reward))
            except (ConnectionError, InvalidInput) as error:
                self._say(f"client {client} does not answer what was announced: {str(error)[-_LONGEST_WORDS:]}")
        return found

    def _asked(self, nodes: Sequence[int]) -> Iterator[tuple[int, messages.Hello]]:
        seconds = _HELLO_SECONDS_LATER if self._numbers else _HELLO_SECONDS
        sent = {node: Message(RecordDict(), node, messages.HELLO, ttl=seconds) for node in nodes}
        for node, reply in exchange(self._grid, sent, seconds, self._poll_seconds):
            try:
                yield node, messages.read_hello(content_of(reply))
            except (ConnectionError, InvalidInput) as error:
                if self._numbers:
                    self._silent_until[node] = time.monotonic() + _ASK_AGAIN_SECONDS
                self._say(f"a node does not say who it is: {str(error)[-_LONGEST_WORDS:]}")
