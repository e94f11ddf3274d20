"""The one way to open a file: read within a limit from a regular file, written whole or not at all.

Whoever gives us a file may give us a device, a pipe that nobody writes to, or a few bytes that unpack to gigabytes.
Everything that reads a file opens it by `open_regular`. What it refuses is an `OSError` whose `strerror` says why, so
that a caller puts it into words as it does with a file that is missing.

Files we write are written beside, flushed to the disk, then renamed. No link is followed where we write.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import stat
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedpcs._outside import printable
from fedpcs.errors import CorruptFile, FedpcsError, InUse, InvalidInput

PRIVATE_FOLDER = 0o700  # for `mkdir`: its owner's alone
NEW_RUN = "Put back a copy, or start a new run."
# Most bytes of a file, by kind. docs/limits.md tells users.
MOST_TEXT = 2**20  # a run, a sweep, a game
MOST_JSON = 2**24  # JSON files of ours, and one line of a log
MOST_TABLE = 2**26  # a population
MOST_LOG = 2**30  # the rounds of a run
MOST_DATA = 2**28  # a file of a data set, unpacked
MOST_ARRAYS = 2**32  # a checkpoint, an equilibrium, weights
_OPENED = os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK  # a pipe nobody writes to must not hold us up


def open_regular(path: str | os.PathLike[str], most_bytes: int) -> io.BufferedReader:
    """Open a file to be read; links to it are followed.

    Raises:
        OSError: It cannot be opened, is a folder, a device or a pipe, or is larger than `most_bytes`.
    """
    kind = stat.S_IFMT(os.stat(path).st_mode)  # before it is opened: opening a device may do something
    if stat.S_ISREG(kind):
        handle = os.open(path, os.O_RDONLY | _OPENED)
        found = os.fstat(handle)
        kind = stat.S_IFMT(found.st_mode)
        if stat.S_ISREG(kind) and found.st_size <= most_bytes:
            return os.fdopen(handle, "rb")
        os.close(handle)
        if stat.S_ISREG(kind):
            raise OSError(errno.EFBIG, _too_large(found.st_size, most_bytes), os.fspath(path))
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise OSError(errno.EINVAL, "Not a regular file but a device, a pipe or a socket", os.fspath(path))


def read_bytes(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the content of a file; raises as `open_regular`."""
    with open_regular(path, most_bytes) as stream:
        # Asked for no more than there is: room for all that is asked for is taken at once.
        content = stream.read(max(os.fstat(stream.fileno()).st_size, 2**16))
        if stream.read(1):
            raise OSError(errno.EFBIG, f"Too large: more than {len(content):,} bytes", os.fspath(path))
    return content


def read_text(path: str | os.PathLike[str], most_bytes: int = MOST_TEXT) -> str:
    """Return the content of a text file in UTF-8, without the mark that some editors put before it."""
    return read_bytes(path, most_bytes).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def lines_of(path: str | os.PathLike[str], most_bytes: int = MOST_LOG, most_line: int = MOST_JSON) -> Iterator[bytes]:
    """Give the lines of a file, each with its line feed if it has one; one longer than `most_line` is an OSError."""
    with open_regular(path, most_bytes) as stream:
        while line := stream.readline(most_line + 1):
            if len(line) > most_line:
                raise OSError(errno.EFBIG, f"A line is longer than {most_line:,} bytes", os.fspath(path))
            yield line


def most_unpacked(num_bytes: int) -> int:
    """Return how large packed content may become: ten times its size, and never less than 16 MiB."""
    return max(2**24, 10 * num_bytes)


def arrays_in(stream: BinaryIO) -> dict[str, NDArray[Any]]:
    """Read the arrays of an .npz file; ValueError if it is damaged, or would unpack to far more than its size."""
    try:
        num_bytes = stream.seek(0, os.SEEK_END)
        with zipfile.ZipFile(stream) as packed:
            unpacked = sum(member.file_size for member in packed.infolist())
        if unpacked > most_unpacked(num_bytes):
            raise ValueError(_too_large(unpacked, most_unpacked(num_bytes)))
        stream.seek(0)
        with np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except Exception as error:  # damage can fail in any part of the readers
        raise ValueError(printable(error)) from None


def packed(**arrays: Any) -> bytes:
    """Return arrays as the content of an .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write arrays behind their SHA-256, whole or not at all."""
    body = packed(**arrays)
    write_whole(path, hashlib.sha256(body).digest() + body)


