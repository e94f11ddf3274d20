"""A grid on which no reply can end a run: what cannot be read, or is too large, is that one client's failure.

Flower's grid raises whatever reading a reply raises, and the replies that came with it are lost; it waits for parts
that are never sent; and it knows no limit on size. `GuardedGrid` goes around any grid, message by message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from flwr.app import Error, Message
from flwr.serverapp import Grid
from flwr.superlink.grid import HttpGrid

from fedpcs._outside import printable
from fedpcs.engines.flower import reply_parts
from fedpcs.engines.flower.reply_parts import Arriving, Limits, Meter
from fedpcs.learning.wire import MessageRefused

REFUSED_CODE = 90  # none of Flower's
_PATIENCE_SECONDS = 120.0
_LOOK_AGAIN_SECONDS = 0.2
Found = TypeVar("Found")


class GuardedGrid(Grid):
    """Any grid, read reply by reply.

    A reply may hold twice the arrays of the message it answers, and two megabytes of all else; one that holds more is
    refused before it is read. A SuperLink that fails at a call, as one does whose database is locked, is asked again.

    Args:
        grid: Flower's.
        say: Told of a SuperLink that fails.
    """

    def __init__(self, grid: Grid, say: Callable[[str], None] = lambda words: None) -> None:
        self._grid, self._say = grid, say
        self._sent: dict[str, tuple[Message, Limits]] = {}
        self._arriving: dict[str, Arriving] = {}
        self._meter = Meter(grid) if isinstance(grid, HttpGrid) else None

    def set_run(self, run: Any) -> None:
        """Set the run, as any grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """The run, as of any grid."""
        return self._grid.run

    def create_message(self, *arguments: Any, **named: Any) -> Message:
        """Make a message, as any grid."""
        return self._grid.create_message(*arguments, **named)

    def get_node_ids(self) -> Iterable[int]:
        """Return who is connected."""
        return self._patiently(lambda: list(self._grid.get_node_ids()))

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Send messages; return their ids."""
        outgoing = list(messages)
        self._let_go_of_expired()
        ids = self._patiently(lambda: list(self._grid.push_messages(outgoing)))
        for message_id, message in zip(ids, outgoing, strict=False):
            if message_id:
                self._sent[message_id] = (message, reply_parts.limits_for(message.content))
        return ids

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """Return the replies that are there; for one that cannot be read, an error in its place."""
        return [reply for one in message_ids if (reply := self._pulled(one)) is not None]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:
        """Send messages and wait for their replies, at most so many seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        waiting = {one for one in self.push_messages(messages) if one}
        replies: list[Message] = []
        while waiting and (until is None or time.monotonic() < until):
            came = self.pull_messages(sorted(waiting))
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            replies += came
            time.sleep(0.0 if came else _LOOK_AGAIN_SECONDS)
        return replies

    def _pulled(self, message_id: str) -> Message | None:
        try:
            reply = self._looked_for(message_id)
        except reply_parts.ENDED:
            raise
        except reply_parts.FAILED as error:
            self._say(f"the SuperLink fails: {printable(error)}. It is asked again.")
            return None
        except Exception as error:  # whatever reading it raises, it is no reply
            reply = self._refused(message_id, error)
        if reply is not None:
            self._sent.pop(message_id, None)
            if (arrived := self._arriving.pop(message_id, None)) is not None:
                self._forget(arrived)
        return reply

    def _looked_for(self, message_id: str) -> Message | None:
        grid, meter = self._grid, self._meter
        if not isinstance(grid, HttpGrid) or meter is None:
            return next(iter(grid.pull_messages([message_id])), None)
        try:
            if message_id not in self._arriving:
                found = reply_parts.announced(grid, meter, message_id, self._sent[message_id][1])
                if found is None:
                    return None
                self._arriving[message_id] = found
            reply = reply_parts.fetched(grid, meter, self._arriving[message_id])
        finally:
            meter.most_bytes = float("inf")
        if reply is not None and reply.metadata.reply_to_message_id != message_id:
            raise MessageRefused("reply says that it answers another message.")
        return reply

    def _refused(self, message_id: str, error: Exception) -> Message:
        if message_id not in self._sent:
            raise error
        words = f"{type(error).__name__}: {printable(error)}"
        return Message(Error(code=REFUSED_CODE, reason=words), reply_to=self._sent[message_id][0])

    def _let_go_of_expired(self) -> None:
        now = time.time()
        for message_id, (message, _) in list(self._sent.items()):
            if message.metadata.created_at + message.metadata.ttl < now:
                del self._sent[message_id]
                if (arrived := self._arriving.pop(message_id, None)) is not None:
                    self._forget(arrived)

    def _forget(self, arrived: Arriving) -> None:
        """Let the SuperLink forget a reply; one it does not forget now, it forgets when the run ends."""
        if isinstance(self._grid, HttpGrid):
            try:
                reply_parts.forget(self._grid, arrived)
            except reply_parts.FAILED as error:
                self._say(f"the SuperLink fails: {printable(error)}. It keeps a reply until the run ends.")

    def _patiently(self, call: Callable[[], Found]) -> Found:
        """Call; where the SuperLink fails, again after a while, for two minutes at most."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                return call()
            except reply_parts.FAILED as error:
                if time.monotonic() > until:
                    raise
                self._say(f"the SuperLink fails: {printable(error)}. It is asked again.")
                time.sleep(5.0)
