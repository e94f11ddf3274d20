"""F28: a thousand rounds with a thousand clients end with as much memory and as many open files as they began with."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from faulty_federation import ENGINES
from torch import nn

from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.game.schedule import Schedule
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.client_data import made_data
from fedpcs.learning.layout import flat_parameters, layout_of
from fedpcs.learning.server_values import ServerPlan
from fedpcs.sampling import make_sampler
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.store import TrialStore

ROUNDS, CLIENTS, COHORT, RECORDS = 1000, 1000, 10, 8
WARM_UP = 200


def make(client):
    """A client's records, always the same ones."""
    generator = torch.Generator().manual_seed(client)
    return torch.randn(RECORDS, 5, generator=generator), torch.randint(3, (RECORDS,), generator=generator)


def memory_of(pid):
    """Resident bytes of a process that are its own."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return 1024 * int(line.split()[1])
    raise AssertionError(pid)


def num_files(pid):
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ENGINES)
def test_memory_and_open_files_stay_flat_over_a_thousand_rounds(tmp_path, kind):
    model = nn.Linear(5, 3)
    client = ClientPlan(mode="client", batch_size=4, clip_norm=0.5)
    data = made_data(make, np.full(CLIENTS, RECORDS), make(10_000), 3)
    plan = ServerPlan(
        run="soak",
        seed=0,
        client=client,
        layout=layout_of(model),
        num_samples=data.num_samples,
        sampler=make_sampler("fedpcs"),
        rule="default",
        schedule=Schedule(
            reward=np.ones(ROUNDS),
            mean_budget=np.full(ROUNDS, 0.5),
            cohort_size=np.full(ROUNDS, COHORT),
            budget=np.broadcast_to(np.linspace(0.01, 1.0, CLIENTS), (ROUNDS, CLIENTS)),
            pay=np.ones((ROUNDS, CLIENTS)),
        ),
    )
    if kind == "in-process":
        engine = InProcessEngine(ClientSide(client, model, data))
    else:
        engine = WorkerEngine(client, model, data, num_workers=2, num_slots=COHORT)
    measured = []

    def measure(record, seconds):
        pids = [os.getpid(), *(worker.process.pid for worker in getattr(engine, "_workers", []))]
        if record.round >= WARM_UP and record.round % 50 == 0:
            measured.append(([memory_of(pid) for pid in pids], [num_files(pid) for pid in pids]))

    store = TrialStore(tmp_path)
    store.create()
    try:
        settings = Settings(delta=1e-5, evaluate_every=50, checkpoint_every=100, notify=measure)
        finished = run_trial(plan, flat_parameters(model), engine, store, settings)
    finally:
        engine.close()
    assert finished.state.next_round == ROUNDS
    memory = np.array([one for one, _ in measured], dtype=np.float64)
    growth = memory[-3:].mean(axis=0) / memory[:3].mean(axis=0) - 1.0
    print(f"\n{kind}: {memory[0] / 2**20} MB, growth {100.0 * growth} %, files {measured[-1][1]}")
    assert (growth < 0.05).all()
    assert measured[0][1] == measured[-1][1]
