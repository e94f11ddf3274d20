"""What the server knows: its plan, its state between rounds, and a round from its draw to its step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.game.schedule import Schedule
from fedpcs.learning.admission import Admitted, Refusal
from fedpcs.learning.aggregate import StepParts
from fedpcs.learning.client_plan import ClientPlan
from fedpcs.learning.layout import Layout, Values
from fedpcs.learning.protocol import ClientFailure, Task
from fedpcs.privacy.budget import Rho
from fedpcs.sampling import Draw, Sampler, Tally, View

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
SeenArray = NDArray[np.void]


@dataclass(frozen=True)
class ServerPlan:
    """How the server runs a federation; fixed before the first round.

    Attributes:
        run: Name of the run, in every task and every line of the ledger.
        seed: Of the draws.
        client: How clients train, as announced to them.
        layout: The model's.
        num_samples: (clients,) |D_i| on record.
        sampler: Who is drawn.
        rule: How updates are weighed; `default`: `precision`, or `normalised` where there is no noise.
        schedule: What was announced, and what each client has agreed to spend if drawn.
        limit: Most ρ any client may spend in this run; None: no limit.
        momentum: Of the server's step, in [0, 1).
        rate: Of the server's step.
        averaging: Weight of the past in the running mean of models that is evaluated; 0: the last model itself.
        outlier_factor: Without clipping, updates longer than this many times the round's median are refused.
        quorum: Least share of the cohort that must be heard.
        label_counts: (clients, classes), for a sampler that reads them; None if none does.
        weight_cap: Most a weight may exceed that of uniform draws by, as a factor; None: no cap.
        by_design: Whether rule `precision` lets the heard speak for the others in proportion to their expansion.
        max_samples: Most records a client may train on, told it with every task; None: all it has.
        largest_weight: Most one client may weigh, as a share of a round's weights; None: no cap.
    """

    run: str
    seed: int
    client: ClientPlan
    layout: Layout
    num_samples: IntArray
    sampler: Sampler
    rule: str
    schedule: Schedule
    limit: Rho | None = None
    momentum: float = 0.0
    rate: float = 1.0
    averaging: float = 0.0
    outlier_factor: float = 10.0
    quorum: float = 0.5
    label_counts: FloatArray | None = None
    weight_cap: float | None = None
    by_design: bool = False
    max_samples: int | None = None
    largest_weight: float | None = None

    @property
    def num_clients(self) -> int:
        """N."""
        return int(self.num_samples.size)

    @property
    def num_rounds(self) -> int:
        """T + 1."""
        return self.schedule.num_rounds


@dataclass(frozen=True)
class ServerState:
    """All that changes from round to round; a run resumed from it goes on as if it had never stopped.

    Attributes:
        next_round: The first round not yet done.
        parameters: (parameters,) float32, the model.
        momentum: (parameters,) float64, the server's running direction; empty without momentum.
        average: (parameters,) float64, running mean of models; empty without averaging.
        memory: What the sampler has learned.
        tally: Who was drawn and heard how often.
        spent: (clients,) billionths of ρ, as the ledger has them.
        has_left: (clients,) who cannot afford another release.
        paid: What has been owed to clients so far.
        seen: (updates,) what tells the updates that counted, whose they were and of which round.
    """

    next_round: int
    parameters: Values
    momentum: FloatArray
    average: FloatArray
    memory: Mapping[str, FloatArray]
    tally: Tally
    spent: IntArray
    has_left: BoolArray
    paid: float
    seen: SeenArray

    def model(self, plan: ServerPlan) -> Values:
        """Return the parameters to evaluate and to hand out: the running mean if there is one."""
        if plan.averaging == 0.0 or self.next_round == 0:
            return self.parameters
        # The running mean started at zero; this takes its missing weight out (as in Kingma and Ba 2015, Section 3).
        return (self.average / (1.0 - plan.averaging**self.next_round)).astype(np.float32)


@dataclass(frozen=True)
class OpenRound:
    """A round that has been announced and drawn, before anyone has trained.

    Attributes:
        round_index: t.
        attempt: 0, then 1, 2, … if a round had to be drawn again.
        view: What the draw was made from.
        draw: The cohort.
        tasks: One for each client drawn, in client order.
    """

    round_index: int
    attempt: int
    view: View
    draw: Draw
    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Heard:
    """What came back from a cohort.

    Attributes:
        admitted: By client, ascending.
        refused: Reports that were not.
        failures: Clients that sent none.
    """

    admitted: tuple[Admitted, ...]
    refused: tuple[Refusal, ...]
    failures: tuple[ClientFailure, ...]

    @property
    def clients(self) -> IntArray:
        """Whose updates count."""
        return np.array([item.report.client for item in self.admitted], dtype=np.int64)


@dataclass(frozen=True)
class Step:
    """What a round did to the model.

    Attributes:
        rule: The weights' rule.
        weights: (heard,).
        drift: δ² as estimated, for the rule `precision`; None otherwise.
        update_norm: (heard,) norms as they arrived.
        noise_norm: (heard,) √(d·σ²): what of that is noise, on average.
        step_norm: Norm of the server's step.
        parts: What the weighted sum of updates is made of.
        reward: (heard,) what each is owed.
        num_capped: How many weights a cap cut; None without one.
    """

    rule: str
    weights: FloatArray
    drift: float | None
    update_norm: FloatArray
    noise_norm: FloatArray
    step_norm: float
    parts: StepParts
    reward: FloatArray
    num_capped: int | None = None
