"""The file of a ledger: made whole or not at all, recognised before it is touched, and its failures put in words.

It is an SQLite database with a write-ahead log. While a ledger is open, or after a crash, part of it stands in the file
beside it whose name ends in `-wal`: copy or move both or neither. It belongs on a local disk, since SQLite's locks do
not hold on network folders.
"""

from __future__ import annotations

import functools
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.privacy import _ledger_chain, _ledger_log

BUSY_SECONDS = 30.0
_APPLICATION_ID = int.from_bytes(b"FPCS", "big")
_VERSION = 2
_STORED_VERSION = _VERSION << 16 | _VERSION  # twice, so that a flipped bit of it is not a newer version
_HEADER_BYTES = 100
# The checks repeat what Python has checked, so that `integrity_check` also sees values no ledger writes. No STRICT
# tables: they need SQLite 3.37, and systems in service carry 3.34.
_SCHEMA = f"""
CREATE TABLE charges (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    round_index INTEGER NOT NULL CHECK (round_index >= 0),
    client TEXT NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 1),
    rho_nanos INTEGER NOT NULL CHECK (typeof(rho_nanos) = 'integer' AND rho_nanos >= 0),
    level TEXT NOT NULL,
    noise TEXT NOT NULL,
    family TEXT NOT NULL,
    is_replayable INTEGER NOT NULL CHECK (is_replayable IN (0, 1)),
    hash BLOB NOT NULL,
    UNIQUE (run, round_index, client, attempt)
);
-- Holds all that a client's total needs: a charge reads that client's entries here and no other row.
CREATE INDEX charges_of_client ON charges (client, level, family, rho_nanos);
-- The last row of a client holds.
CREATE TABLE limits (
    number INTEGER PRIMARY KEY,
    client TEXT NOT NULL,
    rho_nanos INTEGER NOT NULL CHECK (typeof(rho_nanos) = 'integer' AND rho_nanos >= 0),
    hash BLOB NOT NULL
);
CREATE INDEX limits_of_client ON limits (client);
-- A reward that is owed, and that it is paid, are a row each.
CREATE TABLE rewards (
    number INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    round_index INTEGER NOT NULL CHECK (round_index >= 0),
    client TEXT NOT NULL,
    amount_nanos INTEGER NOT NULL CHECK (typeof(amount_nanos) = 'integer' AND amount_nanos >= 0),
    is_paid INTEGER NOT NULL CHECK (is_paid IN (0, 1)),
    hash BLOB NOT NULL,
    UNIQUE (client, run, round_index, is_paid)
);
-- The last number and hash of each table.
CREATE TABLE heads (
    name TEXT PRIMARY KEY NOT NULL,
    num_rows INTEGER NOT NULL,
    hash BLOB NOT NULL
) WITHOUT ROWID;
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_STORED_VERSION};
"""

_REMEDY = "Give a file name in an existing, writable folder."
_DAMAGED = (
    "Nothing was written to it. Put back a copy from before the damage, together with its -wal file if it has one."
)
_FAILURES: dict[int, tuple[type[FedpcsError], str]] = {
    sqlite3.SQLITE_NOTADB: (CorruptFile, f"is not a ledger, or its start is damaged. {_DAMAGED}"),
    # The statements are fixed: in a whole ledger none of them can fail in these ways. 0 is text that is no UTF-8.
    **dict.fromkeys(
        (0, *(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT)),
        (CorruptFile, f"is damaged. {_DAMAGED}"),
    ),
    sqlite3.SQLITE_CANTOPEN: (InvalidInput, "cannot be opened. Give a file name in an existing, writable folder."),
    sqlite3.SQLITE_READONLY: (InvalidInput, "cannot be written, so nothing may be released. Make it writable."),
    sqlite3.SQLITE_BUSY: (FedpcsError, "is held by another process; nothing was written. Try again when it is done."),
    sqlite3.SQLITE_FULL: (FedpcsError, "does not fit on its disk; nothing was written. Make room and try again."),
    sqlite3.SQLITE_IOERR: (
        FedpcsError,
        "cannot be read or written; nothing may be released until it can. Check its disk.",
    ),
}


