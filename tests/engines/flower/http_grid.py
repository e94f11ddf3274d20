"""Flower's own HttpGrid and HTTP client over a SuperLink that is a dictionary: the wire's bytes, without the wire."""

import httpx
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto import runtime_pb2
from flwr.proto.message_pb2 import ConfirmMessageReceivedResponse, PullObjectRequest, PullObjectResponse
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree
from flwr.supercore.run import Run
from flwr.superlink.grid import HttpGrid


class SuperLink:
    """Keeps replies by the message they answer, and their parts; counts the bytes that are really read from it."""

    def __init__(self):
        self.replies, self.parts, self.missing, self.confirmed = {}, {}, set(), []
        self.bytes_read, self.failing, self.pulled = 0, 0, []

    def put(self, reply, answers=None):
        """Take a reply as a SuperNode would push it; what it answers is told beside it, and once more in its body."""
        reply.metadata.__dict__["_message_id"] = reply.object_id
        self.replies[answers or reply.metadata.reply_to_message_id] = reply
        self.parts |= {part: it.deflate() for part, it in get_all_nested_objects(reply).items()}

    def answer(self, request):
        if self.failing:
            self.failing -= 1
            return httpx.Response(500, text="database is locked", request=request)
        name = request.url.path.rsplit("/", 1)[1].replace("-", "_")
        content = getattr(self, name)(request.content).SerializeToString()
        return httpx.Response(200, headers={"content-length": str(len(content))}, stream=Counted(self, content))

    def get_nodes(self, _):
        return runtime_pb2.GetNodesResponse()

    def push_messages(self, body):
        asked = runtime_pb2.PushAppMessagesRequest.FromString(body)
        ids = [message.metadata.message_id for message in asked.messages_list]
        return runtime_pb2.PushAppMessagesResponse(message_ids=ids)

    def pull_messages(self, body):
        found = runtime_pb2.PullAppMessagesResponse()
        for message_id in runtime_pb2.PullAppMessagesRequest.FromString(body).message_ids:
            if (reply := self.replies.pop(message_id, None)) is not None:  # each is given out once
                told = message_to_proto(remove_content_from_message(reply))
                told.metadata.reply_to_message_id = message_id
                found.messages_list.append(told)
                found.message_object_trees.append(get_object_tree(reply))
        return found

    def pull_object(self, body):
        part = PullObjectRequest.FromString(body).object_id
        self.pulled.append(part)
        is_there = part not in self.missing
        content = self.parts[part] if is_there else b""
        return PullObjectResponse(object_found=True, object_available=is_there, object_content=content)

    def confirm_message_received(self, body):
        self.confirmed.append(body)
        return ConfirmMessageReceivedResponse()


class Counted(httpx.SyncByteStream):
    """A body that counts how much of it is read."""

    def __init__(self, superlink, content):
        self.superlink, self.content = superlink, content

    def __iter__(self):
        for start in range(0, len(self.content), 2**16):
            self.superlink.bytes_read += len(self.content[start : start + 2**16])
            yield self.content[start : start + 2**16]


def http_grid(superlink):
    """Return Flower's grid, connected to this SuperLink."""
    grid = HttpGrid("127.0.0.1:1", insecure=True, token="token")
    grid.set_run(Run.create_empty(run_id=1))
    client = grid._runtime_client
    client._client = httpx.Client(transport=httpx.MockTransport(superlink.answer))
    return grid
