"""The figures of a solved game as PNG files: convergence, budgets, rewards, response modes, welfare and caps.

Every figure is a function from the result to a `Figure`, so what is drawn can be checked number by number.
Only `draw_all` touches the disk. Populations of many types are drawn as quantile bands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.game.equilibrium import Equilibrium, merge_types
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.sampling_ratio import CohortPlan
from fedpcs.report import style
from fedpcs.report.figures.caps import caps_figure
from fedpcs.report.figures.game_comparison import response_figure, welfare_figure

_MOST_LINES = 300
_MOST_SWEEP_LINES = 40
_MOST_PAID_TYPES = 20_000


def draw_all(found: Equilibrium, plan: CohortPlan | None, folder: Path) -> list[Path]:
    """Draw every figure of a solved game into `folder` and return the files in reading order.

    Args:
        found: The solved game, converged or not.
        plan: Its cohorts under caps; None plans some under the paper's caps, scaled to the game.
        folder: An existing folder; files in it of the same names are replaced.

    Raises:
        InvalidInput: The folder cannot be written to.
    """
    figures: dict[str, Callable[[Equilibrium], Figure]] = {
        "mean_field.png": mean_field_figure,
        "budgets.png": budget_figure,
        "rewards.png": reward_figure,
        "responses.png": response_figure,
        "welfare.png": welfare_figure,
        "caps.png": lambda solved: caps_figure(solved, plan),
    }
    for name, draw in figures.items():
        style.save(draw(found), folder / name)
    return [folder / name for name in figures]


def mean_field_figure(found: Equilibrium) -> Figure:
    """Draw φ(t) sweep by sweep, the last one on top (paper, Fig. 3)."""
    history, mean = found.history, found.profile.mean_budget
    figure, (axes,) = style.new_figure("Mean budget by sweep", note=_certificate_text(found))
    shown = np.unique(np.linspace(0, len(history) - 1, min(len(history), _MOST_SWEEP_LINES)).round().astype(int))
    for index in shown[:-1]:
        colour, label = (style.VERMILION, "before the first") if index == 0 else (style.PALE, "_")
        axes.plot(history[index], color=colour, linewidth=1.0, label=label)
    axes.plot(history[-1], color=style.BLUE, linewidth=2.6, marker=style.marker(mean.size), label="last sweep")
    # Stationary responses follow an announced mean; played out, the same retentions create another one.
    if np.abs(mean - history[-1]).max() > 0.02 * np.ptp(history):
        axes.plot(mean, color=style.INK, linewidth=1.6, linestyle=style.DASHES, label="played")
    style.span(axes, np.vstack((history, mean)))
    axes.set_ylabel("mean budget φ(t), ρ of zCDP", color=style.INK)
    style.caption(axes, "Mean privacy budget before the first sweep and after each")
    style.round_axis(axes, mean.size)
    style.legend(axes)
    return figure


def _certificate_text(found: Equilibrium) -> str:
    sweeps = f"{found.iterations} sweep{'s' if found.iterations != 1 else ''}"
    gain = _format.gain(found.certificate.relative)
    if found.settled_by == "search":
        return f"The mean budget does not come to rest; in the profile kept, deviating gains {gain} on average"
    if found.status == "converged":
        return f"The mean budget settles in {sweeps}; a client that deviates gains {gain} on average"
    if found.status == "not-an-equilibrium":
        return f"Not an equilibrium: the mean budget stands still after {sweeps}, but deviating gains {gain}"
    moves = _format.amount(found.residual)
    return f"Not converged: after {sweeps} the mean budget still moves by {moves}, and deviating gains {gain}"


def budget_figure(found: Equilibrium) -> Figure:
    """Draw all clients' budgets, coloured by aversion, or quantile bands of many; their mean on top."""
    mean = found.profile.mean_budget
    figure, (axes,) = style.new_figure("Budgets over rounds")
    is_few = found.game.population.num_types <= _MOST_LINES
    if is_few:
        _draw_each(figure, axes, found)
    else:
        _draw_bands(axes, found)
    axes.plot(mean, color="white", linewidth=5.0, label="_")
    axes.plot(mean, color=style.INK, linewidth=2.6, marker=style.marker(mean.size), label="mean")
    axes.set_ylabel("privacy budget, ρ of zCDP", color=style.INK)
    style.round_axis(axes, mean.size)
    if not is_few:
        style.legend(axes)
    return figure