def open_file(path: str | os.PathLike[str]) -> tuple[Path, sqlite3.Connection]:
    """Open the ledger at `path`, or make one there if there is no file or an empty one.

    Raises:
        InvalidInput: No file can be written there, or a newer fedpcs wrote it.
        CorruptFile: What is there is not a ledger, or is damaged. It is left as it is.
    """
    file = _checked_path(path)
    if (finding := _ledger_log.find_damage(_log(file))) is not None:
        raise CorruptFile(f"ledger {file} is damaged: {finding}. {_DAMAGED}")
    with translated(file):
        # Autocommit: transactions begin and end where the code says so.
        _make_private(file)
        connection = sqlite3.connect(file, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            # FULL: a commit returns once the log is on the disk, not merely with the operating system.
            connection.execute("PRAGMA synchronous = FULL")
            _create_if_blank(connection)
            _check(file, connection)
            _keep_write_ahead_log(connection)
        except BaseException:
            connection.close()
            raise
    return file, connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Hold the right to write from the first look to the commit, so that what was read is still true when written."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def translated(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that say what to do."""
    try:
        yield
    except sqlite3.ProgrammingError as error:  # closed, or of another thread
        raise InvalidInput(
            f"ledger {file}: {error} Open one ledger per thread, and use it before it closes."
        ) from error
    except UnicodeDecodeError as error:  # of SQLite's own message, which quotes what it found
        raise CorruptFile(f"ledger {file} is damaged. {_DAMAGED}") from error
    except sqlite3.Error as error:
        primary = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes carry the primary one in their low byte
        if "integer overflow" in str(error):
            raise InvalidInput(
                f"ledger {file}: the sum is beyond what it can hold. Ask for one run or client."
            ) from error
        kind, sentence = _FAILURES.get(primary, (FedpcsError, f"failed: {error}."))
        raise kind(f"ledger {file} {sentence}") from error


def _checked_path(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or name in ("", ":memory:") or "\0" in name:
        raise InvalidInput(f"path must be the name of a file, got {path!r}: a ledger outlives the process. {_REMEDY}")
    file = Path(name).absolute()
    if file.is_dir() or not file.parent.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise InvalidInput(f"ledger {file} cannot be written. {_REMEDY}")
    # A ledger has content before it has a log. SQLite would take this log for a leftover and delete it.
    if _log(file).exists() and not _size(file):
        raise CorruptFile(f"ledger {file} is gone or empty, but its log {_log(file).name} is there. {_DAMAGED}")
    if 0 < _size(file) < _HEADER_BYTES:  # SQLite takes a file of one byte for an empty one
        raise CorruptFile(f"ledger {file} is not a ledger, or its end is missing. {_DAMAGED}")
    return file


def _make_private(file: Path) -> None:
    """Make sure that there is a file; one that is made here, and those SQLite sets beside it, only its owner reads."""
    # A file that SQLite may have open in this process is never opened here: to close it would drop SQLite's locks.
    try:
        if not file.exists():
            with suppress(FileExistsError):  # another process was first
                os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        elif not _size(file):
            file.chmod(0o600)
    except OSError as error:
        raise InvalidInput(f"ledger {file} cannot be written: {error.strerror}. {_REMEDY}") from None


def _create_if_blank(connection: sqlite3.Connection) -> None:
    if not _is_blank(connection):
        return
    connection.execute("PRAGMA auto_vacuum = NONE")  # what SQLite does unless it was built otherwise
    with transaction(connection):
        if _is_blank(connection):  # still: another process may have been first
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            _ledger_chain.begin(connection)


def _check(file: Path, connection: sqlite3.Connection) -> None:
    """Look at all of the ledger, as it is at one moment."""
    connection.execute("BEGIN")
    try:
        if _pragma(connection, "application_id") != _APPLICATION_ID:
            raise CorruptFile(
                f"ledger {file} is a database of another make. It was left as it is. Give another file name."
            )
        stored = _pragma(connection, "user_version")
        version, again = divmod(stored, 1 << 16)
        if version == again > _VERSION:
            raise InvalidInput(
                f"ledger {file} has format {version}; this fedpcs reads up to {_VERSION}. Upgrade fedpcs to use it."
            )
        if stored != _STORED_VERSION:
            raise CorruptFile(f"ledger {file} is damaged: its version is {stored}. {_DAMAGED}")
        finding = _find_damage(file, connection)
    finally:
        if connection.in_transaction:  # some failures end it
            connection.execute("ROLLBACK")
    if finding is not None:
        raise CorruptFile(f"ledger {file} is damaged: {printable(finding)}. {_DAMAGED}")


def _find_damage(file: Path, connection: sqlite3.Connection) -> str | None:
    if strange := _schema(connection) ^ _expected_schema():
        return f"{min(strange)[1]} is missing, added or not as fedpcs makes it"
    # SQLite fills up a last page that was cut with zeros. Only pages that still stand in the log may be missing here.
    if not _size(_log(file)) and _size(file) < _pragma(connection, "page_count") * _pragma(connection, "page_size"):
        return "its end is missing"
    finding = _ledger_chain.find_damage(connection)
    # The chain is of the tables; this compares indexes, which answer most questions, with them, and counts all pages.
    if finding is None and (found := _pragma(connection, "integrity_check(1)")) != "ok":
        return str(found).removeprefix("*** in database main ***\n")
    return finding


def _keep_write_ahead_log(connection: sqlite3.Connection) -> None:
    # SQLite's timeout does not cover this switch: it fails at once while another process, just making the file, writes.
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            mode = _pragma(connection, "journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise InvalidInput("the folder of the ledger cannot hold a write-ahead log. Put the ledger on a local disk.")


def _log(file: Path) -> Path:
    return file.with_name(file.name + "-wal")


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _is_blank(connection: sqlite3.Connection) -> bool:
    return not _schema(connection) and _pragma(connection, "application_id") == 0


def _schema(connection: sqlite3.Connection) -> set[tuple[str, ...]]:
    """Return type, name, table and SQL of all there is."""
    found = connection.execute("SELECT type, name, tbl_name, COALESCE(sql, '') FROM sqlite_master")
    return {tuple(map(str, row)) for row in found}


@functools.cache
def _expected_schema() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema(connection)


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
