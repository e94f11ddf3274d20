"""Accuracy against what it cost, in privacy or in rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.labels import PointLabel, label_points
from fedpcs.report.palette import Pen, pens, short
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.points import TradeOff

Cost = Literal["epsilon", "paid"]
# Shapes for aggregation rules, and letters that look like them for the key.
_SHAPES = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"))
_MARKER_POINTS = 7.0
_WIDE_RANGE = 10.0
_AGAINST = {"epsilon": "ε of the median client", "paid": "rewards paid, all clients and rounds"}
# A crowd fits into twice these shares of the panel's width and height: there, no eye tells points apart.
_CROWD = np.array([0.15, 0.06])


@dataclass(frozen=True)
class _Sight:
    """What is to be drawn, and how.

    Attributes:
        costs: Of each point that has a place.
        ways: (places, 2) cost and accuracy along the line that is drawn with each.
        pens: By sampler.
        shapes: By rule: a marker, and a letter that looks like it.
    """

    costs: dict[TradeOff, float]
    ways: dict[TradeOff, FloatArray]
    pens: dict[str, Pen]
    shapes: dict[str, tuple[str, str]]

    def ends(self, points: Sequence[TradeOff]) -> FloatArray:
        """Return (points, 2) cost and accuracy."""
        return np.array([(self.costs[point], point.accuracy_mean) for point in points])


def tradeoff_figure(points: Sequence[TradeOff], against: Cost, title: str, note: str = "") -> Figure:
    """Draw accuracy against what it cost: a colour for each sampler, a shape for each aggregation rule.

    Thin lines are the points' ways; points that share theirs have one. A sampler's name stands once. Where most
    samplers end in one corner, that corner is drawn again below, enlarged. A point that cost no finite amount has no
    place on the axis and is named in the note.

    Raises:
        NothingToDraw: No point has a place.
    """
    found = {point: float(point.epsilon_median if against == "epsilon" else point.paid) for point in points}
    costs = {point: cost for point, cost in found.items() if math.isfinite(cost) and math.isfinite(point.accuracy_mean)}
    if not costs:
        raise NothingToDraw(f"No run has both an accuracy and a finite {_AGAINST[against]}.")
    shown, rules = list(costs), list(dict.fromkeys(point.rule for point in points))
    sight = _Sight(
        costs,
        {point: _way(point, against) for point in shown},
        pens(point.label for point in points),
        {rule: _SHAPES[k % len(_SHAPES)] for k, rule in enumerate(rules)},
    )
    words = " ".join(filter(None, (note, _left_out(points, shown))))
    crowd = _crowd(sight)
    if not crowd:
        figure, (axes,) = style.new_figure(title, note=words, height_inches=4.2)
        _draw_panel(axes, sight, shown, _AGAINST[against])
        begun = [float(way[0, 0]) for way in sight.ways.values() if way.size]
        _fit_costs(axes, np.array([*costs.values(), *begun]), _AGAINST[against])
        _label(axes, sight, shown, _names(sight, shown))
        return figure
    figure, (overview, enlarged) = style.new_figure(title, note=words, height_inches=6.8, row_heights=(2.0, 3.0))
    _draw_panel(enlarged, sight, crowd, _AGAINST[against])
    _draw_overview(overview, sight, crowd, _AGAINST[against], enlarged)
    _label(enlarged, sight, crowd, _names(sight, crowd))
    return figure


def _crowd(sight: _Sight) -> list[TradeOff]:
    """Return the thickest crowd, if it has half of the samplers and a third of the points, and is not all there is.

    Of crowds as thick as one another it is the most accurate.
    """
    shown = list(sight.costs)
    ends = sight.ends(shown)
    seen = np.vstack((ends, *sight.ways.values()))
    if seen[:, 0].min() > 0.0 and np.ptp(np.log(seen[:, 0])) > math.log(_WIDE_RANGE):
        ends, seen = (np.column_stack((np.log(one[:, 0]), one[:, 1])) for one in (ends, seen))
    size = np.ptp(seen, axis=0)
    is_near = np.all(np.abs(ends[:, None] - ends[None]) <= _CROWD * size, axis=2)
    crowds = [[shown[k] for k in np.flatnonzero(row)] for row in is_near]
    crowd = max(crowds, key=lambda some: (len(some), max(point.accuracy_mean for point in some)))
    num_inside, num_all = (len({point.label for point in some}) for some in (crowd, shown))
    is_thick = num_inside > 1 and 2 * num_inside >= num_all and 3 * len(crowd) >= len(shown)
    is_everything = bool(np.all(np.ptp(sight.ends(crowd), axis=0) >= 0.5 * np.ptp(seen, axis=0)))
    return crowd if is_thick and not is_everything else []


def _draw_panel(axes: Axes, sight: _Sight, points: Sequence[TradeOff], words: str) -> None:
    """Draw some points and the ways to them, as near as shows them all."""
    _draw_points(axes, sight, points, _MARKER_POINTS)
    ends = sight.ends(points)
    _fit_costs(axes, ends[:, 0], words)
    spread = np.array([[-1.0], [1.0]]) * np.nan_to_num([point.accuracy_std for point in points])
    style.span(axes, (spread + ends[:, 1]).ravel())
    percent_ticks(axes)
    axes.set_ylabel("accuracy, mean ± 1 std", color=style.INK)
    rules = [rule for rule in sight.shapes if any(point.rule == rule for point in points)]
    if len(sight.shapes) > 1:
        key = (f"{sight.shapes[rule][1]} {rule}".replace(" ", "\N{NO-BREAK SPACE}") for rule in rules)
        style.caption(axes, style.wrapped("   ".join(key).replace("$", r"\$"), 58))


def _draw_overview(axes: Axes, sight: _Sight, crowd: Sequence[TradeOff], words: str, enlarged: Axes) -> None:
    """Draw everything, small, with a frame about what is enlarged; name only what is not in the crowd."""
    (left, right), (low, high) = enlarged.get_xlim(), enlarged.get_ylim()
    frame = Rectangle((left, low), right - left, high - low, fill=False, edgecolor=style.GREY, linewidth=1.0)
    axes.add_patch(frame)
    shown = list(sight.costs)
    _draw_points(axes, sight, shown, 0.6 * _MARKER_POINTS)
    seen = np.vstack((sight.ends(shown), *sight.ways.values()))
    _fit_costs(axes, seen[:, 0], words)
    style.span(axes, np.append(seen[:, 1], (low, high)))
    percent_ticks(axes)
    axes.set_ylabel("accuracy", color=style.INK)
    style.caption(axes, "All; the frame is enlarged below")
    _label(axes, sight, shown, _names_outside(sight, crowd))


def _draw_points(axes: Axes, sight: _Sight, points: Sequence[TradeOff], marker_points: float) -> None:
    drawn: set[tuple[str, object]] = set()
    for point in points:
        pen, way = sight.pens[point.label], sight.ways[point]
        if way.size and (point.label, point.way) not in drawn:
            drawn.add((point.label, point.way))
            axes.plot(*way.T, color=pen.colour, linestyle=pen.stroke, linewidth=0.9, alpha=0.6, zorder=1.5)
        _draw_point(axes, sight.costs[point], point, pen, sight.shapes[point.rule][0], marker_points)


def _way(point: TradeOff, against: Cost) -> FloatArray:
    """Return (places, 2) cost and accuracy; only where something was spent, for a log scale's sake."""
    way = np.array(point.way).reshape(-1, 3)[:, [0 if against == "epsilon" else 1, 2]]
    return np.asarray(way[np.isfinite(way).all(axis=1) & (way[:, 0] > 0.0)])