def _draw_each(figure: Figure, axes: Axes, found: Equilibrium) -> None:
    budget, crowd = found.profile.budget, found.game.population
    rounds = np.arange(budget.shape[0])
    lines = LineCollection(
        [np.column_stack((rounds, path)) for path in budget.T],
        array=crowd.privacy_aversion,
        cmap="viridis",
        clim=(0.0, 1.0),
        linewidths=1.0,
        alpha=0.8,
    )
    axes.add_collection(lines)
    style.span(axes, budget)
    bar = figure.colorbar(lines, ax=axes, pad=0.02, aspect=30)
    bar.set_label("privacy aversion ψ", color=style.INK)
    bar.outline.set_visible(False)
    style.caption(axes, f"One line per {'client' if crowd.is_individual else 'type of client'}; thick: their mean")


def _draw_bands(axes: Axes, found: Equilibrium) -> None:
    budget, crowd = found.profile.budget, found.game.population
    # Equal weights need no sorting, which a million clients would feel.
    weight = None if crowd.is_individual else crowd.weight

    def quantiles(values: FloatArray, *levels: float) -> FloatArray:
        return np.quantile(values, levels, weights=weight, method="inverted_cdf")

    low, lower, upper, high = np.array([quantiles(row, 0.05, 0.25, 0.75, 0.95) for row in budget]).T
    axes.fill_between(range(len(low)), low, high, color=style.PALE, alpha=0.45, linewidth=0)
    axes.fill_between(range(len(low)), lower, upper, color=style.PALE, linewidth=0)
    edges = quantiles(crowd.privacy_aversion, 0.25, 0.75)
    for who, colour, label in (
        (crowd.privacy_aversion <= edges[0], style.GREEN, "least averse quarter"),
        (crowd.privacy_aversion >= edges[1], style.VERMILION, "most averse quarter"),
    ):
        axes.plot(budget @ (crowd.weight * who / crowd.weight[who].sum()), color=colour, linewidth=1.8, label=label)
    style.span(axes, np.array([low, high]))
    what = f"{crowd.num_types:,} {'clients' if crowd.is_individual else 'types of client'}"
    style.caption(axes, f"{what}: light band 5–95 % of clients, dark 25–75 %, lines are means")


def reward_figure(found: Equilibrium) -> Figure:
    """Draw the rewards R_t above and what each round costs the server below, payments set apart."""
    path, cost, rounds = found.reward.path, found.cost, found.cost.size
    paid = payments(found)
    note = "" if found.reward.is_settled else f"The {found.reward.policy} policy's own iteration did not come to rest."
    figure, (top, bottom) = style.new_figure("Rewards and cost", note=note, height_inches=6.2, num_rows=2)
    top.plot(path, color=style.BLUE, linewidth=2.2, marker=style.marker(rounds), clip_on=False)
    style.span(top, path, from_zero=True)
    top.set_ylabel("reward $R_t$\n(per unit of budget)", color=style.INK)
    style.caption(top, f"Rewards announced (policy: {found.reward.policy})")
    bottom.fill_between(range(rounds), paid, color=style.ORANGE, alpha=0.35, linewidth=0)
    bottom.plot(paid, color=style.DARK_ORANGE, linewidth=1.2, label="of it, rewards")
    bottom.plot(cost, color=style.INK, linewidth=2.2, marker=style.marker(rounds), label="cost")
    style.span(bottom, cost, from_zero=True)
    bottom.set_ylabel("cost per round", color=style.INK)
    style.caption(bottom, "The server's expected cost: accuracy lost plus rewards paid, as it weighs them")
    style.legend(bottom)
    style.round_axis(top, rounds, label="")
    style.round_axis(bottom, rounds)
    return figure


def payments(found: Equilibrium) -> FloatArray:
    """Return the weighted rewards in the server's cost, (1−γ) R_t Σ π_i ρ_i: (rounds,)."""
    game, budget = merge_types(found, _MOST_PAID_TYPES)
    count = game.population.client_count
    spent = [
        float(count @ (cohort_inclusion(row, float(size), game) * row))
        for row, size in zip(budget, game.cohort_size, strict=True)
    ]
    return np.asarray((1.0 - game.accuracy_priority) * found.reward.path * np.array(spent))
