"""A running hash: every entry of a file carries the SHA-256 of its content and of the hash before it.

A changed, removed, added or moved entry no longer fits its hash, or the one after it no longer does. The hash has no
key: it finds damage, and edits by somebody who does not compute it anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

START = bytes(32)
# How a line of JSON ends: , "hash": "<64 digits>"} and a line feed.
_BEFORE_HASH = b', "hash": "'
_AFTER_HASH = b'"}\n'
END_LENGTH = len(_BEFORE_HASH) + 64 + len(_AFTER_HASH)


def link(before: bytes, entry: bytes) -> bytes:
    """Return the hash an entry carries: of its content and the hash before it."""
    return hashlib.sha256(before + entry).digest()


def sealed_line(record: dict[str, Any], before: bytes = START) -> bytes:
    """Return an object that is not empty as a line of JSON that carries its hash as its last key."""
    body = json.dumps(record, allow_nan=False).encode()
    return body[:-1] + _BEFORE_HASH + link(before, body).hex().encode() + _AFTER_HASH


def unsealed(line: bytes, before: bytes = START) -> tuple[dict[str, Any], bytes]:
    """Return what `sealed_line` was given, and the hash the line carries.

    Raises:
        ValueError: A bit of the line is not as it was written, or it follows another line than it did.
    """
    body = line[:-END_LENGTH] + b"}"
    digest = link(before, body)
    if line != body[:-1] + _BEFORE_HASH + digest.hex().encode() + _AFTER_HASH:
        raise ValueError("it does not fit its hash: it, or a line before it, was changed, removed, added or moved")
    record = json.loads(body)
    if not isinstance(record, dict):
        raise ValueError("it holds no object")
    return record, digest


def hash_at_end(line: bytes) -> bytes:
    """Return the hash a line carries, unchecked; raise ValueError if it carries none."""
    end = line[-END_LENGTH:]
    if not (end.startswith(_BEFORE_HASH) and end.endswith(_AFTER_HASH)):
        raise ValueError("it carries no hash")
    return bytes.fromhex(end[len(_BEFORE_HASH) : -len(_AFTER_HASH)].decode())
