"""A federation small enough to run a hundred times, with faults in it: what the fault tests share."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tiny_runs
from fault_injection import Fault, FaultyClients, FaultyEngine
from tiny_runs import prepared

from fedpcs.engines.base import Engine
from fedpcs.engines.inprocess import InProcessEngine
from fedpcs.engines.workers import WorkerEngine
from fedpcs.learning.layout import flat_parameters
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.rounds.loop import run_trial
from fedpcs.trial.rounds.one_round import Settings
from fedpcs.trial.rounds.results import Finished
from fedpcs.trial.store import TrialStore

ENGINES = ("in-process", "workers")
# Of tests that are about the server; `make check-all` runs them on the other engine too.
ENGINE = os.environ.get("FEDPCS_FAULT_ENGINE", "in-process")
NUM_CLIENTS = 8


def tiny(**changes: Any) -> RunConfig:
    """The tiny run in full batches, with some of its keys changed: `tiny(rounds=4, engine={"kind": "workers"})`."""
    training = {"batch_size": 0, **changes.pop("training", {})}
    engine = {"kind": ENGINE, "num_workers": 2, **changes.pop("engine", {})}
    return tiny_runs.tiny(training=training, engine=engine, **changes)


@dataclass(frozen=True)
class Played:
    """What a run with faults came to."""

    finished: Finished
    records: list[RoundRecord]
    store: TrialStore
    said: list[str]

    @property
    def model(self) -> bytes:
        return self.finished.model.tobytes()

    @property
    def charges(self) -> list[tuple[Any, ...]]:
        return charges(self.store)

    @property
    def rewards(self) -> list[tuple[Any, ...]]:
        return rewards(self.store)


def charges(store: TrialStore) -> list[tuple[Any, ...]]:
    """(round, client, attempt, nanos) of every charge, in order of these."""
    with closing(sqlite3.connect(store.ledger)) as ledger:
        return ledger.execute(
            "SELECT round_index, CAST(client AS INTEGER), attempt, rho_nanos FROM charges ORDER BY 1, 2, 3"
        ).fetchall()


def rewards(store: TrialStore) -> list[tuple[Any, ...]]:
    """(round, client, nanos) of every reward, in order of these."""
    with closing(sqlite3.connect(store.ledger)) as ledger:
        return ledger.execute(
            "SELECT round_index, CAST(client AS INTEGER), amount_nanos FROM rewards ORDER BY 1, 2"
        ).fetchall()


@contextmanager
def engine_with(kind: str, config: RunConfig, faults: Sequence[Fault] = (), deadline: float = 20.0):
    """Yield an engine in which these faults strike."""
    ready = prepared(config)
    inner: Engine
    if kind == "in-process":
        inner = InProcessEngine(FaultyClients(ready.plan.client, ready.model, ready.data, faults), deadline)
    else:
        side = functools.partial(FaultyClients, faults=tuple(faults))
        inner = WorkerEngine(
            ready.plan.client,
            ready.model,
            ready.data,
            num_workers=2,
            num_slots=int(ready.plan.schedule.cohort_size.max()),
            deadline_seconds=deadline,
            side=side,
        )
    try:
        yield FaultyEngine(inner, faults)
    finally:
        inner.close()


def play(
    folder: Path,
    kind: str = ENGINE,
    faults: Sequence[Fault] = (),
    *,
    config: RunConfig | None = None,
    deadline: float = 20.0,
    engine: Engine | None = None,
    **settings: Any,
) -> Played:
    """Run the tiny federation, or go on with it, with these faults in it."""
    config = tiny() if config is None else config
    plan = replace(prepared(config).plan, **settings.pop("plan", {}))
    said: list[str] = []
    store = TrialStore(folder)
    store.create()
    how = Settings(**{"delta": 1e-5, "redraws": config.engine.redraws, "say": said.append, **settings})
    first = flat_parameters(prepared(config).model)
    if engine is not None:
        finished = run_trial(plan, first, engine, store, how)
    else:
        with engine_with(kind, config, faults, deadline) as made:
            finished = run_trial(plan, first, made, store, how)
    return Played(finished, store.rounds(), store, said)


# What the log says of how replies were lost: it differs between a client that lied and one that was away.
HOW_LOST = {"failures", "failed", "refusals", "refused"}


def same_but_for_how(records: list[RoundRecord], others: list[RoundRecord]) -> bool:
    one, other = ([record.model_dump(exclude=HOW_LOST) for record in lines] for lines in (records, others))
    return one == other


def first_cohort(config: RunConfig | None = None, round_index: int = 0, attempt: int = 0) -> list[int]:
    """Who is drawn in a round by the tiny run, whatever happens before it (its sampler is `random`)."""
    from fedpcs import _random
    from fedpcs.sampling import draw, make_view

    plan = prepared(tiny() if config is None else config).plan
    view = make_view(int(plan.schedule.cohort_size[round_index]), plan.num_samples, round_index=round_index)
    rng = _random.generator(plan.seed, "cohort", round_index, attempt)
    found: list[int] = np.asarray(draw(plan.sampler, view, rng).clients).tolist()
    return found
