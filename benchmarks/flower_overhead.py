"""What our strategy adds to a round of Flower's: `SampledStrategy` against stock `FedAvg`, turn about.

The work is that of `round_time.py`: 100 clients with 600 images of 28×28 each, the two-convolution CNN of 1,663,370
parameters, batches of 32, one local epoch, 20 clients a round. One Ray simulation with two actors serves both. They
take turns in it, now one first, now the other, so that both meet the same machine; a ratio is formed within each pair
of rounds. A round is `configure_train`, the messages, Ray, and `aggregate_train`, as in Flower's own `Strategy.start`.
Nodes are woken and a first pair is run off the clock. Clients are the same for both: Flower's quickstart with one more
metric, a budget. Idle ones return the model as it came, which leaves the fixed cost of a round.

What the server does itself is shown apart: only that differs between the two, and it is steadier than a whole round.

    python benchmarks/flower_overhead.py [--idle] [--rounds N] [--sampler NAME] [--rule RULE]
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from dataclasses import dataclass

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own choice is 15
os.environ.setdefault("FLWR_HOME", os.path.join(tempfile.gettempdir(), "flwr-overhead"))

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from peer_tuned_loop import NUM_PROCESSES, client_tensors, train_module, warm_up
from round_time import COHORT_SIZE, IMAGES_PER_CLIENT, NUM_CLASSES, NUM_CLIENTS, SEED, load, peer_parser
from timing import table

from fedpcs.engines.flower.strategy import SampledStrategy
from fedpcs.learning.models import make_model


@dataclass(frozen=True)
class Timed:
    """One round: how long it took, and how long of that the strategy itself."""

    seconds: float
    server_seconds: float


def client_app(source: str, *, is_idle: bool) -> ClientApp:
    """Return the client: a stock one, that also tells a budget."""
    app = ClientApp()

    @app.query()
    def wake(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        if not is_idle:
            warm_up(source)
        return Message(RecordDict(), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        arrays = message.content.array_records["arrays"]
        client = int(context.node_config["partition-id"])
        if not is_idle:
            torch.set_num_threads(1)
            server_round = message.content.config_records["config"]["server-round"]
            module = make_model("cnn-fashion", (1, 28, 28), NUM_CLASSES, seed=SEED)
            module.load_state_dict(arrays.to_torch_state_dict())
            train_module(module, *client_tensors(load(source), client, int(str(server_round))))
            arrays = ArrayRecord(module.state_dict())
        metrics = MetricRecord({"num-examples": IMAGES_PER_CLIENT, "train_loss": 1.0, "budget": 1.0 + client % 5})
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app


def timed_round(strategy: FedAvg, server_round: int, arrays: ArrayRecord, grid: Grid) -> tuple[Timed, ArrayRecord]:
    """Run one round as Flower's loop does; return its times and the new model."""
    began = time.perf_counter()
    orders = list(strategy.configure_train(server_round, arrays, ConfigRecord(), grid))
    sent = time.perf_counter()
    replies = list(grid.send_and_receive(orders))
    back = time.perf_counter()
    moved, _ = strategy.aggregate_train(server_round, replies)
    done = time.perf_counter()
    if moved is None or len(orders) != COHORT_SIZE or sum(reply.has_content() for reply in replies) != COHORT_SIZE:
        raise RuntimeError(f"round {server_round} lost clients; its time would mean nothing")
    return Timed(done - began, sent - began + done - back), moved


def server_app(options: argparse.Namespace, stock: list[Timed], ours: list[Timed]) -> ServerApp:
    """Return the server: it runs the pairs and writes their times down."""
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        while len(nodes := list(grid.get_node_ids())) < NUM_CLIENTS:
            time.sleep(0.1)
        grid.send_and_receive([Message(RecordDict(), node, "query") for node in nodes])
        sampled = SampledStrategy(options.sampler, rule=options.rule, cohort_size=COHORT_SIZE, fraction_evaluate=0.0)
        fedavg = FedAvg(fraction_train=COHORT_SIZE / NUM_CLIENTS, fraction_evaluate=0.0)
        model = ArrayRecord(make_model("cnn-fashion", (1, 28, 28), NUM_CLASSES, seed=SEED).state_dict())
        sides: list[tuple[FedAvg, list[Timed]]] = [(fedavg, stock), (sampled, ours)]
        models = {id(fedavg): model, id(sampled): model}
        for server_round in range(1, options.rounds + 2):
            for strategy, times in sides:
                timed, models[id(strategy)] = timed_round(strategy, server_round, models[id(strategy)], grid)
                if server_round > 1:
                    times.append(timed)
            sides.reverse()
        if sampled.refused:
            raise RuntimeError(f"{len(sampled.refused)} replies were left out, the first: {sampled.refused[0]}")

    return app


def row(name: str, times: list[Timed], ratios: list[float]) -> list[str]:
    seconds = [one.seconds for one in times]
    return [
        name,
        f"{statistics.median(seconds):.3f}",
        f"{min(seconds):.3f}–{max(seconds):.3f}",
        f"{statistics.median(ratios):.3f}",
        f"{min(ratios):.3f}–{max(ratios):.3f}",
        f"{statistics.median(one.server_seconds for one in times):.3f}",
    ]


def main() -> None:
    parser = peer_parser(__doc__)
    parser.add_argument("--sampler", default="fedpcs", help="one that a stock app can serve in its default settings")
    parser.add_argument("--rule", default="default")
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    stock: list[Timed] = []
    ours: list[Timed] = []
    run_simulation(
        server_app(options, stock, ours),
        client_app(options.data, is_idle=options.idle),
        num_supernodes=NUM_CLIENTS,
        backend_config={
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
            "init_args": {"num_cpus": NUM_PROCESSES, "log_to_driver": False, "logging_level": "ERROR"},
        },
    )
    ratios = [one.seconds / other.seconds for one, other in zip(ours, stock, strict=True)]
    more = statistics.median(one.server_seconds - other.server_seconds for one, other in zip(ours, stock, strict=True))
    share = more / statistics.median(one.seconds for one in stock)
    kind = "idle clients" if options.idle else "clients that train"
    header = ["strategy", "s per round", "min–max", "÷ FedAvg", "min–max", "of it the server's"]
    rows = [
        row("FedAvg", stock, [1.0] * len(stock)),
        row(f"SampledStrategy, {options.sampler}, {options.rule}", ours, ratios),
    ]
    print(table(f"Flower's round with {kind}, pairs: {options.rounds}", header, rows))
    print(f"\nThe strategy itself takes {1e3 * more:+.0f} ms more than FedAvg: {share:+.1%} of a round (goal: 5 %).")


if __name__ == "__main__":
    main()
