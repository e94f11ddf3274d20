"""One trial from its first round, or from its last checkpoint, to its result.

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

from fedpcs._outside import printable
from fedpcs._validate import FloatArray
from fedpcs.engines.base import Engine, Score
from fedpcs.errors import BudgetExhausted, CorruptFile, DeviceLost, FedpcsError, Interrupted, QuorumNotReached
from fedpcs.learning.admission import Admitted, Expected, Refusal, admit
from fedpcs.learning.aggregate import l2_norm
from fedpcs.learning.client import Question
from fedpcs.learning.layout import Values
from fedpcs.learning.protocol import ClientFailure, Task
from fedpcs.learning.repeats import without_repeats
from fedpcs.learning.server import close_round, counted, first_state, has_quorum, leave, open_round, without_outliers
from fedpcs.learning.server_values import BoolArray, Heard, IntArray, OpenRound, ServerPlan, ServerState
from fedpcs.learning.threads import one_thread
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.trial import checkpoint
from fedpcs.trial.records import RoundRecord, Spent
from fedpcs.trial.replanning import Planner
from fedpcs.trial.round_log import attempt_record, known_client, round_record, spent_so_far
from fedpcs.trial.store import TrialStore

_LONGEST_REASON = 500
# Honest updates refused for their norm, in all rounds of a run together.
_FALSE_ALARMS_IN_A_RUN = 1e-6
_LEDGER_LOST = "{path}: charges of rounds that are done are missing. Put back a copy of the ledger, or start a new run."


@dataclass(frozen=True)
class Settings:
    """How a trial is run, beside what it computes.

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
    notify: Callable[[RoundRecord, float], None] = lambda record, seconds: None
    replan: Planner | None = None