def _left_out(points: Sequence[TradeOff], shown: Sequence[TradeOff]) -> str:
    names = dict.fromkeys(f"{point.label} ({point.rule})" for point in points if point not in shown)
    return f"Not drawn, having no finite cost or accuracy: {', '.join(names)}." if names else ""


def _draw_point(axes: Axes, cost: float, point: TradeOff, pen: Pen, shape: str, marker_points: float) -> None:
    spread = point.accuracy_std if math.isfinite(point.accuracy_std) else 0.0
    axes.errorbar(
        cost,
        point.accuracy_mean,
        yerr=spread,
        color=pen.colour,
        marker=shape,
        markersize=marker_points + (1.0 if pen.colour == style.BLUE else 0.0),
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
        style.log_ticks(axes.xaxis, low, high)
        words += " (log scale)"
    else:
        room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
        axes.set_xlim(low - room, high + room)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
        style.plain_ticks(axes.xaxis)
    axes.set_xlabel(words, color=style.INK)


def _names(sight: _Sight, points: Sequence[TradeOff]) -> list[PointLabel]:
    """Name each sampler once, at the point where it is most accurate."""
    best: dict[str, TradeOff] = {}
    for point in points:
        if point.label not in best or point.accuracy_mean > best[point.label].accuracy_mean:
            best[point.label] = point
    looks = sight.pens
    return [
        PointLabel(looks[label].name, sight.costs[point], point.accuracy_mean, looks[label].colour)
        for label, point in best.items()
    ]


def _names_outside(sight: _Sight, crowd: Sequence[TradeOff]) -> list[PointLabel]:
    """Name what is not in the crowd: rules that have no point in it, and samplers that have none."""
    rest = [point for point in sight.costs if point not in crowd]
    names = _names(sight, [point for point in rest if point.label not in {one.label for one in crowd}])
    far = {rule: [point for point in rest if point.rule == rule] for rule in sight.shapes}
    for rule, points in far.items():
        if points and rule not in {one.rule for one in crowd}:
            top = max(points, key=lambda point: point.accuracy_mean)
            text = f"{sight.shapes[rule][1]}\N{NO-BREAK SPACE}{short(rule, most_letters=40)}"
            names.append(PointLabel(text, sight.costs[top], top.accuracy_mean, style.INK))
    return names


def _label(axes: Axes, sight: _Sight, points: Sequence[TradeOff], labels: Sequence[PointLabel]) -> None:
    """Write labels where they cover neither points nor, if it can be helped, lines."""
    if not labels:
        return
    middle = sight.ends(points)
    spread = np.array([(0.0, 0.0 if math.isnan(point.accuracy_std) else point.accuracy_std) for point in points])

    def obstacles(pixels: float) -> tuple[FloatArray, FloatArray]:
        half, thin = (0.5 * _MARKER_POINTS + 1.5) * pixels, 1.5 * pixels
        centre = axes.transData.transform(middle)
        low, high = axes.transData.transform(middle - spread), axes.transData.transform(middle + spread)
        markers = np.hstack((centre - half, centre + half))
        bars = np.column_stack((low[:, 0] - thin, low[:, 1], high[:, 0] + thin, high[:, 1]))
        dots = np.vstack([_dots(axes, sight.ways[point], 4.0 * pixels) for point in points])
        return markers, np.vstack((bars, np.hstack((dots - thin, dots + thin))))

    label_points(axes, labels, obstacles)


def _dots(axes: Axes, way: FloatArray, step: float) -> FloatArray:
    """Return (dots, 2) pixels along a line, `step` apart, those within the panel."""
    if len(way) < 2:
        return np.empty((0, 2))
    corners = axes.transData.transform(way)
    along = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))))
    at = np.arange(0.0, min(along[-1], 1000.0 * step), step)
    # Counted from the end: where a line is long, its last part is what is seen.
    dots = np.column_stack([np.interp(along[-1] - at, along, corners[:, k]) for k in (0, 1)])
    (left, low), (right, high) = axes.bbox.min, axes.bbox.max
    return np.asarray(dots[(dots[:, 0] > left) & (dots[:, 0] < right) & (dots[:, 1] > low) & (dots[:, 1] < high)])


def percent_ticks(axes: Axes) -> None:
    """Write shares on y in per cent."""
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))
