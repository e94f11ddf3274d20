"""What the files of a trial and of a study hold, as typed values, checked when they are written and when they are read.

Bounds are far beyond what any run writes. They keep sums and arrays made of the numbers within what floats and memory
can hold, whoever wrote the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from fedpcs._files import NEW_RUN, read_object
from fedpcs._keys import first_problem
from fedpcs.errors import CorruptFile

_Amount = Annotated[float, Field(ge=0.0, le=1e100)]
_Number = Annotated[float, Field(ge=-1e100, le=1e100)]
_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Count = Annotated[int, Field(ge=0, le=10**15)]
_Client = Annotated[int, Field(ge=0, lt=10_000_000)]
_Round = Annotated[int, Field(ge=0, le=100_000)]


class Record(BaseModel):
    """What all values in files have in common: they cannot be changed, and keys of other versions are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, allow_inf_nan=False)


Kind = TypeVar("Kind", bound=Record)


class Spread(Record):
    """Least, median and greatest over clients; of an even number the median is the mean of the two in the middle."""

    minimum: _Amount
    median: _Amount
    maximum: _Amount


class Spent(Record):
    """What clients have spent so far, over those that were ever charged.

    Attributes:
        rho: Spread of the totals.
        epsilon: The same at the run's δ.
        num_clients: How many were ever charged.
    """

    rho: Spread
    epsilon: Spread
    num_clients: _Count


class Missed(Record):
    """A client that was drawn and not heard, or an update that was refused.

    Attributes:
        round_index: The round.
        client: Its number; −1 of a stranger.
        kind: What happened.
        reason: In words.
    """

    round_index: _Round
    client: int
    kind: str
    reason: str


class Attempt(Record):
    """Who was drawn in an attempt at a round, who was heard, and why the others were not; counts are by kind."""

    attempt: _Count
    cohort: list[_Client]
    heard: list[_Client]
    failures: dict[str, _Count]
    failed: list[Missed] = []
    refusals: dict[str, _Count]
    refused: list[Missed] = []


class DrawSummary(Record):
    """A round's draw and weights in a few numbers: `fedpcs.sampling.tally.RoundReport` says what each is."""

    cohort_size: _Count
    num_heard: _Count
    expected_cohort_size: _Amount | None
    effective_sample_size: _Amount
    largest_weight: _Amount
    weight_sum: _Amount
    inclusion_gap: _Number | None
    inclusion_score: _Amount | None
    answer_score: _Amount | None
    evenness: _Amount
    label: str


class StepSummary(Record):
    """What a step of the server is made of: `fedpcs.learning.aggregate.StepParts` says what each is."""

    signal: _Amount
    spread: _Amount
    noise: _Amount


class RoundRecord(Attempt):
    """A line of a trial's log, `rounds.jsonl`: what a round did, whatever the machine or the hour.

    Attributes:
        round: Counted from 0.
        rule: The weights' rule.
        draw: The draw in numbers.
        drift: δ² as estimated for the rule `precision`.
        num_capped: How many weights a cap cut; None without one.
        mean_budget: φ(t) as ρ, as announced.
        reward: R_t for one unit of budget.
        realised_mean_budget: Of clients that have not left.
        cohort_budget: Sum over the clients drawn.
        paid: In this round.
        paid_so_far: In all rounds up to this one.
        update_norm: Of what arrived.
        noise_norm: What of that is noise, on average.
        step_norm: Of the server's step.
        step_parts: What the step is made of.
        accuracy: After the round; None where it was not measured.
        loss: Likewise; None too if it is no finite number.
        spent: So far.
        left: Clients that could not afford another release, from this round on.
        given_up: Attempts without a quorum.
        replanned: What became of the game that was solved anew; None where it was not.
        because: Why there was no new solution.
        exploitability: Of the new solution.
        budget_drift: Of a deployment: how far clients' budgets are from what was announced.
        announced_anew: How many times terms were announced before this round.
        greatest_drift: Over the rounds that remain, after that.
        unsolved: Why no new terms were found.
    """

    round: _Round
    rule: str
    draw: DrawSummary
    drift: _Number | None
    num_capped: _Count | None
    mean_budget: _Amount
    reward: _Amount
    realised_mean_budget: _Amount
    cohort_budget: _Amount
    paid: _Amount
    paid_so_far: _Amount
    update_norm: Spread
    noise_norm: Spread
    step_norm: _Amount
    step_parts: StepSummary
    accuracy: _Share | None
    loss: _Number | None
    spent: Spent
    left: list[_Client]
    given_up: list[Attempt] = []
    replanned: str | None = None
    because: str | None = None
    exploitability: _Number | None = None
    budget_drift: _Number | None = None
    announced_anew: _Count | None = None
    greatest_drift: _Number | None = None
    unsolved: str | None = None


