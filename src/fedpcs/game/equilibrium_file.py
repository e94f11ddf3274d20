"""An equilibrium on disk: write it whole or not at all, read it back with every array checked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_ARRAYS, arrays_in, open_regular, packed, write_whole
from fedpcs._validate import FloatArray
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.game.equilibrium import Equilibrium

_ARRAYS = ("budget", "retention", "reward", "mean_budget", "privacy_aversion", "initial_budget")
_MAY_BE_ABSENT = ("weight", "num_samples", "cohort_size")
_BEGINS = b"PK\x03\x04"  # an .npz file is a zip file
_GIVE = "Give the .npz file that `fedpcs solve --out` writes; a game's TOML file goes with --game."


@dataclass(frozen=True)
class StoredEquilibrium:
    """What a file holds.

    Attributes:
        budget: (rounds, types).
        retention: (rounds, types).
        reward: (rounds,).
        mean_budget: (rounds,).
        privacy_aversion: (types,).
        initial_budget: (types,).
        weight: (types,), or None in files that do not say.
        num_samples: (types,), likewise.
        cohort_size: (rounds,), likewise.
    """

    budget: FloatArray
    retention: FloatArray
    reward: FloatArray
    mean_budget: FloatArray
    privacy_aversion: FloatArray
    initial_budget: FloatArray
    weight: FloatArray | None
    num_samples: FloatArray | None
    cohort_size: FloatArray | None


def check_writable(path: Path) -> None:
    """Refuse an output path that cannot be written, before any work is done for it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"--out {path}: cannot be written there. Give a file name in an existing, writable folder.")


def write_equilibrium(path: Path, found: Equilibrium) -> None:
    """Write an equilibrium as .npz."""
    crowd = found.game.population
    arrays = packed(
        budget=found.profile.budget,
        retention=found.profile.retention,
        reward=found.reward.path,
        mean_budget=found.profile.mean_budget,
        privacy_aversion=crowd.privacy_aversion,
        initial_budget=crowd.initial_budget,
        weight=crowd.weight,
        num_samples=crowd.num_samples,
        cohort_size=found.game.cohort_size,
    )
    write_whole(path, arrays)


def read_equilibrium(path: Path) -> StoredEquilibrium:
    """Read what `write_equilibrium` wrote.

    Raises:
        InvalidInput: The file is missing, is no equilibrium file, or lacks an array.
        CorruptFile: It begins as one, and cannot be read to its end.
    """
    try:
        with open_regular(path, MOST_ARRAYS) as stream:
            if stream.read(len(_BEGINS)) != _BEGINS:
                raise InvalidInput(f"{path}: not an equilibrium file. {_GIVE}")
            arrays = _arrays_in(path, stream)
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file. Write one with `fedpcs solve --out {path}`.") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}. {_GIVE}") from None
    if missing := [name for name in _ARRAYS if name not in arrays]:
        raise InvalidInput(f"{path}: lacks {', '.join(missing)}. {_GIVE}")
    if strange := [name for name, array in arrays.items() if not _is_real(array)]:
        raise InvalidInput(f"{path}: {strange[0]} must be real numbers, got {arrays[strange[0]].dtype}. {_GIVE}")
    values = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    stated: dict[str, Any] = {name: values.get(name) for name in _MAY_BE_ABSENT}
    return StoredEquilibrium(**{name: values[name] for name in _ARRAYS}, **stated)


def _arrays_in(path: Path, stream: BinaryIO) -> dict[str, NDArray[Any]]:
    try:
        return arrays_in(stream)
    except ValueError:
        raise CorruptFile(
            f"{path}: damaged, or not an equilibrium file. Put back a copy, or write it again with `fedpcs solve "
            "--out`."
        ) from None


def _is_real(array: NDArray[Any]) -> bool:
    return np.issubdtype(array.dtype, np.number) and np.isrealobj(array)
