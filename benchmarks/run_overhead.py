"""What the server adds to a round of training: admission checks, and the store of `fedpcs run`.

The work is `round_time.py`'s. One client's training is timed, then twenty updates are admitted one after another; their
ratio is the share of a round that admission costs (on two workers a round is ten trainings long). Then rounds of idle
clients go through the runner with log, ledger and a checkpoint each, and through the engine alone.

    python benchmarks/run_overhead.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from ours_round import IdleClients, dealt_out, one_round
from round_time import BATCH_SIZE, COHORT_SIZE, IMAGES_PER_CLIENT, LEARNING_RATE, NUM_CLASSES, NUM_CLIENTS, SEED, load
from timing import table

from fedpcs.engines.workers import WorkerEngine
from fedpcs.game.schedule import not_played
from fedpcs.learning.admission import Admitted, Expected, admit
from fedpcs.learning.client import ClientPlan, ClientSide
from fedpcs.learning.device import one_thread
from fedpcs.learning.layout import flat_parameters, layout_of
from fedpcs.learning.models import make_model
from fedpcs.learning.protocol import Task
from fedpcs.learning.server_values import ServerPlan
from fedpcs.privacy.budget import Rho
from fedpcs.sampling import make_sampler
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.store import TrialStore

NUM_ROUNDS = 12


def main() -> None:
    data = dealt_out(load("synthetic"))
    plan = ClientPlan(SEED, "none", LEARNING_RATE, BATCH_SIZE)
    model = make_model("cnn-fashion", (1, 28, 28), NUM_CLASSES, seed=SEED)
    layout, parameters = layout_of(model), flat_parameters(model)
    with one_thread():
        training, plain = measure_admission(ClientSide(plan, model, data), plan)
        private = replace(plan, mode="client")  # where its noise is checked as well
        _, admission = measure_admission(ClientSide(private, model, data), private)
    engine = WorkerEngine(plan, model, data, num_slots=COHORT_SIZE, side=IdleClients)
    alone = []
    with one_thread():
        for index in range(NUM_ROUNDS):
            began = time.perf_counter()
            one_round(engine, parameters, index, layout, plan)
            alone.append(time.perf_counter() - began)
    whole: list[float] = []
    server = ServerPlan(
        run="idle",
        seed=0,
        client=plan,
        layout=layout,
        num_samples=data.num_samples,
        sampler=make_sampler("random"),
        rule="hajek",
        schedule=not_played(NUM_ROUNDS, NUM_CLIENTS, COHORT_SIZE),
    )

    def note(_: RoundRecord, took: float) -> None:
        whole.append(took)

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(delta=1e-5, evaluate_every=NUM_ROUNDS, notify=note)
        run_trial(server, parameters, engine, TrialStore(Path(folder)), settings)
    engine.close()
    share = COHORT_SIZE * admission / (COHORT_SIZE / 2 * training)
    rows = [
        ["one client's training", f"{1e3 * training:.0f} ms"],
        ["admission of its update without noise, digest included", f"{1e3 * plain:.2f} ms"],
        ["admission of its update with noise, digest included", f"{1e3 * admission:.2f} ms"],
        ["admission of the cohort ÷ a round on two workers", f"{100 * share:.2f} %"],
        ["a round of idle clients, engine alone, median", f"{statistics.median(alone[2:]):.3f} s"],
        ["the same with log, ledger and checkpoint, median", f"{statistics.median(whole[2:-1]):.3f} s"],
    ]
    print(table("What the server adds", ["what", "measured"], rows))


def measure_admission(side: ClientSide, plan: ClientPlan) -> tuple[float, float]:
    """Return the seconds of one client's training and of admitting its update, medians."""
    parameters = torch.from_numpy(flat_parameters(make_model("cnn-fashion", (1, 28, 28), NUM_CLASSES, seed=SEED)))
    out = torch.empty_like(parameters)
    trainings, admissions = [], []
    for client in range(4):
        task = Task("bench", 0, client, "nonce", Rho.of(1.0))
        began = time.perf_counter()
        report = side.answer(task, parameters, out)
        trainings.append(time.perf_counter() - began)
        for _ in range(COHORT_SIZE):
            began = time.perf_counter()
            verdict = admit(report, Expected(task, IMAGES_PER_CLIENT, side.layout, plan))
            assert isinstance(verdict, Admitted)
            assert verdict.digest >= 0
            admissions.append(time.perf_counter() - began)
    return statistics.median(trainings[1:]), statistics.median(admissions)


if __name__ == "__main__":
    main()
