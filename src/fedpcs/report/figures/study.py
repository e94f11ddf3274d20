"""Figures of a sweep: curves over rounds, accuracy against what it cost, and intervals beside a zero line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.tradeoff import percent_ticks
from fedpcs.report.figures.tradeoff import tradeoff_figure as tradeoff_figure
from fedpcs.report.labels import PointLabel, label_line_ends
from fedpcs.report.palette import DARK_VERMILION, Pen, pens
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.points import Bar, Curve

_MOST_POINTS = 300
# Up to so many bands have edges; of more, edges would be all one sees.
_FEW_CURVES = 4


def curves_figure(curves: Sequence[Curve], quantity: Literal["accuracy", "loss"], title: str, note: str = "") -> Figure:
    """Draw a quantity over rounds: a line for each mean over seeds, a band of one standard deviation about it.

    Raises:
        NothingToDraw: No curve has a point.
    """
    shown = [known for known in map(_known, curves) if known.rounds.size]
    if not shown:
        raise NothingToDraw(f"No round has been evaluated yet: there is no {quantity} to draw.")
    figure, (axes,) = style.new_figure(title, note=note, height_inches=3.9)
    looks = pens(curve.label for curve in shown)
    is_crowded = len(shown) > _FEW_CURVES
    for curve in shown:
        _draw_curve(axes, curve, looks[curve.label], is_crowded=is_crowded)
    reached = np.concatenate([curve.mean + sign * curve.std for curve in shown for sign in (-1.0, 1.0)])
    style.span(axes, reached.clip(0.0, 1.0) if quantity == "accuracy" else reached)
    _evaluated_axis(axes, np.concatenate([curve.rounds for curve in shown]))
    if quantity == "accuracy":
        percent_ticks(axes)
    words = {"accuracy": "accuracy", "loss": "cross-entropy"}
    axes.set_ylabel(words[quantity], color=style.INK)
    label_line_ends(axes, [_end_label(curve, looks[curve.label]) for curve in shown])
    return figure


def _evaluated_axis(axes: Axes, rounds: FloatArray) -> None:
    """Make x the rounds from the first that was evaluated to the last."""
    style.round_axis(axes, 1 + int(rounds.max()))
    room = 0.03 * float(np.ptp(rounds)) or 0.5
    axes.set_xlim(float(rounds.min()) - room, float(rounds.max()) + room)


def _known(curve: Curve) -> Curve:
    """Return the points that were measured, no more than a screen shows, a missing band as none."""
    kept = np.flatnonzero(np.isfinite(curve.mean))
    if kept.size > _MOST_POINTS:
        kept = kept[np.unique(np.linspace(0, kept.size - 1, _MOST_POINTS).round().astype(int))]
    return Curve(curve.label, curve.rounds[kept], curve.mean[kept], np.nan_to_num(curve.std[kept]))


def _end_label(curve: Curve, pen: Pen) -> PointLabel:
    return PointLabel(pen.label, float(curve.rounds[-1]), float(curve.mean[-1]), pen.colour)


def _draw_curve(axes: Axes, curve: Curve, pen: Pen, *, is_crowded: bool) -> None:
    is_main = pen.colour == style.BLUE
    order = 3.0 if is_main else 2.0
    low, high = curve.mean - curve.std, curve.mean + curve.std
    fill = 0.2 if is_main else 0.08 if is_crowded else 0.15
    axes.fill_between(
        curve.rounds,
        low,
        high,
        facecolor=(pen.colour, fill),
        edgecolor=(pen.colour, 0.45),  # bands lie over one another
        linewidth=0.0 if is_crowded else 0.6,
        zorder=order - 1.5,
    )
    axes.plot(
        curve.rounds,
        curve.mean,
        color=pen.colour,
        linestyle=pen.stroke,
        linewidth=pen.width,
        marker=style.marker(curve.rounds.size),
        markersize=3.5,
        zorder=order,
        label=curve.label,
    )


def bars_figure(
    bars: Sequence[Bar],
    title: str,
    note: str = "",
    *,
    quantity: str = "difference in accuracy, percentage points",
    scale: float = 100.0,
    is_difference: bool = True,
) -> Figure:
    """Draw means with their intervals, one below the other.

    Args:
        bars: From top to bottom.
        title: A finding.
        note: Small print.
        quantity: What x is, with its unit.
        scale: What values are multiplied by to be in that unit.
        is_difference: Draw a zero line, write signs, and colour by whether an interval is clear of zero.

    Raises:
        NothingToDraw: There are no bars.
    """
    shown = [bar for bar in bars if math.isfinite(bar.mean)]
    if not shown:
        raise NothingToDraw("Nothing has been measured yet: there are no means to draw.")
    figure, (axes,) = style.new_figure(title, note=note, height_inches=1.9 + 0.36 * len(shown))
    for row, bar in enumerate(shown):
        colour, is_clear = _bar_look(bar, is_difference)
        if math.isfinite(bar.low) and math.isfinite(bar.high):
            axes.plot([scale * bar.low, scale * bar.high], [row, row], color=colour, linewidth=2.4)
        face = colour if is_clear else "white"
        axes.plot(scale * bar.mean, row, "o", color=colour, markerfacecolor=face, markersize=7.5, markeredgewidth=1.6)
        axes.annotate(
            _interval_words(bar, scale, is_difference),
            (1.0, row),
            (8, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=colour if is_clear else style.INK,
            annotation_clip=False,
        )
    if is_difference:
        axes.axvline(0.0, color=style.INK, linewidth=0.9, zorder=1.0)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    names = [style.wrapped(bar.label, 24).replace("$", r"\$") for bar in shown]
    axes.yaxis.set_major_locator(FixedLocator(range(len(shown))))
    axes.set_yticks(range(len(shown)), names, fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="#ECECEC", linewidth=0.8)
    axes.margins(x=0.06)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel(quantity, color=style.INK)
    return figure


def _bar_look(bar: Bar, is_difference: bool) -> tuple[str, bool]:
    """Return a colour, and whether the interval says something: is clear of zero, where zero means no difference."""
    if not is_difference:
        return style.BLUE, True
    if bar.low > 0.0:
        return style.BLUE, True
    return (DARK_VERMILION, True) if bar.high < 0.0 else (style.GREY, False)


def _interval_words(bar: Bar, scale: float, is_difference: bool) -> str:
    sign = "+" if is_difference else ""
    mean, low, high = (f"{scale * value:{sign}.2f}".replace("-", "−") for value in (bar.mean, bar.low, bar.high))
    return f"{mean} [{low}, {high}]" if math.isfinite(bar.low) and math.isfinite(bar.high) else mean
