"""What a ledger takes and gives back, and the checks on it: keys, receipts, lines, totals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fedpcs import _validate
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.privacy.budget import Rho
from fedpcs.privacy.events import Event, Family, Level
from fedpcs.privacy.modes import level_named


@dataclass(frozen=True)
class ReleaseKey:
    """Which release: what one client sends in one round of one run.

    Attributes:
        run: Name of the run. It stands for all that decides the run's bits (configuration, data, seed): the same noise
            over another input would give the difference of the two inputs away.
        round_index: Round t, zero or above.
        client: Its number or name. The file holds it as text, so 7 and "7" are one client.
    """

    run: str
    round_index: int
    client: str | int

    def __post_init__(self) -> None:
        checked_text("run", self.run)
        _validate.integer("round_index", self.round_index, low=0, high=2**63 - 1)
        client_name(self.client)


@dataclass(frozen=True)
class Receipt:
    """Proof that a release may leave.

    Attributes:
        key: Which release.
        attempt: How many times it has been charged, this one included.
        rho: What this charge added to the client's total: nothing if it is a replay.
        is_replay: The same bits were charged before.
    """

    key: ReleaseKey
    attempt: int
    rho: Rho
    is_replay: bool


@dataclass(frozen=True)
class Charge:
    """A line of the ledger: which release, which attempt at it, what it cost whom."""

    key: ReleaseKey
    attempt: int
    event: Event


@dataclass(frozen=True)
class Spent:
    """What a client has spent over all runs.

    Attributes:
        rho: The exact sum of its charges.
        level: The weakest level among them, at which all hold together; None before the first.
        is_gaussian: Every charge was for continuous Gaussian noise, so that the exact ε holds.
        num_releases: How many charges.
    """

    rho: Rho
    level: Level | None
    is_gaussian: bool
    num_releases: int

    def epsilon(self, delta: float) -> float:
        """Return the ε these charges come to at this δ: exact if all noise was Gaussian, tight otherwise."""
        # Imported here because it brings SciPy, which a client that only charges need not wait for.
        from fedpcs.privacy.conversion import to_epsilon

        return to_epsilon(self.rho, delta, "exact" if self.is_gaussian else "tight")


def checked_text(name: str, value: Any) -> str:
    """Return `value` if it is text that can be stored and shown."""
    if not (isinstance(value, str) and value.strip() and value.isprintable()):
        raise InvalidInput(
            f"{name} must be a printable text that is not empty, got {value!r}. It names what is charged."
        )
    return value


def client_name(client: Any) -> str:
    """Return a client's number or name as the file holds it."""
    if isinstance(client, str):
        return checked_text("client", client)
    return str(
        _validate.integer("client", client, low=0, high=2**63 - 1, remedy="A client is known by a number or a text.")
    )


def checked_releases(releases: Any) -> list[tuple[ReleaseKey, Event]]:
    """Return pairs of a key and an event as a list, each of them fit to be charged."""
    pairs = list(releases) if isinstance(releases, Iterable) else [releases]
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise InvalidInput(f"releases must be pairs of a ReleaseKey and an Event, got {pair!r}. Pair them up.")
        key_columns(pair[0])
        event_columns(pair[1])
    return pairs


def key_columns(key: Any) -> tuple[str, int, str]:
    """Return run, round and client as the file holds them."""
    if not isinstance(key, ReleaseKey):
        raise InvalidInput(f"key must be a ReleaseKey, got {key!r}. It says which release is meant.")
    return str(key.run), int(key.round_index), client_name(key.client)


def event_columns(event: Any) -> tuple[int, str, str, str, int]:
    """Return ρ in billionths, level, noise, family and whether it can be replayed, as the file holds them.

    What is not known to be an event is refused: a charge for it would be a guess.
    """
    if not isinstance(event, Event) or level_named(event.level.name) != event.level:
        raise InvalidInput(f"event must be an Event at the level of a privacy mode, got {event!r}.")
    noise = str(checked_text("noise", event.noise))
    return event.rho.nanos, event.level.name, noise, event.family.value, int(event.is_replayable)


def stored_event(rho_nanos: int, level: str, noise: str, family: str, is_replayable: int) -> Event:
    """Return the event these columns came from."""
    try:
        return Event(Rho(rho_nanos), stored_level(level), noise, Family(family), bool(is_replayable))
    except ValueError as error:
        raise CorruptFile(
            f"the ledger holds a charge no fedpcs writes: {error}. Put back a copy from before."
        ) from error


def stored_level(name: str) -> Level:
    """Return the level of this name."""
    if (found := level_named(name)) is None:
        raise CorruptFile(f"the ledger holds a charge at the unknown level {name!r}. Put back a copy from before.")
    return found
