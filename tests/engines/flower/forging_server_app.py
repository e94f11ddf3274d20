"""A server app that lies to honest clients; test_deployment.py puts it in the real one's place.

It writes what comes back to replies.json in its run-dir: for each lie what was wanted, and what the client answered.
"""

import json
from pathlib import Path

from flwr.app import Message, RecordDict
from flwr.serverapp import ServerApp

from fedpcs.engines.flower import messages

app = ServerApp()
SECONDS = 900.0


@app.main()
def main(grid, context):
    from fedpcs_app import forgeries  # test_deployment.py puts it beside this file

    nodes = sorted(grid.get_node_ids())
    kind, content = forgeries.agreement()
    agreed = grid.send_and_receive([forgeries.sent(node, kind, content) for node in nodes], timeout=SECONDS)
    budget = {
        reply.metadata.src_node_id: int(
            messages.read_budgets(reply.content, forgeries.ROUNDS)[forgeries.TASK["round_index"]]
        )
        for reply in agreed
    }
    lies = []
    for number, node in enumerate(nodes):  # each client hears a part of them
        lies += [(node, *lie) for lie in list(forgeries.forged(budget[node]))[number :: len(nodes)]]
    pushed = [
        Message(told, node, kind, ttl=SECONDS, group_id=str(number))
        for number, (node, _, kind, told, _) in enumerate(lies)
    ]
    found = {}
    for reply in grid.send_and_receive(pushed, timeout=SECONDS):
        _, name, _, _, words = lies[int(reply.metadata.group_id)]
        found[name] = (words, reply.error.reason if reply.has_error() else "released")
    names = grid.send_and_receive([Message(RecordDict(), node, messages.HELLO) for node in nodes], timeout=SECONDS)
    folder = Path(str(context.run_config["run-dir"]))
    folder.mkdir(parents=True)
    told = [messages.read_hello(reply.content).name for reply in names]
    (folder / "replies.json").write_text(json.dumps({"names": sorted(told), "lies": found}))
