"""Accuracy against what it cost, in privacy or in rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fedpcs._validate import FloatArray
from fedpcs.experiments import figure_style as style
from fedpcs.experiments.run_figures_page import NothingToDraw
from fedpcs.experiments.sweep_labels import PointLabel, label_points
from fedpcs.experiments.sweep_pens import Pen, pens
from fedpcs.experiments.sweep_points import TradeOff

# Shapes for aggregation rules, and letters that look like them for the key.
_SHAPES = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"))
_MARKER_POINTS = 7.0
_WIDE_RANGE = 10.0
_AGAINST = {"epsilon": "ε of the median client", "paid": "rewards paid, all clients and rounds"}


def tradeoff_figure(
    points: Sequence[TradeOff], against: Literal["epsilon", "paid"], title: str, note: str = ""
) -> Figure:
    """Draw accuracy against what it cost: a colour for each sampler, a shape for each aggregation rule.

    A thin line is the way training came there, round by round. A sampler's name stands once. A point that cost no
    finite amount has no place on the axis and is named in the note.

    Raises:
        NothingToDraw: No point has a place.
    """
    costs = {point: float(point.epsilon_median if against == "epsilon" else point.paid) for point in points}
    shown = [point for point in points if math.isfinite(costs[point]) and math.isfinite(point.accuracy_mean)]
    if not shown:
        raise NothingToDraw(f"No run has both an accuracy and a finite {_AGAINST[against]}.")
    words = " ".join(filter(None, (note, _left_out(points, shown))))
    figure, (axes,) = style.new_figure(title, note=words, height_inches=4.2)
    looks, rules = pens(point.label for point in points), list(dict.fromkeys(point.rule for point in points))
    shapes = {rule: _SHAPES[k % len(_SHAPES)] for k, rule in enumerate(rules)}
    for point in shown:
        pen = looks[point.label]
        way = _way(point, against)
        if way.size:
            axes.plot(*way.T, color=pen.colour, linestyle=pen.stroke, linewidth=0.9, alpha=0.6, zorder=1.5)
        _draw_point(axes, costs[point], point, pen, shapes[point.rule][0])
    begun = [float(way[0, 0]) for point in shown if (way := _way(point, against)).size]
    _fit_costs(axes, np.array([*(costs[point] for point in shown), *begun]), _AGAINST[against])
    spread = np.array([[-1.0], [1.0]]) * np.nan_to_num([point.accuracy_std for point in shown])
    style.span(axes, (spread + [point.accuracy_mean for point in shown]).ravel())
    percent_ticks(axes)
    axes.set_ylabel("accuracy, mean ± 1 std", color=style.INK)
    if len(rules) > 1:
        key = "   ".join(f"{shapes[rule][1]}\N{NO-BREAK SPACE}{rule}" for rule in rules)
        style.caption(axes, style.wrapped(key.replace("$", r"\$"), 58))
    _label_samplers(axes, shown, costs, looks)
    return figure


def _way(point: TradeOff, against: Literal["epsilon", "paid"]) -> FloatArray:
    """Return (rounds, 2) cost and accuracy; only where something was spent, for a log scale's sake."""
    way = np.array(point.way).reshape(-1, 3)[:, [0 if against == "epsilon" else 1, 2]]
    return np.asarray(way[np.isfinite(way).all(axis=1) & (way[:, 0] > 0.0)])


def _left_out(points: Sequence[TradeOff], shown: Sequence[TradeOff]) -> str:
    names = dict.fromkeys(f"{point.label} ({point.rule})" for point in points if point not in shown)
    return f"Not drawn, having no finite cost or accuracy: {', '.join(names)}." if names else ""


def _draw_point(axes: Axes, cost: float, point: TradeOff, pen: Pen, shape: str) -> None:
    spread = point.accuracy_std if math.isfinite(point.accuracy_std) else 0.0
    axes.errorbar(
        cost,
        point.accuracy_mean,
        yerr=spread,
        color=pen.colour,
        marker=shape,
        markersize=_MARKER_POINTS + (1.0 if pen.colour == style.BLUE else 0.0),
        markerfacecolor="white" if pen.is_hollow else pen.colour,
        markeredgecolor=pen.colour,
        markeredgewidth=1.4,
        elinewidth=1.1,
        zorder=3.0 if pen.colour == style.BLUE else 2.5,
    )


def _fit_costs(axes: Axes, costs: FloatArray, words: str) -> None:
    low, high = float(costs.min()), float(costs.max())
    if low > 0.0 and high / low > _WIDE_RANGE:
        axes.set_xscale("log")
        axes.set_xlim(low / (high / low) ** 0.08, high * (high / low) ** 0.08)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 500.0 else (1.0,)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        words += " (log scale)"
    else:
        room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        axes.set_xlim(low - room, high + room)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel(words, color=style.INK)


def _label_samplers(axes: Axes, shown: Sequence[TradeOff], costs: dict[TradeOff, float], looks: dict[str, Pen]) -> None:
    """Name each sampler once, at the point where it is most accurate."""
    best: dict[str, TradeOff] = {}
    for point in shown:
        if point.label not in best or point.accuracy_mean > best[point.label].accuracy_mean:
            best[point.label] = point
    labels = [
        PointLabel(looks[label].name, costs[point], point.accuracy_mean, looks[label].colour)
        for label, point in best.items()
    ]
    middle = np.array([(costs[point], point.accuracy_mean) for point in shown])
    spread = np.array([(0.0, 0.0 if math.isnan(point.accuracy_std) else point.accuracy_std) for point in shown])

    def obstacles(pixels: float) -> tuple[FloatArray, FloatArray]:
        half, thin = (0.5 * _MARKER_POINTS + 1.5) * pixels, 1.5 * pixels
        centre = axes.transData.transform(middle)
        low, high = axes.transData.transform(middle - spread), axes.transData.transform(middle + spread)
        markers = np.hstack((centre - half, centre + half))
        bars = np.column_stack((low[:, 0] - thin, low[:, 1], high[:, 0] + thin, high[:, 1]))
        return markers, bars

    label_points(axes, labels, obstacles)


def percent_ticks(axes: Axes) -> None:
    """Write shares on y in per cent."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))