@dataclass(frozen=True)
class Finished:
    """A trial that has come to its end.

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
        charged = _spent(plan, ledger, 0, state.next_round)
        if (charged < state.spent).any():  # a checkpoint is written after its charges: it can never know of more
            raise CorruptFile(_LEDGER_LOST.format(path=store.ledger))
        state = replace(state, spent=charged)
        while state.next_round < plan.num_rounds:
            began = time.monotonic()
            before, memory = state, _memory(settings)
            try:
                plan, state, record = _one_round(plan, state, engine, ledger, settings)
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
    spent = spent_so_far(state, settings.delta, plan.client.noise != "exact")
    return Finished(state, model, score, spent, ended_by)


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


def _spent(plan: ServerPlan, ledger: PrivacyLedger, first_round: int, end_round: int) -> IntArray:
    """Return (clients,) billionths charged in rounds first…end − 1, attempts that were given up included.

    Noise that cannot be replayed makes rounds that will be done over cost twice: there, all that was ever charged.
    """
    if not plan.client.is_replayable:
        first_round, end_round = 0, plan.num_rounds
    spent = np.zeros(plan.num_clients, dtype=np.int64)
    for client, nanos in ledger.totals(plan.run, first_round, end_round).items():
        spent[known_client(client, plan.num_clients, ledger.path)] = nanos
    return spent


def _one_round(
    plan: ServerPlan, state: ServerState, engine: Engine, ledger: PrivacyLedger, settings: Settings
) -> tuple[ServerPlan, ServerState, RoundRecord | None]:
    """Return the plan and state after a round, and its line for the log; no line if nobody is left to play it."""
    now, spent_before = state.next_round, state.spent
    is_present = np.ones(plan.num_clients, dtype=np.bool_) if settings.presence is None else settings.presence(now)
    extra: dict[str, Any] = {}
    if settings.replan is not None:
        plan, extra = settings.replan(plan, state, is_present)
    ask = _asker(plan, state, engine)
    left: list[int] = []
    given_up: list[tuple[OpenRound, Heard]] = []
    for attempt in range(settings.redraws + 1):
        if not plan.client.is_replayable:  # what an attempt that was given up released is spent
            state = replace(state, spent=_spent(plan, ledger, now, now + 1))
        state, leaving = leave(plan, state)
        left += leaving.tolist()
        if state.has_left.all():
            return plan, state, None
        is_available = is_present & ~state.has_left
        if not is_available.any():
            raise QuorumNotReached(f"round {now}: no client is present. Resume when some are back.")
        opened = open_round(plan, state, is_available, ask, attempt)
        try:
            _charge(plan, opened.tasks, ledger)
        except BudgetExhausted:  # the ledger knows of releases in a life before this one
            state = _without_broke(state, opened.tasks, ledger)
            continue
        heard = without_outliers(plan, opened, _hear(plan, state, opened, engine, settings))
        heard = without_repeats(state, opened, heard)
        if has_quorum(plan, opened, heard):
            break
        given_up.append((opened, heard))
        state = counted(state, opened, heard)
    else:
        raise _too_few(plan, now, given_up)
    state, moved = close_round(plan, state, opened, heard)
    this_round = _spent(plan, ledger, now, now + 1)
    state = replace(state, spent=spent_before + this_round if plan.client.is_replayable else this_round)
    _owe(plan, opened, heard, moved.reward, ledger)
    is_due = state.next_round % settings.evaluate_every == 0 or state.next_round == plan.num_rounds
    extra |= {"left": left, "given_up": [attempt_record(*pair) for pair in given_up]}
    record = round_record(
        plan,
        state,
        opened,
        heard,
        moved,
        score=engine.score(state.model(plan)) if is_due else None,
        spent=spent_so_far(state, settings.delta, plan.client.noise != "exact"),
        extra=extra,
    )
    return plan, state, record


def _hear(plan: ServerPlan, state: ServerState, opened: OpenRound, engine: Engine, settings: Settings) -> Heard:
    """Send tasks out and sort what comes back."""
    waiting = {task.client: task for task in opened.tasks}
    admitted: dict[int, Admitted] = {}
    refused: list[Refusal] = []
    failures: dict[int, ClientFailure] = {}
    model_norm = l2_norm(state.parameters)
    false_alarm = _FALSE_ALARMS_IN_A_RUN / (plan.num_rounds * plan.num_clients * (settings.redraws + 1))
    for reply in engine.run(state.parameters, opened.tasks):
        if settings.wants_stop():
            raise Interrupted(f"stopped in round {opened.round_index}; all rounds before it are saved.")
        task = waiting.get(reply.client) if type(getattr(reply, "client", None)) is int else None
        if task is None:
            reason = f"client {str(getattr(reply, 'client', reply))[:40]!r} was not drawn."
            refused.append(Refusal(opened.round_index, -1, "stranger", reason))
            continue
        if isinstance(reply, ClientFailure):
            if reply.round_index == opened.round_index:
                failures[reply.client] = reply
            else:
                refused.append(Refusal(opened.round_index, reply.client, "stale", "a failure of another round."))
            continue
        if reply.client in admitted:
            refused.append(Refusal(opened.round_index, reply.client, "duplicate", "an update from it is in already."))
            continue
        size = int(plan.num_samples[task.client])
        expected = Expected(task, size, plan.layout, plan.client, model_norm, false_alarm)
        verdict = admit(reply, expected)
        if isinstance(verdict, Refusal):
            refused.append(verdict)
        else:
            admitted[reply.client] = verdict
    accounted = {item.client for item in refused} | set(failures) | set(admitted)
    for client in sorted(set(waiting) - accounted):
        failures[client] = ClientFailure(opened.round_index, client, "absent", "no reply came")
    in_order = sorted(refused, key=lambda item: (item.client, item.kind, item.reason))
    failed = [failures[client] for client in sorted(set(failures) - set(admitted))]
    # Here all words that clients have a part in come by, on their way to the log, the report and the terminal.
    return Heard(
        tuple(admitted[client] for client in sorted(admitted)),
        tuple(replace(item, reason=printable(item.reason, _LONGEST_REASON)) for item in in_order),
        tuple(replace(item, reason=printable(item.reason, _LONGEST_REASON)) for item in failed),
    )


def _charge(plan: ServerPlan, tasks: Sequence[Task], ledger: PrivacyLedger) -> None:
    """Charge the cohort before it is sent for: from here on, what they release may be on its way."""
    if not plan.client.is_perturbed:
        return
    source = plan.client.source()
    if plan.limit is not None:
        ledger.set_limits([(task.client, plan.limit) for task in tasks])
    sizes = plan.num_samples
    ledger.charge_many(
        (
            ReleaseKey(plan.run, task.round_index, task.client),
            plan.client.release_event(task, int(sizes[task.client]), source),
        )
        for task in tasks
    )


def _without_broke(state: ServerState, tasks: Sequence[Task], ledger: PrivacyLedger) -> ServerState:
    has_left = state.has_left.copy()
    for task in tasks:
        if task.budget is not None and ledger.would_exceed(task.client, task.budget):
            has_left[task.client] = True
    return replace(state, has_left=has_left)


def _owe(plan: ServerPlan, opened: OpenRound, heard: Heard, reward: FloatArray, ledger: PrivacyLedger) -> None:
    """Write down what is owed; what a life before this one wrote down for the same round stands."""
    ledger.owe_many(
        (
            (ReleaseKey(plan.run, opened.round_index, int(client)), float(amount))
            for client, amount in zip(heard.clients, reward, strict=True)
        ),
        keeps_owed=True,
    )


def _asker(plan: ServerPlan, state: ServerState, engine: Engine) -> Callable[[str, IntArray], FloatArray]:
    def ask(question: str, clients: IntArray) -> FloatArray:
        named: Question = "loss" if question == "loss" else "update_norm"
        tasks = [Task(plan.run, state.next_round, int(client), "") for client in clients]
        return engine.ask(state.parameters, named, tasks)

    return ask


def _too_few(plan: ServerPlan, now: int, given_up: Sequence[tuple[OpenRound, Heard]]) -> FedpcsError:
    failures: list[ClientFailure | Refusal] = []
    for _, heard in given_up:
        failures += [*heard.failures, *heard.refused]
    why = f" The last to fail was client {failures[-1].client}: {failures[-1].reason}" if failures else ""
    lost = [item.kind for _, heard in given_up for item in heard.failures]
    if lost and all(kind == "device" for kind in lost):
        return DeviceLost(f"round {now}: {plan.client.device} does not work any more.{why}")
    return QuorumNotReached(
        f"round {now}: fewer than {plan.quorum:.0%} of the clients drawn were heard, {len(given_up)} times over.{why} "
        "The model is as it was; resume when clients are back, or lower engine.quorum."
    )
