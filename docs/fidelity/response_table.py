"""How much clients could gain under each best response: printed, corrected, corrected and damped, exact.

Relative exploitability on the default game (N = 100, T = 30, K = 20, seed 0) with constant rewards: the mean gain of
a client that deviates alone over the mean absolute best utility. With the argument `--figure` the same
numbers are drawn into `exploitability.png` beside this file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _markdown import table

from fedpcs.game import Game, certify, costate, make_game, mean_field
from fedpcs.game.payoffs import Profile, profile_from_retention

REWARDS = (1.0, 5.0, 10.0, 20.0)
MODES = ("as printed", "corrected, undamped", "corrected, damped 0.1", "exact")
# Reference values in per cent, from an independent implementation: one row per reward, one column per mode.
REFERENCE = {
    1.0: (28.0, 17.0, 0.5, 0.003),
    5.0: (39.0, 19.0, 1.2, 0.003),
    10.0: (47.0, 1.6, 0.2, 0.0005),
    20.0: (45.0, 0.0, 0.0, 0.00001),
}


@dataclass(frozen=True)
class Sweeps:
    """Where an iteration of Theorem 1 ended, and max_t |Δφ(t)| of each sweep."""

    profile: Profile
    residuals: list[float]


def sweep_theorem_1(game: Game, reward: float, *, printed: bool, damping: float, count: int) -> Sweeps:
    """Sweep Theorem 1 over whole paths from retention 0, φ always that of the sweep before."""
    population, path = game.population, game.reward_path(reward)
    mean = np.full(path.size, population.mean(population.initial_budget))
    retention = np.zeros((path.size, population.num_types))
    residuals = []
    for _ in range(count):
        terms = game.terms(path, mean)
        current = costate.follow(retention, terms, population)
        asked = costate.stationary_retention(current, population.privacy_aversion, terms, printed=printed)
        retention = retention + damping * (asked - retention)
        before, mean = mean, costate.follow(retention, terms, population).mean_budget
        residuals.append(float(np.abs(mean - before).max()))
    return Sweeps(profile_from_retention(population, retention), residuals)


def exploitability(game: Game, reward: float) -> tuple[float, ...]:
    """Return relative exploitability in per cent, one value per mode."""
    profiles = (
        sweep_theorem_1(game, reward, printed=True, damping=1.0, count=20).profile,
        sweep_theorem_1(game, reward, printed=False, damping=1.0, count=20).profile,
        sweep_theorem_1(game, reward, printed=False, damping=0.1, count=200).profile,
        mean_field.settle(game, game.reward_path(reward)).profile,
    )
    return tuple(100.0 * certify(p, game.reward_path(reward), game).relative for p in profiles)


def percent(value: float) -> str:
    """Return two figures, and 0 for what is below 1e-5 per cent."""
    return "0" if value < 1e-5 else f"{value:.2g}" if value < 1.0 else f"{value:.1f}"


def draw(measured: dict[float, tuple[float, ...]], game: Game, target: Path) -> None:
    """Draw exploitability by mode, and how far φ still moves sweep by sweep."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    for k, mode in enumerate(MODES):
        heights = [max(row[k], 1e-5) for row in measured.values()]
        left.bar(np.arange(len(measured)) + 0.2 * (k - 1.5), heights, 0.2, label=mode)
    left.set_yscale("log")
    left.set_xticks(range(len(measured)), [f"R = {reward:g}" for reward in measured])
    left.set_ylabel("relative exploitability, %")
    left.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)
    left.set_title("What clients could gain", fontsize=10)
    printed = sweep_theorem_1(game, 5.0, printed=True, damping=1.0, count=100).residuals
    exact = mean_field.settle(game, game.reward_path(5.0), tolerance=1e-6).history
    right.semilogy(range(1, 101), printed, label=MODES[0])
    change = np.abs(np.diff(exact, axis=0)).max(axis=1)
    right.semilogy(range(1, change.size + 1), np.maximum(change, 1e-7), color="C3", label=MODES[3])
    right.set_xlabel("sweep")
    right.set_ylabel("max |Δφ(t)|")
    right.legend(fontsize=7)
    right.set_title("Does φ come to rest? (R = 5)", fontsize=10)
    figure.savefig(target, dpi=110)


def main() -> None:
    """Print reference and measured values side by side."""
    game = make_game()
    measured = {reward: exploitability(game, reward) for reward in REWARDS}
    rows = [
        [f"{reward:g}", *(f"{percent(r)} → {percent(m)}" for r, m in zip(REFERENCE[reward], values, strict=True))]
        for reward, values in measured.items()
    ]
    print(table(["reward", *MODES], rows))
    if "--figure" in sys.argv[1:]:
        draw(measured, game, Path(__file__).with_name("exploitability.png"))


if __name__ == "__main__":
    main()
