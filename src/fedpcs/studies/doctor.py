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
from fedpcs._plugins import pip_install
from fedpcs._threads import num_cores
from fedpcs.trial.check import Check

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
        words = f"{type(error).__name__}: {error}"
        return Check(subject, "wrong", words, "Install fedpcs anew, in a virtual environment of its own.")


def _libraries() -> Check:
    found = [f"python {platform.python_version()}", f"fedpcs {version('fedpcs')}"]
    for name, module in _LIBRARIES.items():
        import_module(module)
        found.append(f"{name} {version(name)}")
    return Check("libraries", "fine", ", ".join(found))


def _cores() -> Check:
    pinned = os.environ.get("OMP_NUM_THREADS")
    words = f"{num_cores()} for this process" + (f", OMP_NUM_THREADS={pinned}" if pinned else "")
    if num_cores() == 1:
        return Check("cores", "note", words, "Clients train one after another. More cores let them train side by side.")
    return Check("cores", "fine", words)


def _game() -> Check:
    from fedpcs.game import equilibrium
    from fedpcs.game.population import uniform
    from fedpcs.game.rules import make_game
    from fedpcs.game.verify import certify

    found = equilibrium.solve(make_game(uniform(10, seed=0), last_round=4, cohort_size=2), 6.0)
    again = certify(found.profile, found.reward.path, found.game)
    words = f"10 clients, 5 rounds: solved; by deviating a client gains at most {again.max:.1e}"
    if not again.is_equilibrium(1e-3):
        return Check("game", "wrong", words, "Numba's kernels give wrong numbers here: try another version of Numba.")
    return Check("game", "fine", words)


def _privacy() -> Check:
    from fedpcs.privacy.conversion import METHODS, to_delta, to_epsilon

    exact, tight, standard = found = [to_epsilon(0.5, 1e-5, method) for method in METHODS]
    shown = ", ".join(f"{_format.rounded_up(epsilon)} {method}" for method, epsilon in zip(METHODS, found, strict=True))
    words = f"ρ = 0.5 at δ = 10⁻⁵: ε = {shown}"
    is_sound = exact <= tight <= standard
    comes_back = abs(to_delta(0.5, exact, "exact") / 1e-5 - 1.0) < 1e-6
    if not (is_sound and comes_back):
        return Check("privacy", "wrong", words, "SciPy's special functions give wrong numbers: try another version.")
    return Check("privacy", "fine", words)


def _noise() -> Check:
    from fedpcs.privacy.noise import NAMES, noise_source

    spread = {}
    for name in NAMES:
        source = noise_source(name, seed=0 if name == "fast" else None)
        spread[name] = float(np.std(source.draw(_DRAWN))) / (source.units_per_stddev or 1)
    words = ", ".join(f"{name} {value:.4f}" for name, value in spread.items())
    if any(abs(value - 1.0) > _MOST_OFF for value in spread.values()):
        return Check("noise", "wrong", f"standard deviation should be 1: {words}", "Do not release anything with it.")
    return Check("noise", "fine", f"standard deviation of {_DRAWN:,} draws, which should be 1: {words}")


def _disk() -> Check:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    words = f"{free / 1e9:.1f} GB free in {here}"
    if not os.access(here, os.W_OK):
        return Check("disk", "note", f"{here} cannot be written to", "Runs go into fedpcs-runs here: use --out.")
    if free < _LEAST_BYTES:
        return Check("disk", "note", words, "Checkpoints hold the model several times over: free some, or use --out.")
    return Check("disk", "fine", words)


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
    words = ", ".join(installed) or "none"
    if missing:
        return Check("extras", "note", words, f"If wanted: {pip_install(*missing)}")
    return Check("extras", "fine", words)
