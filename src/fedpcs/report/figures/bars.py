"""Bars one below the other: amounts with their texts, and means with their intervals beside a zero line."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from fedpcs.report import style
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import DARK_VERMILION, short
from fedpcs.studies.paired import PairedDifference


def draw_amounts(
    axes: Axes, amounts: Mapping[str, tuple[float, str]], xlabel: str, *, floor: float | None = None
) -> None:
    """Draw amounts by name, each with its text; from zero, or from the floor of a log scale."""
    values, start = np.array([value for value, _ in amounts.values()]), floor or 0.0
    values = np.maximum(values, start) if floor else values
    colours = (style.PALE, style.BLUE, style.GREY, style.ORANGE)
    bars = axes.barh(list(amounts), values - start, left=start, height=0.6, color=colours[: len(amounts)])
    axes.bar_label(bars, [text for _, text in amounts.values()], padding=6, fontsize=9.5)
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    if floor is None:
        axes.axvline(0.0, color=style.INK, linewidth=0.8)
        axes.margins(x=0.4)  # for the texts
        style.plain_ticks(axes.xaxis)
    else:
        axes.set_xscale("log")
        axes.set_xlim(floor, 12.0 * max(1.0, float(values.max())))
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(xlabel)


def bars_figure(differences: Mapping[str, PairedDifference], title: str, note: str = "") -> Figure:
    """Draw differences in accuracy with their intervals, from top to bottom; filled if clear of zero.

    Raises:
        NothingToDraw: There are none.
    """
    shown = {label: one for label, one in differences.items() if math.isfinite(one.mean)}
    if not shown:
        raise NothingToDraw("Nothing has been measured yet: there are no means to draw.")
    figure, (axes,) = style.new_figure(title, note=note, height_inches=1.9 + 0.36 * len(shown))
    for row, bar in enumerate(shown.values()):
        colour = style.BLUE if bar.low > 0.0 else DARK_VERMILION if bar.high < 0.0 else style.GREY
        axes.plot([100.0 * bar.low, 100.0 * bar.high], [row, row], color=colour, linewidth=2.4)
        face = "white" if colour == style.GREY else colour
        axes.plot(100.0 * bar.mean, row, "o", color=colour, markerfacecolor=face, markersize=7.5, markeredgewidth=1.6)
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8.5}
        axes.text(1.02, row, _interval_text(bar), color=colour, **place)
    axes.axvline(0.0, color=style.INK, linewidth=0.9, zorder=1.0)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    labels = [textwrap.fill(short(label, most_letters=80), 24) for label in shown]
    axes.set_yticks(range(len(shown)), labels, fontsize=8.5)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel("difference in accuracy, percentage points")
    return figure


def _interval_text(bar: PairedDifference) -> str:
    mean, low, high = (f"{100.0 * value:+.2f}".replace("-", "−") for value in (bar.mean, bar.low, bar.high))
    return f"{mean} [{low}, {high}]" if math.isfinite(bar.low) and math.isfinite(bar.high) else mean
