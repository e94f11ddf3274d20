"""The figures of a solved game as PNG files: convergence, budgets, rewards, response modes, welfare and caps.

Every figure is a function from the result to a `Figure`, so what is drawn can be checked number by number.
Only `draw_all` touches the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.game.equilibrium import Equilibrium, merge_types
from fedpcs.game.payoffs import cohort_inclusion
from fedpcs.game.sampling_ratio import CohortPlan
from fedpcs.report import style
from fedpcs.report.figures.caps import caps_figure
from fedpcs.report.figures.game_comparison import response_figure, welfare_figure
from fedpcs.report.figures.lines import Line, draw_lines, lines_figure
from fedpcs.report.palette import LineStyle

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
    rounds = np.arange(mean.size, dtype=np.float64)
    figure, (axes,) = style.new_figure("Mean budget before the first sweep and after each", note=_certificate(found))
    shown = np.unique(np.linspace(0, len(history) - 1, min(len(history), _MOST_SWEEP_LINES)).round().astype(int))
    axes.plot(history[shown].T, color=style.PALE, linewidth=1.0, label="_")
    lines = {"before the first": Line(rounds, history[0]), "last sweep": Line(rounds, history[-1])}
    # Stationary responses follow an announced mean; played out, the same retentions create another one.
    if np.abs(mean - history[-1]).max() > 0.02 * np.ptp(history):
        lines["played"] = Line(rounds, mean)
    draw_lines(axes, lines, "mean budget φ(t), ρ of zCDP", styles=_styles(lines))
    style.span(axes, np.vstack((history, mean)))
    return figure


def _styles(names: dict[str, Line]) -> dict[str, LineStyle]:
    """Return styles for lines that are no samplers, the strongest for the one a figure is about."""
    looks = {
        "before the first": (style.VERMILION, "solid", 1.2),
        "last sweep": (style.BLUE, "solid", 2.6),
        "played": (style.INK, style.DASHES, 1.6),
        "mean": (style.INK, "solid", 2.6),
        "least averse quarter": (style.GREEN, "solid", 1.8),
        "most averse quarter": (style.VERMILION, "solid", 1.8),
        "rewards announced": (style.BLUE, "solid", 2.2),
        "of it, rewards": (style.DARK_ORANGE, "solid", 1.2),
        "cost": (style.INK, "solid", 2.2),
    }
    return {name: LineStyle(name, *looks[name]) for name in names}


def _certificate(found: Equilibrium) -> str:
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
    """Draw clients' mean budget in a band of most clients, and the means of those most and least averse."""
    budget, crowd = found.profile.budget, found.game.population
    rounds = np.arange(len(budget), dtype=np.float64)
    # Equal weights need no sorting, which a million clients would feel.
    weight = None if crowd.is_individual else crowd.weight

    def quantiles(values: FloatArray, *levels: float) -> FloatArray:
        return np.quantile(values, levels, weights=weight, method="inverted_cdf")

    low, high = np.array([quantiles(row, 0.05, 0.95) for row in budget]).T
    edges = quantiles(crowd.privacy_aversion, 0.25, 0.75)
    lines = {"mean": Line(rounds, found.profile.mean_budget, low, high)}
    for name, who in (
        ("least averse quarter", crowd.privacy_aversion <= edges[0]),
        ("most averse quarter", crowd.privacy_aversion >= edges[1]),
    ):
        lines[name] = Line(rounds, budget @ (crowd.weight * who / crowd.weight[who].sum()))
    note = "Means over clients; the band holds 5 to 95 % of them."
    return lines_figure("Budgets over rounds", lines, "privacy budget, ρ of zCDP", note=note, styles=_styles(lines))


def reward_figure(found: Equilibrium) -> Figure:
    """Draw the rewards R_t above and what each round costs the server below, payments set apart."""
    rounds = np.arange(found.cost.size, dtype=np.float64)
    note = "" if found.reward.is_settled else f"The {found.reward.policy} policy's own iteration did not come to rest."
    figure, (top, bottom) = style.new_figure("Rewards and cost", note=note, height_inches=6.2, num_rows=2)
    rewards = {"rewards announced": Line(rounds, found.reward.path)}
    draw_lines(top, rewards, "reward $R_t$\n(per unit of budget)", styles=_styles(rewards), from_zero=True)
    style.caption(top, f"Rewards announced (policy: {found.reward.policy})")
    costs = {"of it, rewards": Line(rounds, payments(found)), "cost": Line(rounds, found.cost)}
    draw_lines(bottom, costs, "cost per round", styles=_styles(costs), from_zero=True)
    style.caption(bottom, "The server's expected cost: accuracy lost plus rewards paid, as it weighs them")
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
