"""The server's side of a round: draw from the budgets announced, admit what comes back, aggregate, pay.

Each function takes what the server knows and returns what it knows next; nothing is kept anywhere else, and no client's
data are in reach. `open_round` ends with tasks, an engine carries them out, `close_round` begins with what was
admitted.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from fedpcs import _random
from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput, QuorumNotReached
from fedpcs.learning.aggregate import l2_norm, step, step_parts, weighted_sum
from fedpcs.learning.closing import feedback_of_round, weigh_heard
from fedpcs.learning.hearing import is_new, nothing_seen, remembered
from fedpcs.learning.layout import Values
from fedpcs.learning.noise_plan import noise_power
from fedpcs.learning.protocol import MEASURES, Task
from fedpcs.learning.server_values import BoolArray, Heard, IntArray, OpenRound, ServerPlan, ServerState, Step
from fedpcs.privacy.budget import NANOS_PER_UNIT, Rho
from fedpcs.sampling import (
    Sampler,
    View,
    draw,
    make_view,
    remember,
    settle_rule,
    start,
    start_tally,
)
from fedpcs.sampling import count as count_round

_WRITTEN = 1e-6  # 0.07 is written with whole billionths, its float is a little less
# (question, clients) → one answer for each, by asking them.
Ask = Callable[[str, IntArray], FloatArray]


def first_state(plan: ServerPlan, parameters: Values) -> ServerState:
    """Return the state before the first round."""
    none = np.zeros(0)
    return ServerState(
        next_round=0,
        parameters=parameters,
        momentum=np.zeros(parameters.size) if plan.momentum > 0.0 else none,
        average=np.zeros(parameters.size) if plan.averaging > 0.0 else none,
        memory=start(plan.sampler, plan.num_clients),
        tally=start_tally(plan.num_clients),
        spent=np.zeros(plan.num_clients, dtype=np.int64),
        has_left=np.zeros(plan.num_clients, dtype=np.bool_),
        paid=0.0,
        seen=nothing_seen(),
    )


def leave(plan: ServerPlan, state: ServerState) -> tuple[ServerState, IntArray]:
    """Let go of the clients that cannot afford this round: they leave for good, and the others share their chances."""
    if plan.limit is None or not plan.client.is_perturbed:
        return state, np.zeros(0, dtype=np.int64)
    leaving = ~state.has_left & (state.spent + _billionths(plan, state.next_round) > plan.limit.nanos)
    return replace(state, has_left=state.has_left | leaving), np.flatnonzero(leaving)


def open_round(plan: ServerPlan, state: ServerState, is_available: BoolArray, ask: Ask, attempt: int = 0) -> OpenRound:
    """Announce and draw a round.

    Args:
        plan: The federation.
        state: After the rounds before.
        is_available: (clients,) who can be reached and can afford it; at least one.
        ask: Puts a sampler's question to clients; NaN where one does not answer.
        attempt: How often this round was drawn before.
    """
    now = state.next_round
    view = _view(plan, state, is_available, ask)
    cohort = draw(plan.sampler, view, _random.generator(plan.seed, "cohort", now, attempt))
    measures = tuple(name for name in MEASURES if name in plan.sampler.hears)
    cost = _billionths(plan, now)
    tasks = tuple(
        Task(
            plan.run,
            now,
            int(client),
            secrets.token_hex(8),
            Rho(int(cost[client])) if plan.client.is_perturbed else None,
            measures,
            plan.max_samples,
        )
        for client in cohort.clients
    )
    return OpenRound(now, attempt, view, cohort, tasks)


def has_quorum(plan: ServerPlan, opened: OpenRound, heard: Heard) -> bool:
    """Say whether enough of the cohort was heard, and at least one client if any was drawn."""
    if opened.draw.clients.size == 0:
        return True
    return len(heard.admitted) >= max(1, math.ceil(plan.quorum * opened.draw.clients.size - 1e-9))


def counted(state: ServerState, opened: OpenRound, heard: Heard) -> ServerState:
    """Return the state with a draw counted: who was drawn, who was heard."""
    return replace(state, tally=count_round(state.tally, opened.draw, heard.clients))


def close_round(plan: ServerPlan, state: ServerState, opened: OpenRound, heard: Heard) -> tuple[ServerState, Step]:
    """Weigh the updates, move the model, say what is owed.

    Args:
        plan: The federation.
        state: With all draws of this round but the last counted.
        opened: The round.
        heard: What came back; a quorum of it.
    """
    updates = [item.report.values for item in heard.admitted]
    power = np.asarray(opened.view.need("noise_power")[heard.clients])
    weighed = weigh_heard(
        settle_rule(plan.rule, opened.view.need("noise_power")),
        opened.draw,
        opened.view,
        heard.clients,
        updates,
        state.tally.drawn,
        state.tally.heard,
        by_design=plan.by_design,
        cap=plan.weight_cap,
        largest_share=plan.largest_weight,
    )
    weights = weighed.weights
    # A design of random size may draw nobody: then the estimate of the step is zero, and the round has passed.
    direction = weighted_sum(updates, weights) if updates else np.zeros(state.parameters.size)
    norms = np.array([item.norm for item in heard.admitted])
    memory = remember(plan.sampler, opened.view, opened.draw, feedback_of_round(plan, opened, heard, norms, power))
    reward = np.where(is_new(state, heard), plan.schedule.pay[opened.round_index, heard.clients], 0.0)
    moved, step_norm = _move(plan, state, direction)
    following = replace(
        moved,
        next_round=state.next_round + 1,
        memory=memory,
        tally=count_round(state.tally, opened.draw, heard.clients),
        paid=state.paid + float(reward.sum()),
        seen=remembered(state.seen, opened, heard),
    )
    parts = step_parts(norms, power, weights, l2_norm(direction))
    return following, Step(
        weighed.rule, weights, weighed.drift, norms, np.sqrt(power), step_norm, parts, reward, weighed.num_capped
    )


def _billionths(plan: ServerPlan, round_index: int) -> IntArray:
    """Return (clients,) what a release costs in whole billionths of ρ, rounded down: the contract of this round."""
    return np.asarray(np.floor(plan.schedule.budget[round_index] * NANOS_PER_UNIT + _WRITTEN), dtype=np.int64)


def refuse_unsent(sampler: Sampler) -> None:
    """Refuse a sampler that reads, before the draw, what clients can only measure by training.

    Raises:
        InvalidInput: It does.
    """
    if unsent := sorted({"gradient_distance", "gradient_variance"} & set(sampler.reads)):
        raise InvalidInput(
            f"sampler {sampler.name!r} needs {unsent[0]} of every client before the draw, which clients do not send. "
            "Use what clients sent in earlier rounds: for delta, information = 'practical'."
        )


def _view(plan: ServerPlan, state: ServerState, is_available: BoolArray, ask: Ask) -> View:
    now, reads = state.next_round, plan.sampler.reads
    budget = plan.schedule.budget[now]
    refuse_unsent(plan.sampler)
    norms = None
    if "update_norm" in reads:  # every client that could be drawn trains; the sampler's own cost, and a private one
        answers = np.full(plan.num_clients, np.nan)
        answers[is_available] = ask("update_norm", np.flatnonzero(is_available))
        is_available, norms = np.isfinite(answers), np.nan_to_num(answers, posinf=0.0)
        if not is_available.any():
            raise QuorumNotReached(f"round {now}: no client answers what sampler {plan.sampler.name} asks. Try again.")
    return make_view(
        min(int(plan.schedule.cohort_size[now]), int(is_available.sum())),
        plan.num_samples,
        is_available=is_available,
        round_index=now,
        loss=(lambda clients: _least_where_silent(ask("loss", clients))) if "loss" in reads else None,
        label_counts=plan.label_counts if "label_counts" in reads else None,
        memory=state.memory,
        budget=budget,
        noise_power=noise_power(plan.client, budget, plan.num_samples, plan.layout.num_parameters),
        update_norm=norms,
        local_steps=plan.client.local_steps(plan.num_samples),
    )


def _least_where_silent(losses: FloatArray) -> FloatArray:
    """Give a client that does not answer the least loss of all: the last to be preferred."""
    heard = np.isfinite(losses)
    return np.where(heard, losses, losses[heard].min() if heard.any() else 0.0)


def _move(plan: ServerPlan, state: ServerState, direction: FloatArray) -> tuple[ServerState, float]:
    if plan.momentum > 0.0:
        direction = plan.momentum * state.momentum + direction
        state = replace(state, momentum=direction)
    parameters = step(state.parameters, direction, plan.rate)
    if not np.isfinite(parameters).all():
        raise InvalidInput(
            f"round {state.next_round}: the model has diverged to numbers that are not finite. Lower "
            "training.learning_rate or training.server_rate; the model before this round is in the last checkpoint."
        )
    if plan.averaging > 0.0:
        average = plan.averaging * state.average + (1.0 - plan.averaging) * parameters
        state = replace(state, average=average)
    return replace(state, parameters=parameters), plan.rate * l2_norm(direction)
