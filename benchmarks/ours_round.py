"""Our side of `round_time.py`: the same work through fedpcs's engines, the server's side of the round included.

A round here is drawn, trained, admitted, weighed and aggregated as in `fedpcs run`; only the store (log, ledger,
checkpoint) is left out, as the peers have none. `run_overhead.py` measures that.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from round_time import (
    BATCH_SIZE,
    COHORT_SIZE,
    IMAGES_PER_CLIENT,
    LEARNING_RATE,
    NUM_CLASSES,
    NUM_CLIENTS,
    SEED,
    Data,
    Report,
    cohort,
    load,
    peer_parser,
)
from torch import Tensor

from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.learning.admission import Admitted, Expected, admit
from fedpcs.learning.aggregate import step, weighted_sum
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import PartitionedData, deal_out
from fedpcs.learning.datasets import make_dataset
from fedpcs.learning.device import one_thread
from fedpcs.learning.layout import Layout, flat_parameters, layout_of
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import ClientReport, Task


class IdleClients(ClientSide):
    """Clients that return at once: what is left is the fixed cost of a round."""

    def answer(self, task: Task, parameters: Tensor, out: Tensor) -> ClientReport:
        """Report an update of zeros."""
        out.zero_()
        size = IMAGES_PER_CLIENT
        return ClientReport(task.run, task.round_index, task.client, task.nonce, None, size, self.layout, out.numpy())


def one_round(engine: Engine, parameters: Any, round_index: int, layout: Layout, plan: ClientPlan) -> Any:
    """Return the model after a round."""
    tasks = [Task("bench", round_index, client, str(client)) for client in sorted(cohort(round_index))]
    expected = {task.client: Expected(task, IMAGES_PER_CLIENT, layout, plan) for task in tasks}
    admitted: dict[int, Admitted] = {}
    for reply in engine.run(parameters, tasks):
        verdict = admit(reply, expected[reply.client]) if isinstance(reply, ClientReport) else reply
        if not isinstance(verdict, Admitted):
            raise SystemExit(f"a client failed: {verdict}")
        admitted[reply.client] = verdict
    updates = [admitted[client].report.values for client in sorted(admitted)]
    return step(parameters, weighted_sum(updates, np.full(COHORT_SIZE, 1.0 / COHORT_SIZE)))


def dealt_out(data: Data) -> PartitionedData:
    dataset = make_dataset(
        "bench",
        (torch.from_numpy(data.images), torch.from_numpy(data.labels)),
        (torch.from_numpy(data.test_images), torch.from_numpy(data.test_labels)),
        NUM_CLASSES,
    )
    return deal_out(dataset, np.split(np.arange(len(data.labels)), NUM_CLIENTS))


def main() -> None:
    parser = peer_parser(__doc__)
    parser.add_argument("--engine", choices=("workers", "in-process"), default="workers")
    options = parser.parse_args()
    began = time.perf_counter()
    data = dealt_out(load(options.data))
    plan = ClientPlan(SEED, "none", LEARNING_RATE, BATCH_SIZE)
    model = make_model("cnn-fashion", (1, 28, 28), NUM_CLASSES, seed=SEED)
    side = IdleClients if options.idle else ClientSide
    engine: Engine
    if options.engine == "workers":
        engine = WorkerEngine(plan, model, data, num_slots=COHORT_SIZE, side=side)
    else:
        engine = InProcessEngine(side(plan, model, data))
    layout, parameters = layout_of(model), flat_parameters(model)
    startup, seconds = time.perf_counter() - began, []
    with one_thread():  # as the runner does
        one_round(engine, parameters, 0, layout, plan)  # a process's first steps compile kernels: off the clock for all
        for round_index in range(options.rounds):
            began = time.perf_counter()
            parameters = one_round(engine, parameters, round_index, layout, plan)
            seconds.append(time.perf_counter() - began)
    accuracy = None if options.idle else engine.score(parameters).accuracy
    engine.close()
    Report(f"fedpcs, {options.engine}", torch.__version__, seconds, startup, accuracy).show()


if __name__ == "__main__":
    main()
