"""Privacy spent and rewards owed, in one file that survives a crash.

A charge is on the disk before anything may leave the client. A crash between the two leaves a charge without a release,
never a release without a charge: what the ledger says was spent is at least what was. Sums are of whole billionths, so
they are exact, and every answer is read from the file, so processes that share it agree.

A client's ρ adds up over all runs in the file, whatever their levels; together they hold at the weakest of these.

Rows are added and never changed, and carry a running hash that is checked when the file is opened: `_ledger_chain`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

from fedpcs.errors import BudgetExhausted, InvalidInput
from fedpcs.privacy import _ledger_chain, _ledger_file
from fedpcs.privacy import _ledger_entries as entries
from fedpcs.privacy._ledger_entries import Charge, Receipt, ReleaseKey, Spent
from fedpcs.privacy.budget import MOST_NANOS, NANOS_PER_UNIT, Rho, billionths
from fedpcs.privacy.events import Event, Family, weakest

__all__ = ["Charge", "PrivacyLedger", "Receipt", "ReleaseKey", "Spent"]

_KEY = "run = ? AND round_index = ? AND client = ?"
_EVENT_COLUMNS = "rho_nanos, level, noise, family, is_replayable"
_LIMIT = "SELECT rho_nanos FROM limits WHERE client = :client ORDER BY number DESC LIMIT 1"
_Add = Callable[..., None]


class PrivacyLedger:
    """Charges, limits and rewards in one SQLite file. Open one per process and thread, in a `with` statement.

    Guarantees:
        Once `charge` has returned, no crash undoes it. No charge takes a client past its limit, whatever other
        processes charge meanwhile. A reward is owed once and paid once.

    Example:
        >>> import tempfile
        >>> from fedpcs.privacy.events import CLIENT_LEVEL, Event
        >>> release = Event(Rho.of(0.1), CLIENT_LEVEL, "fast", Family.GAUSSIAN, is_replayable=True)
        >>> with tempfile.TemporaryDirectory() as folder, PrivacyLedger.open(f"{folder}/ledger.sqlite") as ledger:
        ...     ledger.set_limit("ada", 0.3)
        ...     receipt = ledger.charge(ReleaseKey("run", 0, "ada"), release)
        ...     print(ledger.remaining("ada"), ledger.would_exceed("ada", 0.25))
        ρ = 0.2 True
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._process_id = os.getpid()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> PrivacyLedger:
        """Open the ledger at `path`, or start one there if there is no file or an empty one. Every row is checked.

        Raises:
            InvalidInput: No file can be written there, or a newer fedpcs wrote it.
            CorruptFile: What is there is not a ledger, or is damaged. It is left as it is.
        """
        return cls(*_ledger_file.open_file(path))

    def close(self) -> None:
        """Close the file. Nothing is lost without it: every charge is already on the disk."""
        self._connection.close()

    def __enter__(self) -> PrivacyLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def charge(self, key: ReleaseKey, event: Event) -> Receipt:
        """Write down what a release costs. Only when this has returned may the release leave the client.

        A release with the same key as one before it is

        - free, if the one before was replayable and the events are equal. The noise came from a seed, so the same bits
          leave again and nobody learns more. A run that crashed is thus resumed at no cost.
        - refused, if the one before was replayable and the events differ: one key cannot stand for two releases.
        - charged again, as attempt 2, 3, and so on, if the one before was not replayable. Fresh noise over the same
          data is a second look at them, and the first may have arrived before the crash.

        Raises:
            BudgetExhausted: It would take the client past its limit. Nothing was written.
            InvalidInput: It is not an event, or not the one this key stands for.
        """
        return self.charge_many([(key, event)])[0]

    def charge_many(self, releases: Iterable[tuple[ReleaseKey, Event]]) -> tuple[Receipt, ...]:
        """Charge a whole cohort, each as `charge` does: all of them, or none if one is refused."""
        pairs = entries.checked_releases(releases)  # uses up the caller's iterable before the file is held
        with self._adding("charges") as (connection, add):
            return tuple(_charge(connection, add, key, event) for key, event in pairs)

    def set_limit(self, client: str | int, rho: Rho | float) -> None:
        """Limit what a client may spend over all runs, rounded down to a billionth. Replaces the limit before.

        A limit below what is already spent refuses every further charge.
        """
        self.set_limits([(client, rho)])

    def set_limits(self, limits: Iterable[tuple[str | int, Rho | float]]) -> None:
        """Limit several clients at once, each as `set_limit` does."""
        rows = [(entries.client_name(client), Rho.at_most(rho).nanos) for client, rho in limits]
        with self._adding("limits") as (connection, add):
            for client, nanos in rows:
                if connection.execute(_LIMIT, {"client": client}).fetchone() != (nanos,):
                    add(client, nanos)

    def limit(self, client: str | int) -> Rho | None:
        """Return what a client may spend over all runs; None if it has no limit."""
        with self._reading() as connection:
            return _balance(connection, entries.client_name(client))[1]

    def spent(self, client: str | int) -> Spent:
        """Return what a client has spent over all runs."""
        rows = self._rows(
            "SELECT level, SUM(rho_nanos), MIN(family = ?), COUNT(*) FROM charges WHERE client = ? GROUP BY level",
            (Family.GAUSSIAN.value, entries.client_name(client)),
        )
        return Spent(
            rho=Rho(sum(nanos for _, nanos, _, _ in rows)),
            level=weakest(entries.stored_level(level) for level, _, _, _ in rows),
            is_gaussian=all(is_gaussian for _, _, is_gaussian, _ in rows),
            num_releases=sum(count for _, _, _, count in rows),
        )

    def totals(self, run: str, first_round: int, end_round: int) -> dict[str, int]:
        """Return what clients spent in rounds first…end − 1 of a run, in billionths; others are not in it."""
        sql = (
            "SELECT client, SUM(rho_nanos) FROM charges WHERE run = ? AND round_index >= ? AND round_index < ? "
            "GROUP BY client"
        )
        return dict(self._rows(sql, (entries.checked_text("run", run), first_round, end_round)))

    def remaining(self, client: str | int) -> Rho | None:
        """Return what a client may still spend; None if it has no limit."""
        with self._reading() as connection:
            spent, limit = _balance(connection, entries.client_name(client))
        return None if limit is None else _room(spent, limit)

    def would_exceed(self, client: str | int, rho: Rho | float) -> bool:
        """Ask, before a client trains, whether a new release of this cost would be refused.

        The answer is of this moment; `charge` decides. It never refuses a replay, so a resumed run should charge a
        release it may have charged before, and not ask.
        """
        requested = Rho.of(rho)
        with self._reading() as connection:
            return requested > _room(*_balance(connection, entries.client_name(client)))

    def clients(self) -> tuple[str, ...]:
        """Return every client that was charged or given a limit, sorted."""
        return tuple(
            sorted(name for (name,) in self._rows("SELECT client FROM charges UNION SELECT client FROM limits"))
        )

    def charges(self, run: str | None = None, client: str | int | None = None) -> Iterator[Charge]:
        """Return the charges of a run, a client, both or all, in the order they were made."""
        return self._pages(*_wanted(run, client))

    def owe(self, key: ReleaseKey, amount: float | Fraction) -> bool:
        """Write down a reward, to the nearest billionth. Return False if it was written before.

        Raises:
            InvalidInput: The amount is negative or not a number, or another amount is owed for this release.
        """
        return self.owe_many([(key, amount)])[0]

    def owe_many(
        self, rewards: Iterable[tuple[ReleaseKey, float | Fraction]], *, keeps_owed: bool = False
    ) -> tuple[bool, ...]:
        """Write down a whole cohort's rewards, each as `owe` does: all of them, or none if one is refused.

        Args:
            rewards: What is owed for which release.
            keeps_owed: Whether an amount that is owed already stands where another is named, instead of being refused.
        """
        rows = [(key, entries.key_columns(key), round(billionths("amount", amount))) for key, amount in rewards]
        with self._adding("rewards") as (connection, add):
            return tuple(_owe(connection, add, row, keeps_owed) for row in rows)

    def owed(self, run: str | None = None, client: str | int | None = None) -> Fraction:
        """Return the exact sum of the rewards not yet paid: of a run, a client, both or all."""
        where, values = _wanted(run, client)
        unpaid = "COALESCE(SUM(CASE is_paid WHEN 0 THEN amount_nanos ELSE -amount_nanos END), 0)"
        rows = self._rows(f"SELECT {unpaid} FROM rewards WHERE TRUE{where}", values)
        return Fraction(rows[0][0], NANOS_PER_UNIT)

    def pay(self, key: ReleaseKey) -> bool:
        """Write down that a reward is paid. Return False if it was paid before: then it must not be paid again.

        Raises:
            InvalidInput: Nothing was ever owed for this release.
        """
        columns = entries.key_columns(key)
        with self._adding("rewards") as (connection, add):
            stored = connection.execute(
                f"SELECT amount_nanos, is_paid FROM rewards WHERE {_KEY} ORDER BY is_paid DESC LIMIT 1", columns
            ).fetchone()
            if stored is None:
                raise InvalidInput(f"key must be of a reward that is owed, got {key}. Owe it first.")
            amount, is_paid = stored
            if not is_paid:
                add(*columns, amount, 1)
        return not is_paid

    def num_rows(self) -> dict[str, int]:
        """Return how many charges, limits and rewards the file holds; a payment is a row of `rewards` too."""
        with self._reading() as connection:
            return _ledger_chain.num_rows(connection)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._process_id:  # SQLite's locks do not pass to a forked child; using them damages the file
            raise InvalidInput(f"ledger {self.path} was opened by another process. Open it again in this one.")
        with _ledger_file.translated(self.path):
            yield self._connection

    @contextmanager
    def _adding(self, table: str) -> Iterator[tuple[sqlite3.Connection, _Add]]:
        with (
            self._reading() as connection,
            _ledger_file.transaction(connection),
            _ledger_chain.adding(connection, table) as add,
        ):
            yield connection, add

    def _rows(self, sql: str, values: Any = ()) -> list[Any]:
        with self._reading() as connection:
            return connection.execute(sql, values).fetchall()

    def _pages(self, where: str, values: dict[str, str]) -> Iterator[Charge]:
        # A page at a time, so that a caller may charge while it reads and memory stays flat. NOT INDEXED: in the order
        # of the table, or every page would sort all that match.
        sql = (
            f"SELECT number, run, round_index, client, attempt, {_EVENT_COLUMNS} FROM charges NOT INDEXED "
            f"WHERE number > :last{where} ORDER BY number LIMIT 1000"
        )
        last = 0
        while rows := self._rows(sql, {**values, "last": last}):
            for _, run, round_index, client, attempt, *event in rows:
                yield Charge(ReleaseKey(run, round_index, client), attempt, entries.stored_event(*event))
            last = rows[-1][0]


