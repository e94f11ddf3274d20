"""A federation of a million clients: set-up, and what a round costs the server, all of `fedpcs run`'s store included.

Clients hold 20 records each, made when they are asked for from the client's number alone, so that only the server's
arrays grow with N. Budgets are the equilibrium of the game under a constant reward; FedPCS draws 100 clients a round in
mode `record`. Server work is a round's time less the time spent waiting for clients.

    python benchmarks/million_clients.py --clients 1000000 --rounds 20
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import table
from torch import Tensor

from fedpcs import _random
from fedpcs.engines.base import Engine, Score
from fedpcs.engines.workers import WorkerEngine
from fedpcs.game import make_game, solve, uniform
from fedpcs.game.schedule import schedule_of
from fedpcs.learning.client import ClientPlan
from fedpcs.learning.client_data import made_data
from fedpcs.learning.layout import flat_parameters, layout_of
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Reply, Task
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import make_sampler
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.store import TrialStore

RECORDS, FEATURES, CLASSES, COHORT = 20, 64, 10, 100
BUDGET_UNIT = 0.01


def records_of(client: int) -> tuple[Tensor, Tensor]:
    """Make a client's records: class patterns under noise."""
    patterns = _random.generator(0, "patterns").standard_normal((CLASSES, FEATURES))
    generator = _random.generator(0, "records", client=client)
    labels = generator.integers(CLASSES, size=RECORDS)
    inputs = patterns[labels] + 2.0 * generator.standard_normal((RECORDS, FEATURES))
    return torch.from_numpy(inputs.astype(np.float32)), torch.from_numpy(labels)


@dataclass
class Watched:
    """An engine that notes how long the server waits for it."""

    inner: Engine
    waited: list[float] = field(default_factory=list)
    name: str = "workers"

    def run(self, parameters: Any, tasks: Sequence[Task]) -> Iterator[Reply]:
        """Pass replies on; the time between asking and getting is waiting."""
        replies, total = iter(self.inner.run(parameters, tasks)), 0.0
        while True:
            began = time.perf_counter()
            reply = next(replies, None)
            total += time.perf_counter() - began
            if reply is None:
                self.waited.append(total)
                return
            yield reply

    def ask(self, parameters: Any, question: Any, tasks: Sequence[Task]) -> Any:
        """Pass a question on."""
        return self.inner.ask(parameters, question, tasks)

    def score(self, parameters: Any) -> Score:
        """Pass an evaluation on."""
        return self.inner.score(parameters)

    def close(self) -> None:
        """Close the engine inside."""
        self.inner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    began = time.perf_counter()
    bounds = (0.01, 12.0)
    game = make_game(
        uniform(options.clients, 0, bounds), last_round=options.rounds - 1, cohort_size=COHORT, budget_bounds=bounds
    )
    found = solve(game, 5.0)
    solved = time.perf_counter() - began
    test = [torch.cat(parts) for parts in zip(*(records_of(options.clients + k) for k in range(50)), strict=True)]
    data = made_data(records_of, np.full(options.clients, float(RECORDS)), (test[0], test[1]), CLASSES)
    model = make_model("linear", (FEATURES,), CLASSES, seed=0)
    client = ClientPlan(0, "record", learning_rate=4.0, batch_size=None, clip_norm=0.5)
    plan = ServerPlan(
        run="million",
        seed=0,
        client=client,
        layout=layout_of(model),
        num_samples=data.num_samples,
        sampler=make_sampler("fedpcs"),
        rule="precision",
        schedule=schedule_of(found, budget_unit=BUDGET_UNIT),
    )
    engine = Watched(WorkerEngine(client, model, data, num_slots=COHORT))
    engine.score(flat_parameters(model))
    ready = time.perf_counter() - began
    seconds: list[float] = []
    peaks: list[float] = []

    def note(_: RoundRecord, took: float) -> None:
        seconds.append(took)
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)

    with tempfile.TemporaryDirectory() as folder:
        done = run_trial(
            plan, flat_parameters(model), engine, TrialStore(Path(folder)), Settings(delta=1e-7, notify=note)
        )
    engine.close()
    work = [took - waited for took, waited in zip(seconds, engine.waited, strict=True)]
    rows = [
        ["set-up: solving the game", f"{solved:.1f} s"],
        ["set-up: everything", f"{ready:.1f} s"],
        ["a round, median", f"{statistics.median(seconds):.2f} s"],
        ["of it server work, median", f"{statistics.median(work):.2f} s"],
        ["of it server work, worst", f"{max(work):.2f} s"],
        ["memory, peak after round 2", f"{peaks[1]:.2f} GiB"],
        ["memory, peak at the end", f"{peaks[-1]:.2f} GiB"],
        ["accuracy at the end", f"{100 * done.score.accuracy:.1f} %"],
    ]
    print(table(f"{options.clients:,} clients, {options.rounds} rounds of {COHORT}", ["what", "measured"], rows))


if __name__ == "__main__":
    main()
