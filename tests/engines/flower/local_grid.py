"""A Flower grid without Flower's machinery: messages go straight to a client app in this process."""

from flwr.app import Context, Error, Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity  # private, but without it no message can be made

TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1


class LocalGrid(Grid):
    """Nodes numbered as given; the i-th of them is partition i. Each keeps its context from message to message."""

    def __init__(self, app, node_ids, run_config=None):
        self.app, self.node_ids, self.replies = app, list(node_ids), {}
        self.contexts = {
            node: Context(1, node, {"partition-id": i, "num-partitions": len(self.node_ids)}, RecordDict(), run_config)
            for i, node in enumerate(self.node_ids)
        }

    def set_run(self, run):
        raise NotImplementedError("a grid must have it; no app asks for it")

    run = property(set_run)

    def create_message(self, *arguments):
        raise NotImplementedError("Flower has given this up; make a Message.")

    def get_node_ids(self):
        return list(self.node_ids)

    def push_messages(self, messages):
        pushed = []
        for number, message in enumerate(messages, start=len(self.replies)):
            message.metadata.__dict__["_message_id"] = str(number)
            try:
                reply = self.app(message, self.contexts[message.metadata.dst_node_id])
            except Exception as error:  # as Flower does it
                reply = Message(Error(code=2, reason=f"{type(error)}:<'{error}'>"), reply_to=message)
            self.replies[str(number)] = reply
            pushed.append(str(number))
        return pushed

    def pull_messages(self, message_ids):
        return [self.replies[number] for number in message_ids]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))
