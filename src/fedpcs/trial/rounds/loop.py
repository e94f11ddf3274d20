"""One trial from its first round, or from its last checkpoint, to its result.

The order within a round is what makes a crash harmless. Privacy is charged before tasks leave; rewards are owed when
updates are in; the log line is on the disk before the checkpoint that makes the round count. A run that stops anywhere
redoes the round it was in, and every draw depends on (seed, purpose, round, client), so it redoes it to the last bit.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from fedpcs.engines.base import Engine
from fedpcs.errors import CorruptFile, FedpcsError
from fedpcs.learning.device import one_thread
from fedpcs.learning.layout import Values
from fedpcs.learning.server import first_state
from fedpcs.learning.server_values import ServerPlan, ServerState
from fedpcs.privacy import PrivacyLedger
from fedpcs.trial import checkpoint
from fedpcs.trial.rounds.one_round import Settings, charged, play_round
from fedpcs.trial.rounds.results import Finished, spent_so_far
from fedpcs.trial.store import TrialStore

_LEDGER_LOST = "{path}: charges of rounds that are done are missing. Put back a copy of the ledger, or start a new run."


def run_trial(plan: ServerPlan, parameters: Values, engine: Engine, store: TrialStore, settings: Settings) -> Finished:
    """Run the rounds that are not yet done.

    Args:
        plan: The federation.
        parameters: The model before the first round.
        engine: Where clients run.
        store: What has been done, and where to write what will be.
        settings: How often to evaluate and save, and whom to tell.

    Raises:
        QuorumNotReached: A round was drawn again too often. The model is as it was before it.
        DeviceLost: The same, because the device is gone.
        Interrupted: Somebody asked the run to stop. It can be resumed.
        CorruptFile: No checkpoint is whole, or the ledger or the log lacks what a checkpoint knows of.
    """
    plan, state = _restored(plan, parameters, store, settings)
    if state.next_round > 0 and not store.ledger.exists():
        raise CorruptFile(_LEDGER_LOST.format(path=store.ledger))
    with one_thread(), PrivacyLedger.open(store.ledger) as ledger:
        spent = charged(plan, ledger, 0, state.next_round)
        if (spent < state.spent).any():  # a checkpoint is written after its charges: it can never know of more
            raise CorruptFile(_LEDGER_LOST.format(path=store.ledger))
        state = replace(state, spent=spent)
        while state.next_round < plan.num_rounds:
            began = time.monotonic()
            before, memory = state, _memory(settings)
            try:
                plan, state, record = play_round(plan, state, engine, ledger, settings)
            except (FedpcsError, KeyboardInterrupt):
                if before.next_round % settings.checkpoint_every:
                    checkpoint.save(store.checkpoints, before, memory)
                raise
            if record is None:
                break
            store.append(record)
            if state.next_round % settings.checkpoint_every == 0 or state.next_round == plan.num_rounds:
                checkpoint.save(store.checkpoints, state, _memory(settings))
            settings.notify(record, time.monotonic() - began)
        ended_by = "rounds" if state.next_round == plan.num_rounds else "budget"
        model = state.model(plan)
        score = engine.score(model)
    return Finished(state, model, score, spent_so_far(state, settings.delta, plan.client.noise != "exact"), ended_by)


def _restored(
    plan: ServerPlan, parameters: Values, store: TrialStore, settings: Settings
) -> tuple[ServerPlan, ServerState]:
    found = checkpoint.latest(store.checkpoints)
    store.keep_rounds(0 if found is None else found[0].next_round)
    if found is None:
        return plan, first_state(plan, parameters)
    state, extra, problems = found
    for problem in problems:
        settings.say(f"{problem} Going on from round {state.next_round} instead.")
    return plan if settings.replan is None else settings.replan.recall(plan, extra), state


def _memory(settings: Settings) -> dict[str, Any] | None:
    return None if settings.replan is None else settings.replan.memory()
