"""Flower's SuperLink with a limit on what nodes may send it.

Flower's own takes whatever a node sends: a reply of 20,000 records locks its database for 45 s, which ends the run
and leaves every node offline, and a reply of 500 MB is kept whole. Here a node's request is refused before it gets so
far. No option is needed: a reply may be twice as large as the largest message of its run, and two megabytes more.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from flwr.supercore import sql_mixin
from flwr.supercore.object_store import object_store_factory
from flwr.superlink import extensions
from flwr.superlink.cli.flower_superlink import flower_superlink
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware

from fedpcs.engines.flower.object_parts import MemoryParts, SqlParts

_FLEET, _RUNTIME = "/v1/fleet/", "/v1/runtime/"  # what nodes call, and what the server app calls
_MOST_BODY_BYTES = 8 * 2**20  # a part has 5 MB at most, and little around it
_MOST_OTHER_BYTES = 64 * 2**20  # of what operators and server apps send: an app has 10 MB at most
_MOST_TEXT_BYTES = 2 * 2**20
_FEW_PARTS = 32
_TOO_LARGE, _FORBIDDEN = 413, 403
# Flower waits 5 s for a database that is locked, then answers with an error that ends whoever asked: nodes, and the
# process that starts runs. After a minute they have asked again by themselves.
_LOCKED_MILLISECONDS = "60000"


def run_superlink(arguments: Sequence[str]) -> None:
    """Run `flower-superlink` with these arguments and with the limits, until it ends."""
    pragmas: Any = sql_mixin  # its name is not exported
    pragmas.SQLITE_PRAGMAS = (*pragmas.SQLITE_PRAGMAS, ("busy_timeout", _LOCKED_MILLISECONDS))
    extensions.get_middleware = lambda: (Middleware(BodyLimit),)

    def innermost(app: FastAPI) -> None:  # behind Flower's check of who a node is
        app.user_middleware.append(Middleware(ReplyLimit))

    extensions.configure_app = innermost
    stores: Any = object_store_factory  # it takes its stores by these names
    stores.SqlObjectStore, stores.InMemoryObjectStore = SqlParts, MemoryParts
    sys.argv = ["flower-superlink", *arguments]
    flower_superlink()


class BodyLimit:
    """Reads what is sent, and refuses it once it is larger than any part of a message, or of what is no node's.

    Args:
        app: What to go around.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one connection, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = await _body(scope, receive, _MOST_BODY_BYTES if scope["path"].startswith(_FLEET) else _MOST_OTHER_BYTES)
        if body is None:
            await Response("larger than any part of a message", _TOO_LARGE)(scope, receive, send)
            return
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def once() -> Any:
            return next(given, None) or await receive()

        await self._app(scope, once, send)


async def _body(scope: Any, receive: Any, most_bytes: int) -> bytes | None:
    """Return a request's body, or None if it is too large."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not (length.isdigit() and len(length) < 20 and int(length) <= most_bytes):
        return None
    body = bytearray()  # it may come byte by byte
    while len(body) <= most_bytes:
        event: dict[str, Any] = await receive()
        body += event.get("body", b"")
        if event["type"] != "http.request" or not event.get("more_body", False):
            return bytes(body)
    return None


@dataclass(frozen=True)
class Sent:
    """What a server app has sent in a run.

    Attributes:
        session: Flower's id of the message it sent last, or of several sent at once.
        num_bytes: Of that message's parts.
        num_parts: How many.
        most_bytes: Of the largest message.
        most_parts: Of the one with most.
    """

    session: str = ""
    num_bytes: int = 0
    num_parts: int = 0
    most_bytes: int = 0
    most_parts: int = 0

    def and_part(self, session: str, num_bytes: int) -> Sent:
        """Return it with one part more."""
        is_same = session == self.session
        size, count = (self.num_bytes, self.num_parts) if is_same else (0, 0)
        size, count = size + num_bytes, count + 1
        return replace(
            self,
            session=session,
            num_bytes=size,
            num_parts=count,
            most_bytes=max(size, self.most_bytes),
            most_parts=max(count, self.most_parts),
        )


class ReplyLimit(BaseHTTPMiddleware):
    """Refuses replies that have more parts, or more bytes, than a reply in their run can have.

    Args:
        app: What to go around.
    """

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._sent: dict[int, Sent] = {}  # by run
        self._room: dict[int, int] = {}  # by node: bytes it may still send of the reply it has announced

    async def dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        """Handle one request that Flower has taken apart, of a node it knows."""
        asked: Any = getattr(request.state, "protobuf_request", None)
        path = request.url.path
        if path == f"{_RUNTIME}push-object":
            before = self._sent.get(asked.run_id, Sent())
            self._sent[asked.run_id] = before.and_part(asked.session_id, len(asked.object_content))
        elif path == f"{_FLEET}push-messages":
            self._announced(asked)
        elif path == f"{_FLEET}push-object":
            self._pushed(asked)
        return await call_next(request)

    def _announced(self, asked: Any) -> None:
        for one in asked.messages_list:  # Flower lets a node send orders to others in the server app's name
            if one.metadata.src_node_id != asked.node.node_id or not one.metadata.reply_to_message_id:
                _refuse(asked.node.node_id, "is no reply of its own", _FORBIDDEN)
        sent = max(
            (self._sent.get(one.metadata.run_id, Sent()) for one in asked.messages_list), key=_size, default=Sent()
        )
        most = _FEW_PARTS + 2 * sent.most_parts
        if not all(_has_at_most(tree, most) for tree in asked.message_object_trees):
            _refuse(asked.node.node_id, f"has more than {most} parts")
        self._room[asked.node.node_id] = _MOST_TEXT_BYTES + 2 * sent.most_bytes

    def _pushed(self, asked: Any) -> None:
        node = asked.node.node_id
        self._room[node] = self._room.get(node, 0) - len(asked.object_content)
        if self._room[node] < 0:
            _refuse(node, "has more bytes than a reply in its run can have")


def _size(sent: Sent) -> int:
    return sent.most_bytes


def _has_at_most(tree: Any, most: int) -> bool:
    """Say whether a tree of parts has at most so many."""
    waiting, count = [tree], 0
    while waiting and count <= most:
        waiting += waiting.pop().children
        count += 1
    return count <= most


def _refuse(node: int, why: str, code: int = _TOO_LARGE) -> None:
    print(f"fedpcs: a reply of node {node} is refused: it {why}", file=sys.stderr, flush=True)
    raise HTTPException(code, f"the reply {why}")
