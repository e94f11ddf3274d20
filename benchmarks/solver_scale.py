"""How long the equilibrium solver takes, and how its time and memory grow with the number of clients.

Shows, for fixed rewards and T = 30: (a) N = 100 solved warm, and from a cold process with a warm and with an
empty compilation cache; (b) N = 10² … 10⁶ clients one by one, each N in a process of its own so that its peak
memory is its own; (c) the same N as a histogram; (d) one client's best response; (e) the exponent of time
against N.

Against: one plain NumPy evaluation of everybody's utility on the profile found, which no solver can do
without; for cold starts a process that only imports the same libraries; and the project's own targets.

Fairness: both sides of a ratio are timed in the same run, as wall-clock time. Compilation is off the clock,
except where a cold start is what is measured. A time is the median of its repeats; 10⁵ clients and more are
solved once. CPU seconds add up all threads; on a busy machine they move less than wall-clock seconds do.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from timing import median_seconds, peak_gib, table

from fedpcs.game import Game, best_response, certify, make_game, solve, uniform, uniform_density
from fedpcs.game.mean_field import settle
from fedpcs.game.payoffs import client_utility

REWARDS = (1.0, 5.0, 10.0, 20.0)
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = SIZES[:3]
WARM_TARGET_SECONDS = 0.5
COLD_TARGET_SECONDS = 5.0
MILLION_TARGET_SECONDS = 60.0
MILLION_TARGET_GIB = 4.0
GROWTH_FROM = 10_000  # below, the table of values and the certificate cost more than the clients do
_RUN_SOLVE = "from fedpcs.cli import main; main()"
_ONLY_IMPORT = "import numba, pydantic, rich.console, scipy.optimize, typer"


@dataclass(frozen=True)
class Measured:
    """One game, solved and certified.

    Attributes:
        num_clients: N.
        seconds: Solve and certificate, wall-clock.
        cpu_seconds: The same, all threads added up.
        yardstick_seconds: One NumPy evaluation of every client's utility.
        peak_gib: Largest resident memory of the process while solving.
        sweeps: Sweeps over the mean field.
        exploitability: The certificate's mean gain over the mean best utility.
    """

    num_clients: int
    seconds: float
    cpu_seconds: float
    yardstick_seconds: float
    peak_gib: float
    sweeps: int
    exploitability: float

    @property
    def ratio(self) -> float:
        """Time of the solve over time of one evaluation."""
        return self.seconds / self.yardstick_seconds


def compile_kernels() -> None:
    """Solve two small games, so that the kernels of small and of large populations exist."""
    for num_clients in (50, 2_500):
        solve(make_game(uniform(num_clients, seed=1), last_round=2), 5.0)


def measure(game: Game, reward: float, repeats: int) -> Measured:
    """Solve `game` `repeats` times and evaluate the profile found as often."""
    cpu_began = time.process_time()
    times = [0.0] * repeats
    for k in range(repeats):
        began = time.perf_counter()
        found = solve(game, reward)
        times[k] = time.perf_counter() - began
    cpu_seconds = (time.process_time() - cpu_began) / repeats
    peak = peak_gib()
    profile, aversion = found.profile, game.population.privacy_aversion
    evaluate = partial(client_utility, profile.budget, profile.retention, aversion, found.terms)
    yardstick = median_seconds(evaluate, repeats)
    return Measured(
        game.num_clients,
        float(np.median(times)),
        cpu_seconds,
        yardstick,
        peak,
        found.iterations,
        found.certificate.relative,
    )


def measure_apart(num_clients: int, reward: float) -> Measured:
    """Measure a population given one by one in a process of its own."""
    # A child starts with its parent's peak, so the parent must stay small: it never holds a large population.
    command = [sys.executable, __file__, "--measure", str(num_clients), str(reward)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout))


def measure_here(num_clients: int, reward: float) -> Measured:
    """Measure a population given one by one in this process, kernels compiled beforehand."""
    compile_kernels()
    repeats = 3 if num_clients < 100_000 else 1
    return measure(make_game(uniform(num_clients, seed=0)), reward, repeats)


def warm_rows(game: Game, rewards: tuple[float, ...], repeats: int = 5) -> list[list[str]]:
    """Return a row per reward: solve with certificate, solve alone, certificate alone."""
    compile_kernels()
    rows = []
    for reward in rewards:
        path = game.reward_path(reward)
        whole = measure(game, reward, repeats)
        alone = median_seconds(partial(settle, game, path), repeats)
        profile = settle(game, path).profile
        check = median_seconds(partial(certify, profile, path, game), repeats)
        times = [f"{s:.3f}" for s in (whole.seconds, whole.cpu_seconds, alone, check)]
        ratios = [f"{whole.ratio:.0f}", f"{whole.seconds / WARM_TARGET_SECONDS:.2f}"]
        rows.append([f"R = {reward:g}", *times, str(whole.sweeps), f"{whole.exploitability:.1e}", *ratios])
    return rows


def cold_rows(reward: float, repeats: int = 3) -> list[list[str]]:
    """Return rows for `fedpcs solve` in a new process: imports only, warm cache, empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        game_file = Path(folder, "game.toml")
        game_file.write_text(f"num_clients = 100\nlast_round = 30\nreward = {reward}\n", encoding="utf-8")
        environment = os.environ | {"NUMBA_CACHE_DIR": str(Path(folder, "cache"))}

        def start(program: str) -> None:
            command = [sys.executable, "-c", program, "solve", str(game_file), "--json"]
            subprocess.run(command, check=True, capture_output=True, env=environment)

        empty = _wall_and_cpu(partial(start, _RUN_SOLVE), 1)  # fills the cache for the runs below
        warm = _wall_and_cpu(partial(start, _RUN_SOLVE), repeats)
        imports = _wall_and_cpu(partial(start, _ONLY_IMPORT), repeats)
    return [
        [name, f"{wall:.2f}", f"{cpu:.2f}", f"{wall / imports[0]:.1f}", f"{wall / COLD_TARGET_SECONDS:.2f}"]
        for name, (wall, cpu) in (("imports only", imports), ("warm cache", warm), ("empty cache", empty))
    ]


