"""What a release costs and whom it protects: events, and how they compose.

An event describes a release completely enough to account for it, and holds nothing of the data. Events of different
levels speak of different neighbours; together they are only as strong as the weakest of them (`weakest`).

ρ adds up over releases (Bun and Steinke 2016, Lemma 2.3): `compose`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from fedpcs.errors import InvalidInput
from fedpcs.privacy.budget import Rho, total

# Sources whose noise nobody can repeat and no low-order bit can leak through.
NOISE_WITH_GUARANTEE = ("secure", "exact")


class Relation(StrEnum):
    """Which two data sets of a client must look alike. The number of its records is public in all of them."""

    ANY_TWO = "any two data sets of the same size"
    REPLACE_ONE = "replacing one record"


class Family(StrEnum):
    """The law of the noise, which decides which (ε, δ) may be quoted."""

    GAUSSIAN = "gaussian"
    DISCRETE_GAUSSIAN = "discrete-gaussian"


@dataclass(frozen=True)
class Level:
    """Whom a release protects, and against which neighbours.

    Attributes:
        name: As the ledger holds it: that of the privacy mode.
        unit: Whose data may differ: all of a client's, or one record.
        relation: How two data sets that look alike may differ.
        caveat: Why nothing is proven; empty where it is.
    """

    name: str
    unit: Literal["client", "record"]
    relation: Relation
    caveat: str = ""

    def __str__(self) -> str:
        return self.name

    @property
    def is_proven(self) -> bool:
        """Whether the level is a guarantee at all."""
        return not self.caveat


CLIENT_LEVEL = Level("client", "client", Relation.ANY_TWO)
RECORD_LEVEL = Level("record", "record", Relation.REPLACE_ONE)
_KINDS = (("rho", Rho), ("level", Level), ("noise", str), ("family", Family), ("is_replayable", bool))


@dataclass(frozen=True)
class Event:
    """One release that touches all a client's records, as accounting sees it.

    Attributes:
        rho: What it costs.
        level: Whom it protects against which neighbours.
        noise: Name of the noise source.
        family: Law of the noise.
        is_replayable: The noise comes from a seed, so that drawing it again releases the same bits and nothing new.
    """

    rho: Rho
    level: Level
    noise: str
    family: Family
    is_replayable: bool = False

    def __post_init__(self) -> None:
        for name, kind in _KINDS:
            if not isinstance(value := getattr(self, name), kind):
                raise InvalidInput(f"{name} must be a {kind.__name__}, got {value!r}.")

    @property
    def promise(self) -> str:
        """The sentence a report may print about this release, and no more.

        Example:
            >>> Event(Rho.of(0.5), CLIENT_LEVEL, "secure", Family.GAUSSIAN).promise
            'guarantee holds: ρ = 0.5 for any two data sets of the same size of a client (noise secure)'
        """
        if not self.level.is_proven:
            return f"no guarantee: {self.level.caveat}"
        if self.is_replayable or self.noise not in NOISE_WITH_GUARANTEE:
            return f"simulation (noise {self.noise}): no guarantee"
        return f"guarantee holds: {self.rho} for {self.level.relation} of a client (noise {self.noise})"


def compose(events: Iterable[Event]) -> Rho:
    """Return what releases of one client cost together, exactly and whatever their order.

    Example:
        >>> release = Event(Rho.of(0.1), CLIENT_LEVEL, "secure", Family.GAUSSIAN)
        >>> float(compose([release] * 10))
        1.0
    """
    return total(event.rho for event in events)


def weakest(levels: Iterable[Level]) -> Level | None:
    """Return the level at which all of these hold together; None if there are none.

    Protecting all a client holds protects each record too. A level without a proof protects nothing.
    """
    return min(levels, key=lambda level: (level.is_proven, level.unit == "client"), default=None)