def _charge(connection: sqlite3.Connection, add: _Add, key: ReleaseKey, event: Event) -> Receipt:
    columns = entries.key_columns(key)
    stored = connection.execute(
        f"SELECT attempt, {_EVENT_COLUMNS} FROM charges WHERE {_KEY} ORDER BY attempt DESC LIMIT 1", columns
    ).fetchone()
    attempt, before = (0, None) if stored is None else (stored[0], entries.stored_event(*stored[1:]))
    if before is not None and before.is_replayable:
        _refuse_another_event(key, before, event)
        return Receipt(key, attempt, Rho(0), is_replay=True)
    _refuse_excess(connection, columns[-1], event.rho)
    add(*columns, attempt + 1, *entries.event_columns(event))
    return Receipt(key, attempt + 1, event.rho, is_replay=False)


def _owe(
    connection: sqlite3.Connection, add: _Add, row: tuple[ReleaseKey, tuple[str, int, str], int], keeps_owed: bool
) -> bool:
    key, columns, nanos = row
    stored = connection.execute(f"SELECT amount_nanos FROM rewards WHERE {_KEY}", columns).fetchone()
    if stored is None:
        add(*columns, nanos, 0)
    elif stored != (nanos,) and not keeps_owed:
        raise InvalidInput(
            f"amount must be {stored[0] / NANOS_PER_UNIT!r}, which is owed for {key} already, got "
            f"{nanos / NANOS_PER_UNIT!r}. A release is rewarded once; correct a mistake in a later round."
        )
    return stored is None


