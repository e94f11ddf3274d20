"""An equilibrium on disk: written whole or not at all, read back with every array checked, and certified anew."""

from __future__ import annotations

import os
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np

from fedpcs import _validate
from fedpcs._caps import allowance
from fedpcs._files import MOST_ARRAYS, arrays_in, open_regular, packed, write_whole
from fedpcs._validate import FloatArray
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.game.commitment import ServerCheck, check_server
from fedpcs.game.config import GameFile
from fedpcs.game.equilibrium import Equilibrium
from fedpcs.game.payoffs import Profile, server_cost
from fedpcs.game.rules import Game
from fedpcs.game.sampling_ratio import cap_path, expected_spend
from fedpcs.game.verify import Certificate, certify, check_profile

# A committed path may leave this share of its cost to be saved; its search stops at small steps in the cost.
MOST_SERVER_IMPROVEMENT = 0.005
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
    weight: FloatArray | None = None
    num_samples: FloatArray | None = None
    cohort_size: FloatArray | None = None


def check_writable(path: Path) -> None:
    """Refuse an output path that cannot be written, before any work is done for it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InvalidInput(f"--out {path}: cannot be written there. Give a file name in an existing, writable folder.")


def write_equilibrium(path: Path, found: Equilibrium) -> None:
    """Write an equilibrium as .npz."""
    crowd = found.game.population
    arrays: dict[str, Any] = {name: getattr(found.profile, name) for name in ("budget", "retention", "mean_budget")}
    arrays |= {name: getattr(crowd, name) for name in ("privacy_aversion", "initial_budget", "weight", "num_samples")}
    write_whole(path, packed(reward=found.reward.path, cohort_size=found.game.cohort_size, **arrays))


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
            arrays = arrays_in(stream)
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file. Write one with `fedpcs solve --out {path}`.") from None
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}. {_GIVE}") from None
    except InvalidInput:
        raise
    except ValueError:
        raise CorruptFile(
            f"{path}: damaged, or not an equilibrium file. Put back a copy, or write it again with `fedpcs solve "
            "--out`."
        ) from None
    stated = fields(StoredEquilibrium)
    if missing := [one.name for one in stated if one.default is MISSING and one.name not in arrays]:
        raise InvalidInput(f"{path}: lacks {', '.join(missing)}. {_GIVE}")
    for name, array in arrays.items():
        if not (np.issubdtype(array.dtype, np.number) and np.isrealobj(array)):
            raise InvalidInput(f"{path}: {name} must be real numbers, got {array.dtype}. {_GIVE}")
    known = {one.name for one in stated} & set(arrays)
    return StoredEquilibrium(**{name: np.asarray(arrays[name], dtype=np.float64) for name in known})


@dataclass(frozen=True)
class Verification:
    """A file's certificate, recomputed.

    Attributes:
        certificate: The clients' half.
        server: The leader's half, for rewards that claim to be a commitment.
        server_cost: (rounds,) the server's expected cost.
        mean_budget_error: Largest distance between the mean budgets the file states and those its budgets have.
        is_equilibrium: Whether all of it holds to the tolerance asked for.
    """

    certificate: Certificate
    server: ServerCheck | None
    server_cost: FloatArray
    mean_budget_error: float
    is_equilibrium: bool

    def verdict(self, tolerance: float) -> Literal["equilibrium", "not-resolved", "not-an-equilibrium"]:
        """Return what the file is to a tolerance."""
        if self.is_equilibrium:
            return "equilibrium"
        return "not-resolved" if self.certificate.is_too_coarse_for(tolerance) else "not-an-equilibrium"


def verify_stored(stored: StoredEquilibrium, game: Game, config: GameFile) -> Verification:
    """Recompute the certificate of a stored profile under a game, from the file's arrays alone.

    Raises:
        InvalidInput: The arrays are not a profile of this game.
    """
    if config.budget_cap is not None and stored.cohort_size is not None:
        game = game.with_cohort(stored.cohort_size)
    _check_same_game(stored, game, config)
    profile = Profile(stored.budget, stored.retention, stored.mean_budget)
    check_profile(profile, game)
    tolerance = float(config.tolerance)
    certificate = certify(profile, stored.reward, game, tolerance=tolerance)
    server = check_server(game, stored.reward) if config.reward == "commitment" else None
    leads = server is None or server.improvement <= MOST_SERVER_IMPROVEMENT
    error = float(np.abs(stored.budget @ game.population.weight - stored.mean_budget).max())
    is_true = error <= 1e-6 * float(stored.mean_budget.min())
    return Verification(
        certificate,
        server,
        server_cost(stored.budget, stored.reward, game),
        error,
        certificate.is_equilibrium(tolerance) and is_true and leads,
    )


def _check_same_game(stored: StoredEquilibrium, game: Game, config: GameFile) -> None:
    rounds = game.last_round + 1
    for name, array in (("reward", stored.reward), ("mean_budget", stored.mean_budget)):
        if array.shape != (rounds,) or not np.isfinite(array).all():
            raise InvalidInput(f"{name} in the file must be {rounds} finite numbers, got shape {array.shape}.")
    _validate.vector("reward in the file", stored.reward, low=0.0, high=game.reward_max)
    if config.budget_cap is not None:
        spent = expected_spend(stored.budget, game.cohort_size, game)
        over = np.flatnonzero(spent > allowance(cap_path(config.budget_cap, game)))
        if over.size:
            raise InvalidInput(
                f"the file's cohort of round {over[0]} is expected to spend {spent[over[0]]:.4g}, above budget_cap. "
                "Solve again."
            )
    crowd = game.population
    stated = {name: getattr(crowd, name) for name in ("privacy_aversion", "initial_budget", "weight", "num_samples")}
    for name, ours in {**stated, "cohort_size": game.cohort_size}.items():
        theirs = getattr(stored, name)
        if theirs is None:
            continue
        if theirs.shape != ours.shape or not np.allclose(theirs, ours, rtol=0.0, atol=1e-9):
            meant = "another population, seed, num_clients or cohort"
            raise InvalidInput(f"{name} in the file is not this game's: {meant}? Give the game it was solved for.")
    is_fixed = not isinstance(config.reward, str)
    if is_fixed and not np.allclose(stored.reward, game.reward_path(config.reward), rtol=0.0, atol=1e-9):
        raise InvalidInput(
            "reward in the file is not the one this game fixes. Check that file and game belong together."
        )
