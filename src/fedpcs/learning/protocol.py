"""What server and clients say to each other: a task, and a report or a failure. Nothing else crosses.

The round is two pure sides. `fedpcs.learning.server` announces, draws, admits, aggregates and pays; it sees what
clients sent. `fedpcs.learning.client` trains, clips and perturbs; it sees its own data and what the server announced.
Every engine, in one process, in several or across a network, carries these same values between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import Layout, Values
from fedpcs.privacy.budget import Rho

# Computed from a client's records and sent beside its update, only where a sampler learns from it.
MEASURES = ("loss", "loss_energy", "gradient_variance")

FailureKind = Literal["raised", "died", "deadline", "memory", "message", "device", "absent"]


@dataclass(frozen=True)
class Task:
    """What the server asks one drawn client to do.

    Attributes:
        run: Name of the run.
        round_index: t.
        client: Its number.
        nonce: Known to the server and this client alone: a reply without it answers something else.
        budget: ρ of the release, as contracted; None where nothing is perturbed.
        measures: Which of `MEASURES` to send beside the update.
        max_samples: Most records to train on: the first ones of more are taken; None: all of them.
    """

    run: str
    round_index: int
    client: int
    nonce: str
    budget: Rho | None = None
    measures: tuple[str, ...] = ()
    max_samples: int | None = None


def budget_of(task: Task) -> Rho:
    """Return a task's budget.

    Raises:
        InvalidInput: It names none.
    """
    if task.budget is None:
        raise InvalidInput(f"task of client {task.client} must name a budget, got none. Noise is matched to it.")
    return task.budget


@dataclass(frozen=True)
class ClientReport:
    """A drawn client's answer: its update and what it says of itself. Nothing in it is believed before `admit`.

    Attributes:
        run: As in the task.
        round_index: As in the task.
        client: As in the task.
        nonce: As in the task.
        budget: ρ it spent; None where nothing was perturbed.
        num_samples: How many records it trained on.
        layout: Names and shapes of the parameters in `values`.
        values: (parameters,) w(t) − w_i, clipped and perturbed.
        measures: What the task asked for beside it.
    """

    run: str
    round_index: int
    client: int
    nonce: str
    budget: Rho | None
    num_samples: int
    layout: Layout
    values: Values
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ClientFailure:
    """A drawn client that sent no update: a value, not an exception, because a round goes on without it.

    Attributes:
        round_index: t.
        client: Its number.
        kind: What happened.
        reason: In words.
    """

    round_index: int
    client: int
    kind: FailureKind
    reason: str


Reply = ClientReport | ClientFailure
