"""A reply fetched from the SuperLink part by part, none of them larger than a reply to its message can be.

On Flower's wire a message is a tree of parts: message, records, arrays, and chunks of arrays of 5 MB. Flower's own
`pull_messages` reads all parts of all replies before it looks at any, whatever their size, and ends with the first that
cannot be read. Here the SuperLink's word on the length of a part is looked at before the part is read, and the lists
that say which chunks make an array before the array is put together.

All of Flower that is not public, and may move with a release, is used in this file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx
from flwr.app import Message, RecordDict
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.supercore.inflatable.inflatable_object import get_object_head_values_from_object_content, iterate_object_tree
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.supercore.run import RunNotRunningException
from flwr.superlink.grid import HttpGrid

from fedpcs.learning.wire import MessageRefused

_CHUNK_BYTES = 5 * 2**20  # Flower's
_MOST_TEXT_BYTES = 2 * 2**20  # of everything that is no chunk: names, shapes, JSON, and what Flower says of a message
_ARRAY_SLACK_BYTES = 2**16  # headers of arrays
_FEW_PARTS = 32
_ENVELOPE_BYTES = 4096  # of an HTTP response around a part
# What a call to the SuperLink raises when it has failed at this one, and when there is no use in another.
FAILED = httpx.HTTPStatusError
ENDED = (RunNotRunningException, httpx.TransportError)


@dataclass(frozen=True)
class Limits:
    """Most that a reply may hold.

    Attributes:
        array_bytes: Of its arrays.
        parts: Of what Flower takes it apart into.
    """

    array_bytes: int
    parts: int


def limits_for(content: RecordDict) -> Limits:
    """Return what a reply to a message may hold: twice the arrays of the message, and two megabytes of text.

    A model of 32-bit numbers may so be answered by an update of 64-bit numbers, and a question without arrays by none.
    """
    arrays = [array for record in content.array_records.values() for array in record.values()]
    size = sum(len(array.data) for array in arrays)
    return Limits(2 * size + _ARRAY_SLACK_BYTES, _FEW_PARTS + 2 * (len(arrays) + size // _CHUNK_BYTES))


class Meter:
    """Refuses a response of the SuperLink that is longer than allowed, before its body is read.

    Args:
        grid: Whose connection it watches; the connection's other user, the heartbeat, gets a few bytes at a time.
    """

    def __init__(self, grid: HttpGrid) -> None:
        self.most_bytes: float = float("inf")
        grid._runtime_client._client.event_hooks["response"].append(self._check)

    def _check(self, response: Any) -> None:
        length = int(response.headers.get("content-length", 0))
        if length > self.most_bytes + _ENVELOPE_BYTES:
            raise MessageRefused(f"reply holds {length:,} bytes in one part, more than a reply to its message can.")


@dataclass
class Arriving:
    """A reply of which parts are still missing.

    Attributes:
        reply_id: Flower's id of it.
        limits: What it may hold.
        missing: Ids of the parts that were not fetched yet.
        array_room: How many bytes of arrays it may still hold.
        text_room: How many of all else.
        contents: The parts that were fetched, by id.
    """

    reply_id: str
    limits: Limits
    missing: list[str]
    array_room: int
    text_room: int = _MOST_TEXT_BYTES
    contents: dict[str, bytes] = field(default_factory=dict)


def announced(grid: HttpGrid, meter: Meter, message_id: str, limits: Limits) -> Arriving | None:
    """Return the reply to a message if a node has announced one, none of its parts fetched.

    Raises:
        MessageRefused: Its list of parts is longer than that of a reply to its message can be.
    """
    meter.most_bytes = _MOST_TEXT_BYTES
    response = grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=[message_id]))
    for message, tree in zip(response.messages_list, response.message_object_trees, strict=True):
        if message.metadata.reply_to_message_id == message_id:
            parts = list(dict.fromkeys(part.object_id for part in iterate_object_tree(tree)))
            return Arriving(message.metadata.message_id, limits, parts, limits.array_bytes)
    return None


def fetched(grid: HttpGrid, meter: Meter, reply: Arriving) -> Message | None:
    """Fetch the parts that are there; return the whole reply, or None if some have yet to arrive.

    Raises:
        MessageRefused: It is too large, or no message.
    """
    if len(reply.missing) + len(reply.contents) > reply.limits.parts:
        raise MessageRefused(f"reply has {len(reply.missing):,} parts, at most {reply.limits.parts} are allowed.")
    while reply.missing:
        meter.most_bytes = max(reply.array_room, reply.text_room)
        asked = PullObjectRequest(node=grid.node, run_id=grid.run.run_id, object_id=reply.missing[-1])
        response = grid._runtime_client.PullObject(asked)
        if not response.object_found:
            raise MessageRefused("a part of the reply is missing.")
        if not response.object_available:
            return None
        _take(reply, response.object_content)
    _check_arrays(reply)
    found = inflate_object_from_contents(reply.reply_id, reply.contents)
    if not isinstance(found, Message):
        raise MessageRefused("reply is no message.")
    return found


def forget(grid: HttpGrid, reply: Arriving) -> None:
    """Tell the SuperLink that a reply was received: it lets go of the parts."""
    request = ConfirmMessageReceivedRequest(node=grid.node, run_id=grid.run.run_id, message_object_id=reply.reply_id)
    grid._runtime_client.ConfirmMessageReceived(request)


def _take(reply: Arriving, content: bytes) -> None:
    """Keep a part, and count its bytes."""
    if get_object_head_values_from_object_content(content)[0] == "ArrayChunk":
        reply.array_room -= len(content)
    else:
        reply.text_room -= len(content)
    if min(reply.array_room, reply.text_room) < 0:
        raise MessageRefused("reply holds more bytes than a reply to its message can.")
    reply.contents[reply.missing.pop()] = content


def _check_arrays(reply: Arriving) -> None:
    """Refuse arrays that would be larger than they may: one can list the same chunk of 5 MB again and again."""
    room = reply.limits.array_bytes
    for content in reply.contents.values():
        kind, children, length = get_object_head_values_from_object_content(content)
        if kind == "Array":
            listed = json.loads(content[len(content) - length :])["arraychunk_ids"]
            room -= sum(len(reply.contents[children[index]]) for index in listed)
    if room < 0:
        raise MessageRefused("reply has arrays that list chunks again and again.")