def read_arrays(path: Path, most_bytes: int = MOST_ARRAYS) -> dict[str, NDArray[Any]]:
    """Read what `write_arrays` wrote.

    Raises:
        OSError: As `open_regular`.
        ValueError: It is damaged.
    """
    content = memoryview(read_bytes(path, most_bytes))
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError("its checksum does not match")
    return arrays_in(io.BytesIO(content[32:]))


def _too_large(num_bytes: int, most_bytes: int) -> str:
    return f"Too large: {num_bytes:,} bytes, and at most {most_bytes:,} are read"


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
    """Refuse a folder that is a file or lies below one, before anything is computed that should go there.

    Args:
        folder: Where something is to be kept; it need not be there yet.
        what: How the caller calls it, such as "--out".
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


def write_text(path: Path, text: str) -> None:
    """Replace a file by a text, whole or not at all; halves of characters, which no file can hold, are escaped."""
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def open_own(path: Path, flags: int = os.O_RDWR, *, creates: bool = True) -> int:
    """Return the handle of a file of ours to be written: never one that a link points to, a device or a pipe.

    One that is made is its owner's alone, whatever the umask.

    Raises:
        OSError: It cannot be made, or something else has its name.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | _OPENED | (os.O_CREAT if creates else 0), 0o600)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "Not a regular file but a device, a pipe or a socket", os.fspath(path))
    return handle


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


def lock_at_once(handle: int) -> bool:
    """Lock an open file for this process; False if another keeps it locked. The system unlocks it when it is closed."""
    # A process killed while it starts another leaves the lock to that one, for the moment until it runs its program.
    for wait in (0.0, 0.05, 0.2, 0.5):
        time.sleep(wait)
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder: one process at a time. The system lets go when the process ends, however it ends.

    Raises:
        InUse: Another process has it.
        InvalidInput: It cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder}: is a file. Give the name of a folder to be made.")
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle = open_own(folder / "lock")
    except OSError as error:
        if error.filename == str(folder / "lock") and error.errno in (errno.EINVAL, errno.EISDIR, errno.ELOOP):
            raise InvalidInput(f"{folder / 'lock'}: is not a file of a run's but something else. Remove it.") from error
        raise InvalidInput(f"{folder}: cannot be written: {error.strerror}. Give a folder that can.") from error
    try:
        if not lock_at_once(handle):
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
            raise InUse(
                f"{folder}: another process ({holder or 'unknown'}) is working on this run. Wait for it, or stop it."
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"pid {os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Say whether a process works on a run's folder at this moment."""
    try:
        handle = open_own(folder / "lock", os.O_RDWR, creates=False)
    except OSError:  # no such file, or something else of that name: no process of ours holds it
        return False
    try:
        return not lock_at_once(handle)
    finally:
        os.close(handle)


def open_private(path: Path) -> BinaryIO:
    """Open a file of ours to read and to add to, likewise."""
    return os.fdopen(open_own(path, os.O_RDWR | os.O_APPEND), "a+b")


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all."""
    write_whole(path, (json.dumps(value, indent=1, allow_nan=False) + "\n").encode())


def read_json(path: Path, remedy: str = NEW_RUN) -> Any:
    """Read a JSON file of ours; if it is missing or damaged, CorruptFile says what to do by `remedy`."""
    try:
        return json.loads(read_bytes(path, MOST_JSON).decode())
    except (OSError, ValueError, RecursionError) as error:  # the last if it is nested too deep
        reason = error.strerror if isinstance(error, OSError) else printable(error)
        raise CorruptFile(f"{path}: cannot be read: {reason}. {remedy}") from None


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


def refuse_open(path: Path, mode: int) -> None:
    """Refuse a file or folder that other users of this machine may look into.

    Raises:
        InvalidInput: It is one; says which command closes it.
    """
    if mode & 0o077:
        wanted, what = ("700", "folder") if stat.S_ISDIR(mode) else ("600", "file")
        raise InvalidInput(
            f"{path}: other users of this machine may use this {what} (mode {stat.S_IMODE(mode):04o}). "
            f"Run: chmod {wanted} {path}"
        )


def private_folder(path: Path) -> Path:
    """Make a folder that is its owner's alone, or check that it is one.

    Raises:
        InvalidInput: It is there, and other users may look into it.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    refuse_open(path, path.stat().st_mode)
    return path
