"""What is written of rounds and trials, made of the server's state: a round's line for the log, a trial's result."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedpcs._files import NEW_RUN
from fedpcs._outside import printable
from fedpcs.engines.base import Score
from fedpcs.errors import CorruptFile
from fedpcs.learning.layout import Values
from fedpcs.learning.server_values import Heard, OpenRound, ServerPlan, ServerState, Step
from fedpcs.privacy.budget import NANOS_PER_UNIT, Rho
from fedpcs.sampling import disclosure, report_round
from fedpcs.trial.config import RunConfig
from fedpcs.trial.records import (
    Attempt,
    DrawSummary,
    GameSummary,
    Missed,
    RoundRecord,
    Spent,
    Spread,
    StepSummary,
    TrialResult,
)
from fedpcs.trial.schedule import selection_of

# Refusals spelled out in one line of the log; the rest are counted.
_MOST_SPELLED_OUT = 20


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


def finite_or_none(value: float) -> float | None:
    """Return a number JSON can hold; None for the loss of a model that has diverged."""
    return value if math.isfinite(value) else None


def spread(values: Sequence[float]) -> Spread:
    """Return the spread of some numbers; zeros of none.

    Example:
        >>> spread([3.0, 1.0, 2.0])
        Spread(minimum=1.0, median=2.0, maximum=3.0)
        >>> spread([3.0, 1.0]).median
        2.0
    """
    if not len(values):
        return Spread(minimum=0.0, median=0.0, maximum=0.0)
    return Spread(minimum=min(values), median=statistics.median(values), maximum=max(values))


def spent_so_far(state: ServerState, delta: float, is_gaussian: bool) -> Spent:
    """Return what clients have spent so far.

    The median ε is the median of the clients' ε, not the ε of their median ρ. ε grows with ρ, so it is enough to
    convert what the least, the one or two in the middle and the greatest have spent.
    """
    charged = np.sort(state.spent[state.spent > 0])
    if charged.size == 0:
        return Spent(rho=spread([]), epsilon=spread([]), num_clients=0)
    # Imported here because it brings SciPy, for which a run without privacy need not wait.
    from fedpcs.privacy.conversion import Method, to_epsilon

    law: Method = "exact" if is_gaussian else "tight"
    nanos = [int(charged[k]) for k in (0, (charged.size - 1) // 2, charged.size // 2, -1)]
    least, low, high, greatest = (to_epsilon(Rho(one), delta, law) for one in nanos)
    # Whole numbers are added and divided once, so that ρ is the float nearest to the exact median.
    middle = (nanos[1] + nanos[2]) / (2 * NANOS_PER_UNIT)
    rho = Spread(minimum=nanos[0] / NANOS_PER_UNIT, median=middle, maximum=nanos[3] / NANOS_PER_UNIT)
    epsilon = Spread(minimum=least, median=statistics.fmean((low, high)), maximum=greatest)
    return Spent(rho=rho, epsilon=epsilon, num_clients=int(charged.size))


def known_client(name: str, num_clients: int, ledger: Path) -> int:
    """Return the number of a client that a run's ledger names.

    Raises:
        CorruptFile: The run has no such client.
    """
    # No number of a client has more digits than the number of clients, and Python refuses to read very many.
    number = int(name) if name.isdecimal() and len(name) <= len(str(num_clients)) else -1
    if str(number) != name or not 0 <= number < num_clients:
        stranger, last = printable(name, 40), num_clients - 1
        raise CorruptFile(f"{ledger}: client {stranger!r} spent something by it; clients are 0…{last}. {NEW_RUN}")
    return number


def attempt_record(opened: OpenRound, heard: Heard) -> Attempt:
    """Return who was drawn in an attempt at a round, who was heard, and why the others were not."""
    return Attempt(**_attempt(opened, heard))


def _attempt(opened: OpenRound, heard: Heard) -> dict[str, Any]:
    return {
        "attempt": opened.attempt,
        "cohort": opened.draw.clients.tolist(),
        "heard": heard.clients.tolist(),
        "failures": dict(sorted(Counter(item.kind for item in heard.failures).items())),
        "failed": [Missed(**asdict(item)) for item in heard.failures[:_MOST_SPELLED_OUT]],
        "refusals": dict(sorted(Counter(item.kind for item in heard.refused).items())),
        "refused": [Missed(**asdict(item)) for item in heard.refused[:_MOST_SPELLED_OUT]],
    }


def round_record(
    plan: ServerPlan,
    state: ServerState,
    opened: OpenRound,
    heard: Heard,
    moved: Step,
    *,
    score: Score | None,
    spent: Spent,
    extra: dict[str, Any],
) -> RoundRecord:
    """Return a round's line, after `close_round` led to `state`."""
    budget = plan.schedule.budget[opened.round_index]
    return RoundRecord(
        **_attempt(opened, heard),
        round=opened.round_index,
        rule=moved.rule,
        draw=DrawSummary(**asdict(report_round(state.tally, opened.draw, moved.weights))),
        drift=moved.drift,
        num_capped=moved.num_capped,
        mean_budget=float(plan.schedule.mean_budget[opened.round_index]),
        reward=float(plan.schedule.reward[opened.round_index]),
        realised_mean_budget=float(budget[~state.has_left].mean()) if not state.has_left.all() else 0.0,
        cohort_budget=float(budget[opened.draw.clients].sum()),
        paid=float(moved.reward.sum()),
        paid_so_far=state.paid,
        update_norm=spread(moved.update_norm.tolist()),
        noise_norm=spread(moved.noise_norm.tolist()),
        step_norm=moved.step_norm,
        step_parts=StepSummary(**asdict(moved.parts)),
        accuracy=None if score is None else score.accuracy,
        loss=None if score is None else finite_or_none(score.loss),
        spent=spent,
        **extra,
    )


def trial_result(
    config: RunConfig,
    plan: ServerPlan,
    finished: Finished,
    num_tests: int,
    label_counts: list[list[int]] | None = None,
) -> TrialResult:
    """Return what a trial of one sampler and one seed came to, under the schedule of its plan."""
    is_listed = plan.num_clients <= 10_000
    tally, schedule = finished.state.tally, plan.schedule
    return TrialResult(
        sampler=config.sampling.samplers[0],
        seed=plan.seed,
        accuracy=finished.score.accuracy,
        loss=finite_or_none(finished.score.loss),
        rounds=finished.state.next_round,
        ended_by=finished.ended_by,
        spent=finished.spent,
        delta=float(config.privacy.delta),
        paid=finished.state.paid,
        game=GameSummary(
            standing=schedule.standing,
            behaviour=config.game.behaviour,
            selection=selection_of(config, plan.sampler),
            exploitability=schedule.exploitability,
            settled_by=schedule.settled_by,
            reward=schedule.reward.tolist(),
            mean_budget=schedule.mean_budget.tolist(),
        ),
        num_test=num_tests,
        num_parameters=plan.layout.num_parameters,
        num_left=int(finished.state.has_left.sum()),
        times_designed=tally.designed.tolist() if is_listed else None,
        times_drawn=tally.drawn.tolist() if is_listed else None,
        label_counts=label_counts,
        disclosure=disclosure(plan.sampler).label,
    )
