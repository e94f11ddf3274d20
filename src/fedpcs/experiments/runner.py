"""One arm from its first round, or from its last checkpoint, to its result.

The order within a round is what makes a crash harmless. Privacy is charged before tasks leave; rewards are owed when
updates are in; the log line is on the disk before the checkpoint that makes the round count. A run that stops anywhere
redoes the round it was in, and every draw depends on (seed, purpose, round, client), so it redoes it to the last bit:
charges and rewards of the same release are recognised and not made twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.engines.base import Engine, Score
from fedpcs.errors import BudgetExhausted, Interrupted, QuorumNotReached
from fedpcs.experiments import checkpoint
from fedpcs.experiments.arm_store import ArmStore
from fedpcs.experiments.records import Spent, round_record, spent_so_far
from fedpcs.experiments.replanning import Replanner
from fedpcs.learning.admission import Admitted, Expected, Refusal, admit
from fedpcs.learning.client import Question
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import ClientFailure, Task
from fedpcs.learning.server import (
    BoolArray,
    Heard,
    IntArray,
    OpenRound,
    ServerPlan,
    ServerState,
    charged,
    close_round,
    counted,
    first_state,
    has_quorum,
    open_round,
    without_outliers,
)
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.privacy.events import Event
from fedpcs.privacy.mechanism import ClientMechanism, PaperMechanism, RecordMechanism
from fedpcs.privacy.noise import NoiseSource, noise_source


@dataclass(frozen=True)
class Settings:
    """How an arm is run, beside what it computes.

    Attributes:
        delta: δ of the ε that is reported.
        evaluate_every: Rounds between evaluations; the last round is always evaluated.
        checkpoint_every: Rounds between checkpoints.
        redraws: How often a round without a quorum is drawn again.
        presence: round → (clients,) who can be reached.
        wants_stop: Asked between clients; true once the user wants the run to stop.
        say: Told what a user should know.
        notify: Told of every finished round.
        replan: Asked before every round for the plan to go on with; None: the plan stands.
    """

    delta: float
    evaluate_every: int = 1
    checkpoint_every: int = 1
    redraws: int = 3
    presence: Callable[[int], BoolArray] | None = None
    wants_stop: Callable[[], bool] = lambda: False
    say: Callable[[str], None] = lambda words: None
    notify: Callable[[dict[str, Any], float], None] = lambda record, seconds: None
    replan: Replanner | None = None


@dataclass(frozen=True)
class Finished:
    """An arm that has come to its end.

    Attributes:
        state: After the last round.
        model: The parameters it leaves behind.
        score: Their score on the test records.
        spent: What clients have spent.
        ended_by: "rounds", or "budget" if nobody could afford another round.
    """

    state: ServerState
    model: Values
    score: Score
    spent: Spent
    ended_by: str


def run_arm(plan: ServerPlan, parameters: Values, engine: Engine, store: ArmStore, settings: Settings) -> Finished:
    """Run the rounds that are not yet done.

    Args:
        plan: The federation.
        parameters: The model before the first round.
        engine: Where clients run.
        store: What has been done, and where to write what will be.
        settings: How often to evaluate and save, and whom to tell.

    Raises:
        QuorumNotReached: A round was drawn again too often. The model is as it was before it.
        Interrupted: Somebody asked the run to stop. It can be resumed.
        CorruptFile: No checkpoint is whole.
    """
    plan, state = _restored(plan, parameters, store, settings)
    ended_by = "rounds"
    with PrivacyLedger.open(store.ledger) as ledger:
        state = _with_ledger(plan, state, ledger)
        while state.next_round < plan.num_rounds:
            began = time.monotonic()
            before = state
            try:
                plan, state, record = _one_round(plan, state, engine, ledger, settings)
            except BudgetExhausted:
                ended_by = "budget"
                break
            except (Interrupted, KeyboardInterrupt, QuorumNotReached):
                if before.next_round % settings.checkpoint_every:
                    _save(store, before, settings)
                raise
            store.append(record)
            if state.next_round % settings.checkpoint_every == 0 or state.next_round == plan.num_rounds:
                _save(store, state, settings)
            settings.notify(record, time.monotonic() - began)
    model = state.model(plan)
    spent = spent_so_far(state, settings.delta, plan.client.noise != "exact")
    return Finished(state, model, engine.score(model), spent, ended_by)


def _restored(
    plan: ServerPlan, parameters: Values, store: ArmStore, settings: Settings
) -> tuple[ServerPlan, ServerState]:
    found = checkpoint.latest(store.checkpoints)
    store.keep_rounds(0 if found is None else found[0].next_round)
    if found is None:
        return plan, first_state(plan, parameters)
    state, extra, problems = found
    for problem in problems:
        settings.say(f"{problem} Going on from round {state.next_round} instead.")
    return plan if settings.replan is None else settings.replan.recall(plan, extra), state


def _save(store: ArmStore, state: ServerState, settings: Settings) -> None:
    checkpoint.save(store.checkpoints, state, None if settings.replan is None else settings.replan.memory())


def _with_ledger(plan: ServerPlan, state: ServerState, ledger: PrivacyLedger) -> ServerState:
    """Take what was spent from the ledger where noise cannot be replayed: rounds redone cost again."""
    if not plan.client.is_perturbed or plan.client.noise == "fast":
        return state
    spent = np.zeros(plan.num_clients, dtype=np.int64)
    for client, nanos in ledger.totals(plan.run).items():
        spent[int(client)] = nanos
    return replace(state, spent=spent)


def _one_round(
    plan: ServerPlan, state: ServerState, engine: Engine, ledger: PrivacyLedger, settings: Settings
) -> tuple[ServerPlan, ServerState, dict[str, Any]]:
    now = state.next_round
    is_present = np.ones(plan.num_clients, dtype=np.bool_) if settings.presence is None else settings.presence(now)
    extra: dict[str, Any] = {}
    if settings.replan is not None:
        plan, extra = settings.replan(plan, state, is_present)
    ask = _asker(plan, state, engine)
    paid_for: set[int] = set()
    lost: list[ClientFailure | Refusal] = []
    for attempt in range(settings.redraws + 1):
        state, opened = open_round(plan, state, is_present, ask, attempt)
        state = _charge(plan, state, opened.tasks, paid_for, ledger)
        heard = without_outliers(plan, opened, _hear(plan, state, opened, engine, settings))
        if has_quorum(plan, opened, heard):
            break
        lost += [*heard.failures, *heard.refused]
        state = counted(state, opened, heard)
    else:
        raise QuorumNotReached(_too_few(plan, now, settings.redraws + 1, lost))
    state, moved = close_round(plan, state, opened, heard)
    _owe(plan, opened, heard, moved.reward, ledger)
    is_due = state.next_round % settings.evaluate_every == 0 or state.next_round == plan.num_rounds
    score = engine.score(state.model(plan)) if is_due else None
    spent = spent_so_far(state, settings.delta, plan.client.noise != "exact")
    return plan, state, round_record(plan, state, opened, heard, moved, score=score, spent=spent, extra=extra)


def _hear(plan: ServerPlan, state: ServerState, opened: OpenRound, engine: Engine, settings: Settings) -> Heard:
    """Send tasks out and sort what comes back."""
    waiting = {task.client: task for task in opened.tasks}
    admitted: dict[int, Admitted] = {}
    refused: list[Refusal] = []
    failures: dict[int, ClientFailure] = {}
    for reply in engine.run(state.parameters, opened.tasks):
        if settings.wants_stop():
            raise Interrupted(f"stopped in round {opened.round_index}; all rounds before it are saved.")
        if isinstance(reply, ClientFailure):
            failures[reply.client] = reply
            continue
        task = waiting.get(reply.client) if isinstance(reply.client, int) else None
        if task is None:
            reason = f"client {reply.client!r} was not drawn."
            refused.append(Refusal(opened.round_index, -1, "stranger", reason))
            continue
        if reply.client in admitted:
            refused.append(Refusal(opened.round_index, reply.client, "duplicate", "an update from it is in already."))
            continue
        expected = Expected(task, int(plan.num_samples[task.client]), plan.layout, plan.client)
        verdict = admit(reply, expected)
        if isinstance(verdict, Refusal):
            refused.append(verdict)
        else:
            admitted[reply.client] = verdict
    silent = {item.client for item in refused} | set(failures) | set(admitted)
    for client in sorted(set(waiting) - silent):
        failures[client] = ClientFailure(opened.round_index, client, "absent", "no reply came")
    in_order = sorted(refused, key=lambda item: (item.client, item.kind, item.reason))
    return Heard(
        tuple(admitted[client] for client in sorted(admitted)),
        tuple(in_order),
        tuple(failures[client] for client in sorted(set(failures) - set(admitted))),
    )


def _charge(
    plan: ServerPlan, state: ServerState, tasks: Sequence[Task], paid_for: set[int], ledger: PrivacyLedger
) -> ServerState:
    """Charge the cohort before it is sent for: from here on, what they release may be on its way."""
    if not plan.client.is_perturbed:
        return state
    source = noise_source(plan.client.noise, seed=0 if plan.client.noise == "fast" else None)
    if plan.limit is not None:
        ledger.set_limits((task.client, plan.limit) for task in tasks)
    ledger.charge_many(
        (ReleaseKey(plan.run, task.round_index, task.client), _event(plan, task, source)) for task in tasks
    )
    new = [task for task in tasks if not (source.is_replayable and task.client in paid_for)]
    paid_for.update(task.client for task in tasks)
    return charged(state, new)


def _event(plan: ServerPlan, task: Task, source: NoiseSource) -> Event[Any]:
    assert task.budget is not None
    if plan.client.mode == "paper":
        return PaperMechanism(task.budget, int(plan.num_samples[task.client])).event(source)
    if plan.client.mode == "client":
        return ClientMechanism(task.budget).event(source)
    return RecordMechanism(task.budget, plan.client.local_epochs).event(source)


def _owe(plan: ServerPlan, opened: OpenRound, heard: Heard, reward: FloatArray, ledger: PrivacyLedger) -> None:
    ledger.owe_many(
        (ReleaseKey(plan.run, opened.round_index, int(client)), float(amount))
        for client, amount in zip(heard.clients, reward, strict=True)
    )


def _asker(plan: ServerPlan, state: ServerState, engine: Engine) -> Callable[[str, IntArray], FloatArray]:
    def ask(question: str, clients: IntArray) -> FloatArray:
        named: Question = "loss" if question == "loss" else "update_norm"
        tasks = [Task(plan.run, state.next_round, int(client), "") for client in clients]
        return engine.ask(state.parameters, named, tasks)

    return ask


def _too_few(plan: ServerPlan, now: int, tries: int, lost: Sequence[ClientFailure | Refusal]) -> str:
    last = lost[-1] if lost else None
    why = "" if last is None else f" The last to fail was client {last.client}: {last.reason}"
    return (
        f"round {now}: fewer than {plan.quorum:.0%} of the clients drawn were heard, {tries} times over.{why} "
        "The model is as it was; resume when clients are back, or lower engine.quorum."
    )
