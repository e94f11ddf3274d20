"""Flower's Ray simulation with two actors on the work of `round_time.py`: message API, Flower's own FedAvg.

Install it apart from fedpcs: `pip install 'flwr[simulation]>=1.41,<1.43' 'torch>=2.6,<2.14' numpy`.

Clients train as in the plain loop of `peer_tuned_loop.py`, one thread each. A round is the messages to the cohort,
Ray, the replies and `FedAvg.aggregate_train`, arrays to arrays, as in Flower's own `Strategy.start`. Before the first
round every node is asked which client it is: this starts the actors, loads the data and warms up torch off the clock,
and lets the server draw the same cohorts as the other peers. Ray would run its actors at niceness 15; here they run at
0, or Flower would be the one to suffer from whatever else the machine does.
"""

# mypy: disable-error-code="import-not-found,untyped-decorator"

from __future__ import annotations

import argparse
import importlib.metadata
import os
import tempfile
import time
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "0")
os.environ.setdefault("FLWR_HOME", os.path.join(tempfile.gettempdir(), "flwr-round-time"))

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from peer_tuned_loop import NUM_PROCESSES, accuracy_of, client_tensors, network, train_module, warm_up
from round_time import IMAGES_PER_CLIENT, NUM_CLIENTS, SEED, Report, cohort, load, peer_parser

RESOURCES: dict[str, Any] = {
    "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    "init_args": {"num_cpus": NUM_PROCESSES},
}


def client_app(source: str, *, is_idle: bool) -> ClientApp:
    """Return the client: it says who it is, and trains the arrays it is sent."""
    app = ClientApp()

    @app.query()
    def introduce(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        warm_up(source)
        who = MetricRecord({"client": int(context.node_config["partition-id"])})
        return Message(RecordDict({"who": who}), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        arrays = message.content.array_records["arrays"]
        if not is_idle:
            torch.set_num_threads(1)
            client, round_index = (
                int(context.node_config["partition-id"]),
                int(str(message.content.config_records["config"]["round"])),
            )
            module = network()
            module.load_state_dict(arrays.to_torch_state_dict())
            train_module(module, *client_tensors(load(source), client, round_index))
            arrays = ArrayRecord(module.state_dict())
        size = MetricRecord({"num-examples": IMAGES_PER_CLIENT})
        return Message(RecordDict({"arrays": arrays, "metrics": size}), reply_to=message)

    return app


def nodes_of_clients(grid: Grid) -> dict[int, int]:
    """Return the node of every client, having woken them all."""
    while len(nodes := list(grid.get_node_ids())) < NUM_CLIENTS:
        time.sleep(0.1)
    questions = [Message(RecordDict(), dst_node_id=node, message_type="query") for node in nodes]
    replies = grid.send_and_receive(questions)
    return {int(str(reply.content.metric_records["who"]["client"])): reply.metadata.src_node_id for reply in replies}


def server_app(options: argparse.Namespace, began: float) -> ServerApp:
    """Return the server: it runs the rounds and prints the report."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        torch.manual_seed(SEED)
        module, strategy = network(), FedAvg(fraction_evaluate=0.0)
        arrays, nodes = ArrayRecord(module.state_dict()), nodes_of_clients(grid)
        startup, seconds = time.perf_counter() - began, []
        for round_index in range(options.rounds):
            round_began = time.perf_counter()
            content = RecordDict({"arrays": arrays, "config": ConfigRecord({"round": round_index})})
            chosen = [nodes[client] for client in cohort(round_index)]
            orders = [Message(content, dst_node_id=node, message_type="train") for node in chosen]
            replies = list(grid.send_and_receive(orders))
            averaged, _ = strategy.aggregate_train(round_index, replies)
            if averaged is None or any(reply.has_error() for reply in replies) or len(replies) < len(orders):
                raise RuntimeError(f"round {round_index} lost clients; its time would mean nothing")
            arrays = averaged
            seconds.append(time.perf_counter() - round_began)
        module.load_state_dict(arrays.to_torch_state_dict())
        accuracy = None if options.idle else accuracy_of(module, load(options.data))
        Report("Flower", importlib.metadata.version("flwr"), seconds, startup, accuracy).show()

    return app


def main() -> None:
    began = time.perf_counter()
    options = peer_parser(__doc__).parse_args()
    app = client_app(options.data, is_idle=options.idle)
    run_simulation(server_app(options, began), app, num_supernodes=NUM_CLIENTS, backend_config=RESOURCES)


if __name__ == "__main__":
    main()
