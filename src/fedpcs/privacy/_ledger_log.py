"""Whether the write-ahead log beside a ledger is as SQLite wrote it.

SQLite reads a log up to the first frame whose checksum is wrong, and forgets what stands behind: to it, that is where a
crash came. One bit that flips in a log would so take charges back. Here a wrong frame is damage unless a crash can have
left it: transactions before the last were on the disk before the last was begun, and what a power cut leaves of the
last differs from what was to be written in more than one bit.

References:
    The format: https://www.sqlite.org/fileformat2.html, "The Write-Ahead Log".
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from fedpcs._files import MOST_ARRAYS, open_regular

_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24
# How words are read for checksums, by the number the log begins with.
_BYTE_ORDER = {0x377F0682: "<", 0x377F0683: ">"}

Checksum = tuple[int, int]


@dataclass(frozen=True)
class _Log:
    """What the header of a log says of its frames."""

    byte_order: str
    frame_bytes: int
    salts: tuple[int, int]
    checksum: Checksum


def find_damage(path: Path) -> str | None:
    """Return what is damaged in a log; None if nothing is, or there is no log."""
    try:
        content = _read(path)
    except OSError as error:
        return f"its log cannot be read: {error.strerror}"
    while (finding := _find_damage(content)) is not None:
        again = _read(path)
        if again == content:
            return finding
        content = again  # another process was writing it
    return None


def _read(path: Path) -> bytes:
    try:
        with open_regular(path, MOST_ARRAYS) as stream:
            return stream.read(os.fstat(stream.fileno()).st_size)  # another process may add to it meanwhile
    except FileNotFoundError:
        return b""


def _find_damage(content: bytes) -> str | None:
    if len(content) < _HEADER_BYTES or not content.strip(b"\0"):  # not yet begun
        return None
    log = _log_of(content[:_HEADER_BYTES])
    if log is None:
        return "the start of its log is not as it was written"
    size = log.frame_bytes
    frames = [content[at : at + size] for at in range(_HEADER_BYTES, len(content) - size + 1, size)]
    checksum = log.checksum
    for index, frame in enumerate(frames):
        if not _fits(frame, log, checksum):
            num_commits = sum(_is_commit(later, log) for later in frames[index:])
            is_damage = num_commits > 1 or _is_one_bit_off(frame, log, checksum)
            return f"frame {index + 1} of its log is not as it was written" if is_damage else None
        checksum = _stored(frame)
    return None


def _log_of(header: bytes) -> _Log | None:
    magic, _, page_bytes, _, *salts, first, second = struct.unpack(">8I", header)
    byte_order = _BYTE_ORDER.get(magic)
    if byte_order is None or _checksum(header[:24], byte_order, (0, 0)) != (first, second):
        return None
    return _Log(byte_order, _FRAME_HEADER_BYTES + page_bytes, (salts[0], salts[1]), (first, second))


def _fits(frame: bytes | bytearray, log: _Log, before: Checksum) -> bool:
    """Say whether a frame is of this log, and as it was written behind a frame of this checksum."""
    if not _is_of(frame, log):
        return False
    return _stored(frame) == _checksum(frame[:8] + frame[_FRAME_HEADER_BYTES:], log.byte_order, before)


def _is_of(frame: bytes | bytearray, log: _Log) -> bool:
    # A log is written over from its start; frames of before carry other salts.
    return struct.unpack_from(">2I", frame, 8) == log.salts


def _is_commit(frame: bytes, log: _Log) -> bool:
    """Say whether a frame is the last of a transaction: the only one that names a size of the file."""
    return _is_of(frame, log) and frame[4:8] != b"\0\0\0\0"


def _stored(frame: bytes | bytearray) -> Checksum:
    first, second = struct.unpack_from(">2I", frame, 16)
    return first, second


def _is_one_bit_off(frame: bytes, log: _Log, before: Checksum) -> bool:
    changed = bytearray(frame)
    for index in range(len(changed)):
        for bit in range(8):
            changed[index] ^= 1 << bit
            if _fits(changed, log, before):
                return True
            changed[index] ^= 1 << bit
    return False


def _checksum(data: bytes | bytearray, byte_order: str, before: Checksum) -> Checksum:
    words = struct.unpack(f"{byte_order}{len(data) // 4}I", data)
    first, second = before
    for one, two in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
