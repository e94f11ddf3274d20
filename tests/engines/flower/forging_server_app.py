"""A server app that asks clients for more than they agreed to; test_deployment.py puts it in the real one's place.

It writes what comes back to replies.json in its run-dir: the words of an error, or "released".
"""

import json
from pathlib import Path

import numpy as np
from flwr.app import Message, RecordDict
from flwr.serverapp import ServerApp

from fedpcs.engines.flower import messages
from fedpcs.learning.protocol import Task
from fedpcs.privacy.budget import Rho

RUN = "deployment/fedpcs/0"
TASKS = {
    "another budget": Task(RUN, 2, 0, "nonce", Rho.of(1.0)),
    "no budget": Task(RUN, 2, 0, "nonce"),
    "a round that was not announced": Task(RUN, 99, 0, "nonce", Rho.of(0.01)),
    "a run that was not announced": Task("other", 0, 0, "nonce", Rho.of(0.01)),
    "measures of its records": Task(RUN, 2, 0, "nonce", Rho.of(0.01), ("loss",)),
}

app = ServerApp()


@app.main()
def main(grid, context):
    (node, *_) = sorted(grid.get_node_ids())
    model = messages.model_record(np.zeros(650, dtype=np.float32))
    found = {}
    for asked, task in TASKS.items():
        message = Message(messages.task_content(task, model), node, messages.TRAIN)
        found[asked] = told(grid.send_and_receive([message], timeout=90))
    task = TASKS["another budget"]
    question = Message(messages.question_content("loss", task, model), node, messages.QUESTION)
    found["a question"] = told(grid.send_and_receive([question], timeout=90))
    hello = Message(RecordDict(), node, messages.HELLO)
    found["its name"] = told(grid.send_and_receive([hello], timeout=90))
    folder = Path(str(context.run_config["run-dir"]))
    folder.mkdir(parents=True)
    (folder / "replies.json").write_text(json.dumps(found))


def told(replies):
    (reply,) = replies
    return reply.error.reason if reply.has_error() else "released"
