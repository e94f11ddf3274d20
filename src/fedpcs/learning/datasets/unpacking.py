"""Archives unpacked with suspicion: nothing lands outside its folder, nothing but files and folders is made, no bombs.

What an archive says of its own size is not believed: bytes are counted as they are unpacked.
"""

from __future__ import annotations

import errno
import gzip
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, cast

from fedpcs._files import MOST_ARRAYS, most_unpacked, open_regular
from fedpcs._outside import printable, shown
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.entry import damaged

_CHUNK_BYTES = 1 << 18
_MOST_MEMBERS = 1_000_000
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.EMFILE)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a .zip or .tar.gz file into `folder`.

    Raises:
        CorruptFile: The archive is damaged, one of its members would land outside `folder` or is neither a file nor a
            folder, or it unpacks to far more than its size.
        InvalidInput: It cannot be opened, or the disk takes no more.
    """
    try:
        with open_regular(archive, MOST_ARRAYS) as stream:
            room = _Room(archive, most_unpacked(archive.stat().st_size))
            members = _zipped if archive.name.endswith(".zip") else _tarred
            for name, content in members(stream, room):
                room.take(0, num_members=1)
                _write(folder / name, content)
    except CorruptFile:
        raise
    except OSError as error:
        if error.filename == str(archive) or error.errno in _OF_THE_DISK:
            remedy = "Make room, or make it readable."
            raise InvalidInput(f"{archive} cannot be unpacked: {error.strerror}. {remedy}") from None
        raise damaged(archive, f"must be a whole archive: {printable(error)}") from None
    except Exception as error:  # a damaged archive can fail in any part of its reader
        raise damaged(archive, f"must be a whole archive: {printable(error)}") from None


class _Room:
    """How many bytes and members an archive may still bring."""

    def __init__(self, archive: Path, most_bytes: int) -> None:
        self.archive, self.most_bytes = archive, most_bytes
        self.num_bytes = self.num_members = 0

    def take(self, num_bytes: int, num_members: int = 0) -> None:
        """Count what has been unpacked; raise `CorruptFile` if it is too much."""
        self.num_bytes += num_bytes
        self.num_members += num_members
        if self.num_bytes > self.most_bytes or self.num_members > _MOST_MEMBERS:
            raise CorruptFile(
                f"{self.archive} unpacks to more than {self.most_bytes:,} bytes or {_MOST_MEMBERS:,} files, far "
                "beyond its size. Do not use this archive."
            )


class _Counted:
    """A stream whose bytes are counted before anybody may keep them."""

    def __init__(self, stream: IO[bytes], room: _Room) -> None:
        self._stream, self._room = stream, room

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, no more than a chunk of them."""
        content = self._stream.read(min(size, _CHUNK_BYTES) if size >= 0 else _CHUNK_BYTES)
        self._room.take(len(content))
        return content


def _tarred(stream: IO[bytes], room: _Room) -> Iterator[tuple[str, _Counted | IO[bytes] | None]]:
    """Give the members of a .tar.gz: the name, and the content of a file; None for a folder."""
    # Also names and other headers are counted, which the reader keeps in memory.
    counted = _Counted(cast(IO[bytes], gzip.GzipFile(fileobj=stream)), room)
    with tarfile.open(fileobj=cast(IO[bytes], counted), mode="r|") as tar:
        for member in tar:
            # A file with holes says how long they are, and they are never read.
            if not (member.isreg() or member.isdir()) or member.issparse():
                raise _escape(room.archive, member.name)
            _check_name(room.archive, member.name)
            yield member.name, tar.extractfile(member)


def _zipped(stream: IO[bytes], room: _Room) -> Iterator[tuple[str, _Counted | IO[bytes] | None]]:
    """Give the members of a .zip, likewise; all names are checked first."""
    with zipfile.ZipFile(stream) as packed:
        for member in packed.infolist():
            if stat.S_ISLNK(member.external_attr >> 16):
                raise _escape(room.archive, member.filename)
            _check_name(room.archive, member.filename)
        for member in packed.infolist():
            if member.is_dir():
                yield member.filename, None
            else:
                with packed.open(member) as content:
                    yield member.filename, _Counted(content, room)


def _check_name(archive: Path, name: str) -> None:
    if any(one.anchor or ".." in one.parts for one in (PurePosixPath(name), PureWindowsPath(name))):
        raise _escape(archive, name)


def _escape(archive: Path, name: str) -> CorruptFile:
    return CorruptFile(f"{archive} must keep to its own folder, but it holds {shown(name)}. Do not use this archive.")


def _write(path: Path, content: _Counted | IO[bytes] | None) -> None:
    """Make a folder, or a file with this content."""
    if content is None:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:  # a name that comes twice is damage
        while chunk := content.read(_CHUNK_BYTES):
            file.write(chunk)
