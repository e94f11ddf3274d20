"""A server's state on disk: one file for each round kept, arrays behind their own checksum, the newest three.

A file is renamed into place when it is whole. One that was damaged later is found out by its checksum, and the one
before it is used.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from fedpcs._files import PRIVATE_FOLDER, disk_errors, read_arrays, write_arrays
from fedpcs._outside import printable
from fedpcs.errors import CorruptFile
from fedpcs.learning.server_values import ServerState
from fedpcs.sampling.tally import Tally

_KEPT = 3
_NAME = re.compile(r"(\d{6})\.ckpt")
_ARRAYS = ("parameters", "momentum", "average", "spent", "has_left", "seen")


def save(folder: Path, state: ServerState, extra: dict[str, Any] | None = None) -> Path:
    """Write a state as the checkpoint of its round, and remove all but the newest three.

    Args:
        folder: Where checkpoints are.
        state: After some rounds.
        extra: Arrays of the runner's own, by name.
    """
    arrays: dict[str, Any] = {name: getattr(state, name) for name in _ARRAYS}
    arrays |= {f"tally.{item.name}": getattr(state.tally, item.name) for item in fields(Tally)}
    arrays |= {f"memory.{name}": value for name, value in state.memory.items()}
    arrays |= {f"extra.{name}": value for name, value in (extra or {}).items()}
    with disk_errors(folder):
        folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
    path = folder / f"{state.next_round:06d}.ckpt"
    write_arrays(path, next_round=state.next_round, paid=state.paid, **arrays)
    for old in _present(folder)[_KEPT:]:
        with contextlib.suppress(OSError):  # an old one too many does no harm
            old.unlink()
    return path


def latest(folder: Path) -> tuple[ServerState, dict[str, Any], list[str]] | None:
    """Return the newest state that is whole, what came with it, and what is wrong with newer ones; None without any.

    Raises:
        CorruptFile: There are checkpoints, and none of them is whole.
    """
    problems: list[str] = []
    for path in _present(folder):
        try:
            return (*_load(path), problems)
        except CorruptFile as error:
            problems.append(str(error))
    if problems:
        raise CorruptFile(f"no checkpoint in {folder} is whole: {' '.join(problems)} Start a new run.")
    return None


def _present(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _load(path: Path) -> tuple[ServerState, dict[str, Any]]:
    try:
        arrays = read_arrays(path)
        return _state(arrays), _part(arrays, "extra.")
    except (OSError, KeyError, TypeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else printable(error)
        raise CorruptFile(f"{path.name} is damaged: {reason}.") from None


def _state(arrays: dict[str, Any]) -> ServerState:
    counts = _part(arrays, "tally.")
    as_saved: dict[str, Any] = {name: int(value) if value.ndim == 0 else value for name, value in counts.items()}
    return ServerState(
        next_round=int(arrays["next_round"]),
        paid=float(arrays["paid"]),
        memory=_part(arrays, "memory."),
        tally=Tally(**as_saved),
        **{name: arrays[name] for name in _ARRAYS},
    )


def _part(arrays: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
