"""The running hash over a ledger's rows: how rows are added, and how damage is found.

Rows are only ever added. A row of table T with number n, which counts from 1, carries

    hash(n) = SHA-256(hash(n − 1) + its other columns as the ASCII text of a tuple),    hash(0) = SHA-256("T")

and table `heads` holds the last number and hash of each table, written in the transaction that adds the rows.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fedpcs._chain import link

TABLES = ("charges", "limits", "rewards")


def begin(connection: sqlite3.Connection) -> None:
    """Write the heads of tables that have no rows yet."""
    connection.executemany("INSERT INTO heads VALUES (?, 0, ?)", [(table, _start(table)) for table in TABLES])


@contextmanager
def adding(connection: sqlite3.Connection, table: str) -> Iterator[Callable[..., None]]:
    """Give a function that adds a row, of all columns but number and hash, within a transaction that may write."""
    first, last = connection.execute("SELECT num_rows, hash FROM heads WHERE name = ?", (table,)).fetchone()
    count = first

    def add(*columns: str | int) -> None:
        nonlocal count, last
        row = (count + 1, *columns)
        last = link(last, _text(row))
        connection.execute(f"INSERT INTO {table} VALUES (?{', ?' * len(row)})", (*row, last))
        count += 1

    yield add
    if count > first:
        connection.execute("UPDATE heads SET num_rows = ?, hash = ? WHERE name = ?", (count, last, table))


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return the first thing that is not as it was written; None if every row is. Within one transaction."""
    heads = {name: (count, last) for name, count, last in connection.execute("SELECT * FROM heads")}
    if heads.keys() != set(TABLES):
        return "its table of heads is not whole"
    for table in TABLES:
        count, last = 0, _start(table)
        for row in connection.execute(f"SELECT * FROM {table} NOT INDEXED ORDER BY number"):
            count += 1
            last = link(last, _text(row[:-1]))
            if row[0] != count or row[-1] != last:
                return f"row {count} of {table} was changed, removed, added or moved; rows before it are whole"
        if heads[table] != (count, last):
            return f"rows at the end of {table} are missing, added or changed: {count} there, {heads[table][0]} written"
    return None


def num_rows(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each table has."""
    return dict(connection.execute("SELECT name, num_rows FROM heads"))


def _start(table: str) -> bytes:
    return hashlib.sha256(table.encode()).digest()


def _text(row: tuple[Any, ...]) -> bytes:
    # Two rows that differ, be it in type, never have the same text; it is ASCII, so no version of Unicode changes it.
    return ascii(row).encode()
