"""Accuracy against what it cost, in privacy or in rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle, line_styles, short
from fedpcs.studies.points import TradeOff

Cost = Literal["epsilon", "paid"]
_SHAPES = ("o", "s", "^", "D", "v", "P")
_WIDE_RANGE = 10.0
_AGAINST = {"epsilon": "ε of the median client", "paid": "rewards paid, all clients and rounds"}


def tradeoff_figure(points: Sequence[TradeOff], against: Cost, title: str, note: str = "") -> Figure:
    """Draw accuracy against what it cost: a colour for each sampler, a shape for each aggregation rule.

    Thin lines are the points' ways; points that share theirs have one. A point that cost no finite amount has no place
    on the axis and is named in the note.

    Raises:
        NothingToDraw: No point has a place.
    """
    found = {point: float(point.epsilon_median if against == "epsilon" else point.paid) for point in points}
    costs = {point: cost for point, cost in found.items() if math.isfinite(cost) and math.isfinite(point.accuracy_mean)}
    if not costs:
        raise NothingToDraw(f"No run has both an accuracy and a finite {_AGAINST[against]}.")
    without = dict.fromkeys(f"{point.label} ({point.rule})" for point in points if point not in costs)
    left_out = f"Not drawn, having no finite cost or accuracy: {', '.join(without)}." if without else ""
    figure, (axes,) = style.new_figure(title, note=f"{note} {left_out}".strip(), height_inches=4.2)
    styles = line_styles(point.label for point in points)
    shapes = dict(zip(dict.fromkeys(point.rule for point in points), _SHAPES * len(points), strict=False))
    seen, drawn = [], set()
    for point, cost in costs.items():
        look, way = styles[point.label], _way(point, against)
        if way.size and (point.label, point.way) not in drawn:
            drawn.add((point.label, point.way))
            axes.plot(*way.T, color=look.colour, linestyle=look.stroke, linewidth=0.9, alpha=0.6)
        _draw_point(axes, cost, point, look, shapes[point.rule])
        seen += [*way[:, 0], cost]
    _fit_costs(axes, np.array(seen), _AGAINST[against])
    style.percent_ticks(axes.yaxis)
    axes.set_ylabel("accuracy, mean ± 1 std")
    named = [Line2D([], [], marker="o", **styles[name].line) for name in dict.fromkeys(one.label for one in costs)]
    rules = [
        Line2D([], [], marker=shape, color=style.INK, linestyle="", label=short(rule)) for rule, shape in shapes.items()
    ]
    style.legend(axes, named + (rules if len(rules) > 1 else []))
    return figure


def _way(point: TradeOff, against: Cost) -> FloatArray:
    """Return (places, 2) cost and accuracy; only where something was spent, for a log scale's sake."""
    way = np.array(point.way).reshape(-1, 3)[:, [0 if against == "epsilon" else 1, 2]]
    return np.asarray(way[np.isfinite(way).all(axis=1) & (way[:, 0] > 0.0)])


def _draw_point(axes: Axes, cost: float, point: TradeOff, look: LineStyle, shape: str) -> None:
    axes.errorbar(
        cost,
        point.accuracy_mean,
        yerr=point.accuracy_std if math.isfinite(point.accuracy_std) else 0.0,
        color=look.colour,
        marker=shape,
        markersize=7.0,
        markerfacecolor="white" if look.is_hollow else look.colour,
        markeredgewidth=1.4,
        elinewidth=1.1,
    )


def _fit_costs(axes: Axes, costs: FloatArray, label: str) -> None:
    low, high = float(costs.min()), float(costs.max())
    if low > 0.0 and high / low > _WIDE_RANGE:
        axes.set_xscale("log")
        style.log_ticks(axes.xaxis, low, high)
        label += " (log scale)"
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        style.plain_ticks(axes.xaxis)
    axes.margins(x=0.08)
    axes.set_xlabel(label)