class GameSummary(Record):
    """The game a trial's clients played.

    Attributes:
        standing: Whether budgets are a certified equilibrium, or nobody played.
        behaviour: How clients behaved.
        selection: How they believed to be drawn.
        exploitability: Mean gain by deviating over mean utility; None where nobody played.
        settled_by: How the mean field came to rest.
        reward: (rounds,) R_t.
        mean_budget: (rounds,) φ(t) as ρ.
    """

    standing: Literal["converged", "not-played"]
    behaviour: Literal["rational", "static", "selfish", "raised"]
    selection: str
    exploitability: _Number | None
    settled_by: str
    reward: list[_Amount]
    mean_budget: list[_Amount]


class TrialResult(Record):
    """What a trial came to, its `result.json`.

    Attributes:
        sampler: Who drew.
        seed: Of all draws.
        accuracy: Of the model it leaves.
        loss: Likewise; None if it is no finite number.
        rounds: How many were done.
        ended_by: "rounds", or "budget" if nobody could afford another round.
        spent: By clients.
        delta: δ of the ε.
        paid: To all clients in all rounds.
        game: What they played.
        num_test: Records the accuracy is of.
        num_parameters: Of the model.
        num_left: Clients that had left.
        times_designed: (clients,) Σ π over rounds; None of a population too large to list.
        times_drawn: (clients,) how often each was drawn, likewise.
        label_counts: (clients, classes) records, likewise.
        disclosure: What the sampler reads of clients without noise; empty if nothing.
    """

    sampler: str
    seed: _Count
    accuracy: _Share
    loss: _Number | None
    rounds: _Round
    ended_by: str
    spent: Spent
    delta: _Share
    paid: _Amount
    game: GameSummary
    num_test: _Count = Field(ge=1)
    num_parameters: _Count = Field(ge=1)
    num_left: _Count
    times_designed: list[_Amount] | None = None
    times_drawn: list[_Amount] | None = None
    label_counts: list[list[_Count]] | None = None
    disclosure: str


class StudyResult(Record):
    """What a study came to, its `result.json`: it is written last, so a study that has it is done."""

    name: str
    trials: list[TrialResult]
    is_exhausted: bool


class DataIdentity(Record):
    """Which data a trial read; a deployment's server reads test records only."""

    name: str
    checksum: str
    num_train: _Count | None = None
    num_test: _Count
    evaluated_on: str


class Forced(Record):
    """A time at which a trial went on by force, and what was not as before."""

    at: str
    differences: list[str]


class Manifest(Record):
    """What a trial was started with: what it computes, from what, with which code.

    Attributes:
        config: The configuration.
        data: The data set.
        data_dir: Where it lay.
        code: Digest of fedpcs's own code.
        own_code: Digests of the user's code, by name.
        libraries: Versions, by name.
        python: Version of Python.
        machine: Kind of machine.
        started: When, in UTC.
        forced: Times at which it went on though something was not as before.
        notes: What whoever reads the results must know.
    """

    config: dict[str, Any]
    data: DataIdentity
    data_dir: str | None = None
    code: str
    own_code: dict[str, str]
    libraries: dict[str, str]
    python: str
    machine: str
    started: str
    forced: list[Forced] = []
    notes: list[str] = []


def checked(kind: type[Kind], value: Any, where: str, remedy: str = NEW_RUN) -> Kind:
    """Return a value of a file as what it should be.

    Raises:
        CorruptFile: Something is missing, or of another type; says what, and the remedy.
    """
    if not isinstance(value, dict):
        raise CorruptFile(f"{where}: holds no object. {remedy}")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise CorruptFile(f"{where}: {first_problem(error, kind)} {remedy}") from None


def read_record(kind: type[Kind], path: Path, remedy: str = NEW_RUN) -> Kind:
    """Read a JSON file that holds one record.

    Raises:
        CorruptFile: It is missing, damaged, or holds something else.
    """
    return checked(kind, read_object(path, remedy=remedy), str(path), remedy)
