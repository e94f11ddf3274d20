"""Logs whose lines say something else and carry the right hashes: to see what is checked beside these."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fedpcs._chain import START, hash_at_end, sealed_line


def write_log(path: Path, records: Sequence[Any]) -> None:
    """Write records as a log that is whole."""
    lines, before = [], START
    for record in records:
        lines.append(sealed_line(record, before))
        before = hash_at_end(lines[-1])
    path.write_bytes(b"".join(lines))


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read the records of a log, whatever its hashes."""
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [{name: value for name, value in line.items() if name != "hash"} for line in found]


def change_log(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Change every record of a log."""
    write_log(path, [change(record) for record in read_log(path)])
