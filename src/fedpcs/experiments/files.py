"""Files that are whole or not there: written beside, flushed to the disk, then renamed."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput

PRIVATE_FOLDER = 0o700  # for `mkdir`: its owner's alone
NEW_RUN = "Put back a copy, or start a new run."


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn what a disk refuses into one line that says what to do. Whatever was there before is still there."""
    try:
        yield
    except OSError as error:
        raise FedpcsError(
            f"{path}: cannot be written: {error.strerror or error}. Nothing that was saved before is lost: make room, "
            "or make the folder writable, and resume."
        ) from error


def check_folder(folder: Path, what: str) -> None:
    """Refuse the name of a folder that cannot become one, before anything is computed that should go there.

    Args:
        folder: Where something is to be kept; it need not be there yet.
        what: How the caller calls it, such as "--out".

    Raises:
        InvalidInput: It is a file, or lies below one.
    """
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if there.exists() and not there.is_dir():
        raise InvalidInput(f"{what} {folder}: {'it' if there == folder else there} is a file; give a folder.")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by `content`, or leave it as it is: no reader and no crash ever sees half of it.

    Several processes may write the same file: they take turns, and the last one's content stays.
    """
    temporary = path.with_name(path.name + ".partial")
    with disk_errors(path):
        try:
            with _opened_alone(temporary) as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
                temporary.replace(path)  # before the next writer may have it
            sync_folder(path.parent)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _opened_alone(path: Path) -> BinaryIO:
    """Open a file to be written anew once nobody else is writing it."""
    while True:
        stream = open_private(path)
        fcntl.flock(stream, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # whoever had it has renamed it: this is no longer the file of that name
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                stream.truncate(0)
                return stream
        stream.close()


def open_private(path: Path) -> BinaryIO:
    """Open a file to read and to add to. One that is made is its owner's alone, whatever the umask."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "a+b")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path, remedy: str = NEW_RUN) -> Any:
    """Read a JSON file of ours.

    Raises:
        CorruptFile: It is missing or damaged; `remedy` says what to do.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # the last if it is nested too deep
        raise CorruptFile(f"{path}: cannot be read: {error}. {remedy}") from None


def read_object(path: Path, *keys: str, remedy: str = NEW_RUN) -> dict[str, Any]:
    """Read a JSON file of ours that holds one object with at least these keys.

    Raises:
        CorruptFile: It is missing, damaged, or something else.
    """
    found = read_json(path, remedy)
    if not isinstance(found, dict) or (missing := [key for key in keys if key not in found]):
        what = f"has no {missing[0]!r}" if isinstance(found, dict) else "holds no object"
        raise CorruptFile(f"{path}: {what}. {remedy}")
    return found


def sync_folder(folder: Path) -> None:
    """Make a rename in `folder` last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
