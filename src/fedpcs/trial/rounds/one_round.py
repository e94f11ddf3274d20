"""One round: drawn until enough of a cohort is heard, then closed, paid and put into a line for the log.

Privacy is charged before tasks leave, and rewards are owed when updates are in. A round that is done over does both
again to the last bit: charges and rewards of the same release are recognised and not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.engines.base import Engine
from fedpcs.errors import BudgetExhausted, DeviceLost, FedpcsError, Interrupted, QuorumNotReached
from fedpcs.learning.client import Question
from fedpcs.learning.hearing import hear
from fedpcs.learning.protocol import Reply, Task
from fedpcs.learning.server import close_round, counted, has_quorum, leave, open_round
from fedpcs.learning.server_values import BoolArray, Heard, IntArray, OpenRound, ServerPlan, ServerState
from fedpcs.privacy import PrivacyLedger, ReleaseKey
from fedpcs.trial.records import RoundRecord
from fedpcs.trial.replanning import Planner
from fedpcs.trial.rounds.results import attempt_record, known_client, round_record, spent_so_far


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


def play_round(
    plan: ServerPlan, state: ServerState, engine: Engine, ledger: PrivacyLedger, settings: Settings
) -> tuple[ServerPlan, ServerState, RoundRecord | None]:
    """Return the plan and state after a round, and its line for the log; no line if nobody is left to play it.

    Raises:
        QuorumNotReached: The round was drawn again too often, or nobody is there. Nothing was changed.
        DeviceLost: The same, because the device is gone.
        Interrupted: Somebody asked the run to stop.
    """
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
            state = replace(state, spent=charged(plan, ledger, now, now + 1))
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
        heard = _hear(plan, state, opened, engine, settings)
        if has_quorum(plan, opened, heard):
            break
        given_up.append((opened, heard))
        state = counted(state, opened, heard)
    else:
        raise _too_few(plan, now, given_up)
    state, moved = close_round(plan, state, opened, heard)
    this_round = charged(plan, ledger, now, now + 1)
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


def charged(plan: ServerPlan, ledger: PrivacyLedger, first_round: int, end_round: int) -> IntArray:
    """Return (clients,) billionths charged in rounds first…end − 1, attempts that were given up included.

    Noise that cannot be replayed makes rounds that will be done over cost twice: there, all that was ever charged.
    """
    if not plan.client.is_replayable:
        first_round, end_round = 0, plan.num_rounds
    spent = np.zeros(plan.num_clients, dtype=np.int64)
    for client, nanos in ledger.totals(plan.run, first_round, end_round).items():
        spent[known_client(client, plan.num_clients, ledger.path)] = nanos
    return spent


def _hear(plan: ServerPlan, state: ServerState, opened: OpenRound, engine: Engine, settings: Settings) -> Heard:
    """Send tasks out, and sort what comes back until somebody asks the run to stop."""

    def replies() -> Iterator[Reply]:
        for reply in engine.run(state.parameters, opened.tasks):
            if settings.wants_stop():
                raise Interrupted(f"stopped in round {opened.round_index}; all rounds before it are saved.")
            yield reply

    return hear(plan, state, opened, replies(), settings.redraws + 1)


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
    said: list[str] = []
    for _, heard in given_up:
        said += [f"client {item.client}: {item.reason}" for item in heard.failures]
        said += [f"client {item.client}: {item.reason}" for item in heard.refused]
    why = f" The last to fail was {said[-1]}" if said else ""
    lost = [item.kind for _, heard in given_up for item in heard.failures]
    if lost and all(kind == "device" for kind in lost):
        return DeviceLost(f"round {now}: {plan.client.device} does not work any more.{why}")
    return QuorumNotReached(
        f"round {now}: fewer than {plan.quorum:.0%} of the clients drawn were heard, {len(given_up)} times over.{why} "
        "The model is as it was; resume when clients are back, or lower engine.quorum."
    )
