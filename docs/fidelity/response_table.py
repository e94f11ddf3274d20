"""How much clients could gain under each best response: printed in two orders, corrected, damped, exact.

Relative exploitability on the default game (N = 100, T = 30, K = 20, seed 0) with constant rewards: the mean gain of
a client that deviates alone over the mean absolute best utility. With the argument `--figure` the same
numbers are drawn into `exploitability.png` beside this file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from _markdown import table

from fedpcs.game import Game, certify, costate, make_game, mean_field
from fedpcs.game.payoffs import Profile, profile_from_retention

REWARDS = (1.0, 5.0, 10.0, 20.0)
MODES = ("as printed", "printed, backward", "corrected, undamped", "corrected, damped 0.1", "exact")
# Reference values in per cent, from an independent implementation: one row per reward, one column per mode. It ran the
# printed formula in one order only, and its values are those of the backward one.
REFERENCE: dict[float, tuple[float | None, ...]] = {
    1.0: (None, 28.0, 17.0, 0.5, 0.003),
    5.0: (None, 39.0, 19.0, 1.2, 0.003),
    10.0: (None, 47.0, 1.6, 0.2, 0.0005),
    20.0: (None, 45.0, 0.0, 0.0, 0.00001),
}


def sweep_theorem_1(game: Game, reward: float, *, damping: float, count: int) -> Profile:
    """Sweep the corrected Theorem 1 over whole paths from retention 0, and play what comes out."""
    population, path = game.population, game.reward_path(reward)
    aversion = population.privacy_aversion
    mean = np.full(path.size, population.mean(population.initial_budget))
    retention = np.zeros((path.size, population.num_types))
    for _ in range(count):
        terms = game.terms(path, mean)
        current = profile_from_retention(population, retention, mean)
        asked = costate.stationary_retention(current, aversion, terms, printed=False, backward=True)
        retention = retention + damping * (asked - retention)
        mean = profile_from_retention(population, retention, mean).mean_budget
    return profile_from_retention(population, retention)


def exploitability(game: Game, reward: float) -> tuple[float, ...]:
    """Return relative exploitability in per cent, one value per mode."""
    path = game.reward_path(reward)
    profiles = (
        mean_field.settle(game, path, "paper").profile,
        mean_field.settle(game, path, "paper-backward").profile,
        sweep_theorem_1(game, reward, damping=1.0, count=20),
        sweep_theorem_1(game, reward, damping=0.1, count=200),
        mean_field.settle(game, path).profile,
    )
    return tuple(100.0 * certify(profile, path, game).relative for profile in profiles)


def cell(reference: float | None, measured: float) -> str:
    """Return "reference → measured", or the measured value alone."""
    return percent(measured) if reference is None else f"{percent(reference)} → {percent(measured)}"


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
        left.bar(np.arange(len(measured)) + 0.16 * (k - 2), heights, 0.16, label=mode)
    left.set_yscale("log")
    left.set_xticks(range(len(measured)), [f"R = {reward:g}" for reward in measured])
    left.set_ylabel("relative exploitability, %")
    left.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)
    left.set_title("What clients could gain", fontsize=10)
    path = game.reward_path(5.0)
    curves = (mean_field.settle(game, path, "paper"), mean_field.settle(game, path, tolerance=1e-6))
    for found, column in zip(curves, (0, 4), strict=True):
        change = np.abs(np.diff(found.history, axis=0)).max(axis=1)
        sweeps = np.arange(1, change.size + 1)
        right.semilogy(sweeps, np.maximum(change, 1e-7), color=f"C{column}", label=MODES[column])
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
        [f"{reward:g}", *(cell(r, m) for r, m in zip(REFERENCE[reward], values, strict=True))]
        for reward, values in measured.items()
    ]
    print(table(["reward", *MODES], rows))
    if "--figure" in sys.argv[1:]:
        draw(measured, game, Path(__file__).with_name("exploitability.png"))


if __name__ == "__main__":
    main()
