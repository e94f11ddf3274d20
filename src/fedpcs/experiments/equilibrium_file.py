"""An equilibrium on disk: write it whole or not at all, read it back with every array checked."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.game.equilibrium import Equilibrium

_ARRAYS = ("budget", "retention", "reward", "mean_budget", "privacy_aversion", "initial_budget")


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
        cohort_size: (rounds,), or None in files that do not say.
    """

    budget: FloatArray
    retention: FloatArray
    reward: FloatArray
    mean_budget: FloatArray
    privacy_aversion: FloatArray
    initial_budget: FloatArray
    cohort_size: FloatArray | None


def check_writable(path: Path) -> None:
    """Refuse an output path that cannot be written, before any work is done for it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"--out {path}: cannot be written there. Give a file name in an existing, writable folder.")


def write_equilibrium(path: Path, found: Equilibrium) -> None:
    """Write an equilibrium as .npz: to a temporary file first, then renamed, so no reader sees half of one."""
    crowd = found.game.population
    temporary = path.with_name(path.name + ".partial")
    with temporary.open("wb") as stream:
        np.savez(
            stream,
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
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def read_equilibrium(path: Path) -> StoredEquilibrium:
    """Read what `write_equilibrium` wrote.

    Raises:
        InvalidInput: The file is missing, is not an .npz file, or lacks an array.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: _real(stored[name]) for name in stored.files}
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file. Write one with `fedpcs solve --out {path}`.") from None
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path}: not an equilibrium file ({error}). Write one with `fedpcs solve --out`.") from None
    missing = [name for name in _ARRAYS if name not in arrays]
    if missing:
        raise InvalidInput(f"{path}: lacks {', '.join(missing)}. Write the file with `fedpcs solve --out`.")
    return StoredEquilibrium(**{name: arrays[name] for name in _ARRAYS}, cohort_size=arrays.get("cohort_size"))


def _real(array: NDArray[Any]) -> FloatArray:
    if not (np.issubdtype(array.dtype, np.number) and np.isrealobj(array)):
        raise ValueError(f"an array of {array.dtype}, not of real numbers")
    return np.asarray(array, dtype=np.float64)