def _refuse_another_event(key: ReleaseKey, before: Event, event: Event) -> None:
    if before != event:
        values = [(field.name, getattr(before, field.name), getattr(event, field.name)) for field in fields(before)]
        differences = [f"{name} was {old}, is {new}" for name, old, new in values if old != new]
        raise InvalidInput(
            f"event must equal the one charged for {key}: {'; '.join(differences)}. Its noise would come from the same "
            "seed, and the two releases together would show more than either. Give the changed run a name of its own."
        )


def _refuse_excess(connection: sqlite3.Connection, client: str, requested: Rho) -> None:
    spent, limit = _balance(connection, client)
    if requested <= (room := _room(spent, limit)):
        return
    if limit is None:
        raise InvalidInput(f"client {client!r} has spent {spent}; {requested} more is beyond what a ledger can count.")
    raise BudgetExhausted(
        f"client {client!r} has spent {spent} of its limit {limit}; {room} remains and this release needs {requested}. "
        "Leave the client out, spend less on it, or have its limit raised (`set_limit`). Nothing was written.",
        remaining=float(room),
        requested=float(requested),
    )


def _balance(connection: sqlite3.Connection, client: str) -> tuple[Rho, Rho | None]:
    """Return what a client has spent and its limit, both of one moment."""
    spent, limit = connection.execute(
        f"SELECT (SELECT COALESCE(SUM(rho_nanos), 0) FROM charges WHERE client = :client), ({_LIMIT})",
        {"client": client},
    ).fetchone()
    return Rho(spent), None if limit is None else Rho(limit)


def _room(spent: Rho, limit: Rho | None) -> Rho:
    """Return what may still be charged; without a limit, as much as an SQLite integer can count."""
    return Rho(max((MOST_NANOS if limit is None else limit.nanos) - spent.nanos, 0))


def _wanted(run: str | None, client: str | int | None) -> tuple[str, dict[str, str]]:
    """Return the end of a WHERE clause for this run and client, where given, and its values."""
    named = {} if run is None else {"run": entries.checked_text("run", run)}
    values = named if client is None else {**named, "client": entries.client_name(client)}
    return "".join(f" AND {column} = :{column}" for column in values), values