def _wall_and_cpu(start: Callable[[], None], repeats: int) -> tuple[float, float]:
    """Return the median wall-clock and the mean CPU seconds of starting a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = median_seconds(start, repeats)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / repeats


def individual_row(found: Measured) -> list[str]:
    """Return the row of one population given one by one."""
    is_million = found.num_clients == 1_000_000
    targets = (f"{found.seconds / MILLION_TARGET_SECONDS:.2f}", f"{found.peak_gib / MILLION_TARGET_GIB:.2f}")
    return [
        f"{found.num_clients:,}",
        f"{found.seconds:.2f}",
        f"{found.cpu_seconds:.2f}",
        f"{found.peak_gib:.2f}",
        str(found.sweeps),
        f"{found.exploitability:.1e}",
        f"{found.ratio:.0f}",
        *(targets if is_million else ("", "")),
    ]


def histogram_rows(sizes: tuple[int, ...], reward: float, repeats: int = 3) -> list[list[str]]:
    """Return a row per N for the density of the same population, and its time against the smallest N."""
    compile_kernels()
    found = [measure(make_game(uniform_density(size)), reward, repeats) for size in sizes]

    def row(one: Measured) -> list[str]:
        ratio = one.seconds / found[0].seconds
        return [f"{one.num_clients:,}", f"{one.seconds:.2f}", f"{one.exploitability:.1e}", f"{ratio:.2f}"]

    return [row(one) for one in found]


def response_row(game: Game, reward: float) -> list[str]:
    """Return median and 95th percentile of `best_response` over the game's clients, in milliseconds."""
    found, crowd = solve(game, reward), game.population
    pairs = zip(crowd.privacy_aversion.tolist(), crowd.initial_budget.tolist(), strict=True)
    times = [median_seconds(partial(best_response, found.terms, *pair), 3) for pair in pairs]
    milliseconds = 1e3 * np.percentile(times, (50, 95))
    return [f"{len(times)} clients", f"{milliseconds[0]:.2f}", f"{milliseconds[1]:.2f}"]


def growth(found: list[Measured]) -> float | None:
    """Return the exponent b of seconds ~ N^b over the larger populations, or None if there are too few."""
    large = [m for m in found if m.num_clients >= GROWTH_FROM]
    if len(large) < 2:
        return None
    size, seconds = (np.log([getattr(m, name) for m in large]) for name in ("num_clients", "seconds"))
    return float(np.polyfit(size, seconds, 1)[0])


def report(sizes: tuple[int, ...], reward: float) -> None:
    """Print all five parts."""
    game = make_game(uniform(100, seed=0))
    parts = ["", "solve + certificate s", "CPU s", "solve s", "certificate s", "sweeps", "exploitability"]
    print(table("N = 100, warm", [*parts, "× one evaluation", "÷ target"], warm_rows(game, REWARDS)))
    cold = ["new process", "s", "CPU s", "× imports only", "÷ target"]
    print(table("N = 100, cold", cold, cold_rows(reward)), flush=True)
    found = [measure_apart(size, reward) for size in sizes]
    header = ["N", "s", "CPU s", "peak GiB", "sweeps", "exploitability", "× one evaluation"]
    rows = [individual_row(m) for m in found]
    print(table(f"One by one, R = {reward:g}", [*header, "s ÷ target", "GiB ÷ target"], rows), flush=True)
    exponent = growth(found)
    print("\nToo few sizes to fit growth." if exponent is None else f"\nTime grows as N^{exponent:.2f}.")
    header = ["N", "s", "exploitability", "÷ first row"]
    print(table(f"Histogram, R = {reward:g}", header, histogram_rows(sizes, reward)), flush=True)
    print(table("best_response", ["", "median ms", "95 % ms"], [response_row(game, reward)]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of the equilibrium solver against N.")
    parser.add_argument("--quick", action="store_true", help="stop at 10,000 clients")
    parser.add_argument("--reward", type=float, default=5.0, help="the constant reward of (b) to (d)")
    parser.add_argument("--measure", nargs=2, metavar=("N", "R"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        size, reward = options.measure
        print(json.dumps(asdict(measure_here(int(size), float(reward)))))
        return
    report(QUICK_SIZES if options.quick else SIZES, options.reward)


if __name__ == "__main__":
    main()
