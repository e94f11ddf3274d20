"""Means with their intervals, one below the other, beside a zero line."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs.report import style
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import DARK_VERMILION, short
from fedpcs.studies.points import Bar


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
        title: What is shown.
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
        text_colour = colour if is_clear else style.INK
        place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 8.5}
        axes.text(1.02, row, _interval_text(bar, scale, is_difference), color=text_colour, **place)
    if is_difference:
        axes.axvline(0.0, color=style.INK, linewidth=0.9, zorder=1.0)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.set_yticks(
        range(len(shown)), [textwrap.fill(short(bar.label, most_letters=80), 24) for bar in shown], fontsize=8.5
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color=style.GRID, linewidth=0.8)
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


def _interval_text(bar: Bar, scale: float, is_difference: bool) -> str:
    sign = "+" if is_difference else ""
    mean, low, high = (f"{scale * value:{sign}.2f}".replace("-", "−") for value in (bar.mean, bar.low, bar.high))
    return f"{mean} [{low}, {high}]" if math.isfinite(bar.low) and math.isfinite(bar.high) else mean
