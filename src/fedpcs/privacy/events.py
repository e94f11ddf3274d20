"""What a release costs and whom it protects: events, and how they compose.

An event describes a release completely enough to account for it, and holds nothing of the data. Its level is part of
its type: `Event[ClientLevel]` and `Event[RecordLevel]` speak of different neighbours, and their sum is only ever as
strong as the weaker of the two (`weakest`).

Composition. ρ adds up over releases (Bun and Steinke 2016, Lemma 2.3): `compose`. Steps over disjoint batches are
cheaper: a record sits in one batch of an epoch, so the epoch costs it what that batch costs (the neighbour differs in
one record of one batch). `compose_steps` sums within a batch, takes the dearest batch of an epoch, sums over epochs.
It is for the steps of one local training: batches of the next are drawn anew, and their numbers mean other records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Generic, TypeVar

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho, total

# Sources whose noise nobody can repeat and no low-order bit can leak through.
NOISE_WITH_GUARANTEE = ("secure", "exact")


class Relation(StrEnum):
    """Which two data sets of a client must look alike. The number of its records is public in all of them."""

    ANY_TWO = "any two data sets of the same size"
    REPLACE_ONE = "replacing one record"
    ADD_REMOVE = "adding or removing one record"


class Family(StrEnum):
    """The law of the noise, which decides which (ε, δ) may be quoted."""

    GAUSSIAN = "gaussian"
    DISCRETE_GAUSSIAN = "discrete-gaussian"


@dataclass(frozen=True)
class ClientLevel:
    """Everything a client holds is protected but the number of its records: releases look alike whatever they are."""

    name: ClassVar[str] = "client"
    unit: ClassVar[str] = "client"
    relation: ClassVar[Relation] = Relation.ANY_TWO
    is_proven: ClassVar[bool] = True


@dataclass(frozen=True)
class RecordLevel:
    """Each record is protected: a client's releases look alike when one of its records is replaced."""

    name: ClassVar[str] = "record"
    unit: ClassVar[str] = "record"
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    is_proven: ClassVar[bool] = True


@dataclass(frozen=True)
class PaperLevel:
    """The paper's calibration: it speaks of records, and is proven for one full-batch local step alone."""

    name: ClassVar[str] = "paper"
    unit: ClassVar[str] = "record"
    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    is_proven: ClassVar[bool] = False


Level = ClientLevel | RecordLevel | PaperLevel
LevelT = TypeVar("LevelT", ClientLevel, RecordLevel, PaperLevel, covariant=True)

# Strongest first: protecting all a client holds protects each record; a claim without a proof protects nothing.
LEVELS: tuple[Level, ...] = (ClientLevel(), RecordLevel(), PaperLevel())
_LEVEL_TYPES = tuple(type(level) for level in LEVELS)


@dataclass(frozen=True)
class Event(Generic[LevelT]):
    """One release that touches all a client's records, as accounting sees it.

    Attributes:
        rho: What it costs.
        level: Whom it protects against which neighbours.
        noise: Name of the noise source.
        family: Law of the noise.
        is_replayable: The noise comes from a seed, so that drawing it again releases the same bits and nothing new.
    """

    rho: Rho
    level: LevelT
    noise: str
    family: Family
    is_replayable: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rho, Rho):
            raise InvalidInput(f"rho must be a Rho, got {self.rho!r}. Read a number as a budget with Rho.of.")
        if type(self.level) not in _LEVEL_TYPES:
            raise InvalidInput(f"level must be one of {[level.name for level in LEVELS]}, got {self.level!r}.")
        if not isinstance(self.noise, str):
            raise InvalidInput(f"noise must be the name of a source, got {self.noise!r}.")
        if not isinstance(self.family, Family):
            raise InvalidInput(f"family must be a Family, got {self.family!r}.")
        if not isinstance(self.is_replayable, bool):
            raise InvalidInput(f"is_replayable must be True or False, got {self.is_replayable!r}.")

    @property
    def promise(self) -> str:
        """The sentence a report may print about this release, and no more.

        Example:
            >>> Event(Rho.of(0.5), ClientLevel(), "secure", Family.GAUSSIAN).promise
            'guarantee holds: ρ = 0.5 for any two data sets of the same size of a client (noise secure)'
        """
        if not self.level.is_proven:
            return "the paper's calibration; not a proven guarantee for more than one local step"
        if self.is_replayable or self.noise not in NOISE_WITH_GUARANTEE:
            return f"simulation (noise {self.noise}): no guarantee"
        return f"guarantee holds: {self.rho} for {self.level.relation} of a client (noise {self.noise})"


@dataclass(frozen=True)
class Batch:
    """Where a step stands in its local training: batches of one epoch share no record."""

    epoch: int
    index: int

    def __post_init__(self) -> None:
        _validate.integer("epoch", self.epoch, low=0)
        _validate.integer("index", self.index, low=0)


@dataclass(frozen=True)
class Step:
    """One noisy step of a local training: what it costs the records of its batch."""

    event: Event[RecordLevel]
    batch: Batch


def compose(events: Iterable[Event[LevelT]]) -> Rho:
    """Return what releases of one client cost together, exactly and whatever their order.

    Example:
        >>> release = Event(Rho.of(0.1), ClientLevel(), "secure", Family.GAUSSIAN)
        >>> float(compose([release] * 10))
        1.0
    """
    return total(event.rho for event in events)


def compose_steps(steps: Iterable[Step]) -> Rho:
    """Return what the steps of one local training cost each record at most.

    Example:
        >>> event = Event(Rho.of(0.25), RecordLevel(), "secure", Family.GAUSSIAN)
        >>> disjoint = [Step(event, Batch(epoch=0, index=0)), Step(event, Batch(epoch=0, index=1))]
        >>> float(compose_steps(disjoint)), float(compose_steps(disjoint[:1] * 2))
        (0.25, 0.5)
    """
    epochs: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for step in steps:
        epochs[step.batch.epoch][step.batch.index] += step.event.rho.nanos
    return total(Rho(max(batches.values())) for batches in epochs.values())


def weakest(levels: Iterable[Level]) -> Level | None:
    """Return the level at which all of these hold together; None if there are none."""
    names = {level.name for level in levels}
    found = [level for level in LEVELS if level.name in names]
    return found[-1] if found else None
