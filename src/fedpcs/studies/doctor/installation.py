"""Whether this installation does what it should: libraries, cores, the solver, the accountant, the noise, the disk.

Nothing is taken on trust: a small game is solved and certified, a budget is converted there and back, noise is drawn
and its spread measured.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from fedpcs import _format
from fedpcs._check import Check, noted
from fedpcs._plugins import pip_install
from fedpcs._threads import num_cores

_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "numba": "numba",
    "randomgen": "randomgen",
    "torch": "torch",
    "scikit-learn": "sklearn",
    "matplotlib": "matplotlib",
}
_EXTRAS = {"flower": "flwr", "parquet": "pyarrow", "tensorboard": "tensorboard"}
_DRAWN = 100_000
# A measured standard deviation of so many draws is this far off with probability below 1e-8.
_MOST_OFF = 6.0 / np.sqrt(2.0 * _DRAWN)
_LEAST_BYTES = 1_000_000_000


def check_installation(data_dir: Path | None = None) -> list[Check]:
    """Look at everything a run needs but its configuration; what breaks is a finding, not an exception."""
    looks: dict[str, Callable[[], Check]] = {
        "libraries": _libraries,
        "cores": _cores,
        "game": _game,
        "privacy": _privacy,
        "noise": _noise,
        "disk": _disk,
        "data": lambda: _data(data_dir),
        "extras": _extras,
    }
    return [_looked(subject, look) for subject, look in looks.items()]


def _looked(subject: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except Exception as error:  # whatever is broken here is what a doctor is called for
        reason = f"{type(error).__name__}: {error}"
        return Check(subject, "wrong", reason, "Install fedpcs anew, in a virtual environment of its own.")


def _libraries() -> Check:
    found = [f"python {platform.python_version()}", f"fedpcs {version('fedpcs')}"]
    for name, module in _LIBRARIES.items():
        import_module(module)
        found.append(f"{name} {version(name)}")
    return Check("libraries", "fine", ", ".join(found))


def _cores() -> Check:
    pinned = os.environ.get("OMP_NUM_THREADS")
    text = f"{num_cores()} for this process" + (f", OMP_NUM_THREADS={pinned}" if pinned else "")
    alone = "Clients train one after another. More cores let them train side by side."
    return noted("cores", text, alone if num_cores() == 1 else "")


def _game() -> Check:
    from fedpcs.game import equilibrium
    from fedpcs.game.population import uniform
    from fedpcs.game.rules import make_game
    from fedpcs.game.verify import certify

    found = equilibrium.solve(make_game(uniform(10, seed=0), last_round=4, cohort_size=2), 6.0)
    again = certify(found.profile, found.reward.path, found.game)
    text = f"10 clients, 5 rounds: solved; by deviating a client gains at most {_format.amount(again.max)}"
    broken = "Numba's kernels give wrong numbers here: try another version of Numba."
    return _wrong_unless(again.is_equilibrium(1e-3), "game", text, broken)


def _privacy() -> Check:
    from fedpcs.privacy.conversion import METHODS, to_delta, to_epsilon

    exact, tight, standard = found = [to_epsilon(0.5, 1e-5, method) for method in METHODS]
    shown = ", ".join(f"{_format.rounded_up(epsilon)} {method}" for method, epsilon in zip(METHODS, found, strict=True))
    is_sound = exact <= tight <= standard
    comes_back = abs(to_delta(0.5, exact, "exact") / 1e-5 - 1.0) < 1e-6
    broken = "SciPy's special functions give wrong numbers: try another version."
    return _wrong_unless(is_sound and comes_back, "privacy", f"ρ = 0.5 at δ = 10⁻⁵: ε = {shown}", broken)


def _noise() -> Check:
    from fedpcs.privacy.noise import NAMES, noise_source

    spread = {}
    for name in NAMES:
        source = noise_source(name, seed=0 if name == "fast" else None)
        spread[name] = float(np.std(source.draw(_DRAWN))) / (source.units_per_stddev or 1)
    shown = ", ".join(f"{name} {_format.three_decimals(value)}" for name, value in spread.items())
    text = f"standard deviation of {_DRAWN:,} draws, which should be 1: {shown}"
    is_one = all(abs(value - 1.0) <= _MOST_OFF for value in spread.values())
    return _wrong_unless(is_one, "noise", text, "Do not release anything with it.")


def _disk() -> Check:
    here = Path.cwd()
    if not os.access(here, os.W_OK):
        return noted("disk", f"{here} cannot be written to", "Runs go into fedpcs-runs here: use --out.")
    free = shutil.disk_usage(here).free
    full = "Checkpoints hold the model several times over: free some, or use --out."
    return noted("disk", f"{_format.amount(free / 1e9)} GB free in {here}", full if free < _LEAST_BYTES else "")


def _data(data_dir: Path | None) -> Check:
    from fedpcs.learning.datasets import data_folder
    from fedpcs.learning.datasets.inventory import describe_all

    here = [one["name"] for one in describe_all(data_dir) if one["is_present"]]
    return Check("data", "fine", f"{', '.join(here)}; looked in {data_folder(data_dir)}")


def _extras() -> Check:
    installed, missing = [], []
    for extra, package in _EXTRAS.items():
        try:
            installed.append(f"{extra} ({package} {version(package)})")
        except PackageNotFoundError:
            missing.append(extra)
    return noted("extras", ", ".join(installed) or "none", f"If wanted: {pip_install(*missing)}" if missing else "")


def _wrong_unless(is_right: bool, subject: str, found: str, remedy: str) -> Check:
    return Check(subject, "fine", found) if is_right else Check(subject, "wrong", found, remedy)
