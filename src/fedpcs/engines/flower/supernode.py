"""Flower's SuperNode, with a watch on whether it still hears its SuperLink.

Where the SuperLink answers with an error, as one does whose database is locked, Flower's SuperNode leaves its loop and
goes on to exist: its process lives, asks for no messages and says nothing. Here it ends, with an exit code that a
service manager can go by, and is started again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence

from flwr.common.constant import SubStatus
from flwr.proto.fleet_pb2 import PullMessagesRequest, PullMessagesResponse
from flwr.proto.heartbeat_pb2 import SendNodeHeartbeatRequest, SendNodeHeartbeatResponse
from flwr.supercore.constant import TaskType
from flwr.supernode import fleet_http_connection
from flwr.supernode.cli.flower_supernode import flower_supernode
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.nodestate import nodestate_factory
from flwr.supernode.nodestate.in_memory_nodestate import CLIENT_APP_CRASHED_ERROR, InMemoryNodeState

from fedpcs.errors import SuperLinkLost

_LOOK_SECONDS = 1.0


class Watch:
    """Knows when the SuperLink was last heard.

    A node that works at a task asks for no other: then its heartbeat alone counts.
    """

    def __init__(self) -> None:
        self._beat = self._asked = time.monotonic()
        self._is_working = False

    def beat(self) -> None:
        """Take note of a heartbeat that was answered."""
        self._beat = time.monotonic()

    def asked(self, has_task: bool) -> None:
        """Take note of an answer to the question for messages."""
        self._asked, self._is_working = time.monotonic(), has_task

    def silent_seconds(self) -> float:
        """Return how long nothing was heard."""
        return time.monotonic() - (self._beat if self._is_working else min(self._beat, self._asked))


class AnsweringState(InMemoryNodeState):
    """Answers for a client app that ended without an answer, as one does whose message cannot be read.

    Flower's node waits for that answer for ever, and takes no other message.
    """

    def finish_task(self, task_id: int, sub_status: str, details: str) -> bool:
        """Finish a task; what it was to answer is answered by an error if it failed."""
        is_finished: bool = super().finish_task(task_id, sub_status, details)
        failed = self.get_tasks(task_ids=[task_id]) if is_finished and sub_status == SubStatus.FAILED else []
        if failed and failed[0].type == TaskType.CLIENT_APP:
            self._store_error_replies({failed[0].run_id}, CLIENT_APP_CRASHED_ERROR)
        return is_finished


def run_supernode(arguments: Sequence[str], patience_seconds: float) -> None:
    """Run `flower-supernode` with these arguments until it ends, or has not heard its SuperLink for so long.

    Raises:
        SuperLinkLost: Flower's loop has ended. The process ends with the same exit code, without more ado, where that
            loop hangs.
    """
    watch = Watch()

    class Watched(FleetHttpClient):
        def PullMessages(self, request: PullMessagesRequest) -> PullMessagesResponse:
            found = super().PullMessages(request)
            watch.asked(bool(found.messages_list))
            return found

        def SendNodeHeartbeat(self, request: SendNodeHeartbeatRequest) -> SendNodeHeartbeatResponse:
            found = super().SendNodeHeartbeat(request)
            watch.beat()
            return found

    # Flower has no hook for a client of one's own: its connection takes the class by this name, and exports it nowhere.
    fleet_http_connection.FleetHttpClient = Watched  # type: ignore[attr-defined]
    nodestate_factory.InMemoryNodeState = AnsweringState  # type: ignore[attr-defined]
    threading.Thread(target=_end_when_silent, args=(watch, patience_seconds), daemon=True).start()
    sys.argv = ["flower-supernode", *arguments]
    flower_supernode()
    _leave("its loop has ended")


def _end_when_silent(watch: Watch, patience_seconds: float) -> None:
    while watch.silent_seconds() < patience_seconds:
        time.sleep(_LOOK_SECONDS)
    _leave(f"the SuperLink was not heard for {patience_seconds:g} s")


def _leave(why: str) -> None:
    """End the process at once: a thread of Flower's would keep it, or a call that never returns."""
    print(f"fedpcs: this node is of no use any more: {why}. Start it again.", file=sys.stderr, flush=True)
    os._exit(SuperLinkLost.exit_code)
