"""Lines beside one another, most of them a mean in its band: what nearly every figure of results is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle, line_styles
from fedpcs.studies.results import Group, OfRound, Series, at_common_rounds
from fedpcs.trial.config import RunConfig

_MOST_POINTS = 300


@dataclass(frozen=True)
class Line:
    """One line, (points,) each.

    Attributes:
        places: Where along x.
        middle: The line itself.
        low: The lower end of a band around it; None without a band.
        high: The upper end.
    """

    places: FloatArray
    middle: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None


def mean_line(places: FloatArray, values: FloatArray) -> Line:
    """Return the mean of (repeats, points) values, in a band from the least to the greatest if there are several."""
    if len(values) == 1:
        return Line(places, values[0])
    return Line(places, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def lines_figure(title: str, lines: Mapping[str, Line], ylabel: str, *, note: str = "", **look: Any) -> Figure:
    """Draw lines by name in a figure of their own; `look` is what `draw_lines` is told."""
    figure, (axes,) = style.new_figure(title, note=note, height_inches=3.4 + 0.12 * len(lines))
    draw_lines(axes, lines, ylabel, **look)
    return figure


def draw_lines(
    axes: Axes,
    lines: Mapping[str, Line],
    ylabel: str,
    *,
    xlabel: str = "round",
    styles: Mapping[str, LineStyle] | None = None,
    level: tuple[str, float] | None = None,
    from_zero: bool = False,
    is_share: bool = False,
    log_floor: float | None = None,
) -> None:
    """Draw lines by name.

    Args:
        axes: Where.
        lines: What.
        ylabel: The quantity.
        xlabel: What the places are.
        styles: By name; the palette's if absent.
        level: A label and a value, drawn across.
        from_zero: Whether zero must be seen.
        is_share: Whether values are shares, to be read in per cent.
        log_floor: The least value of a log scale; None for a plain one.
    """
    styles, heights = line_styles(lines) if styles is None else styles, [np.zeros(0)]
    for name, line in lines.items():
        shown, look = _shown(line, log_floor), styles[name]
        axes.plot(shown.places, shown.middle, marker=style.marker(shown.places.size), markersize=3.5, **look.line)
        heights.append(shown.middle)
        if shown.low is not None and shown.high is not None:
            axes.fill_between(shown.places, shown.low, shown.high, color=look.colour, alpha=0.1, linewidth=0)
            heights += [shown.low, shown.high]
    if level is not None:
        axes.axhline(level[1], color=style.INK, linewidth=1.0, linestyle=style.DASHES, label=level[0])
        heights.append(np.array([level[1]]))
    every = np.concatenate(heights)
    if log_floor is None:
        style.span(axes, every, from_zero=from_zero)
    else:
        axes.set_yscale("log")
        style.log_ticks(axes.yaxis, log_floor, float(np.nanmax(every)))
    if is_share:
        style.percent_ticks(axes.yaxis)
    is_whole = all(np.array_equal(line.places, np.round(line.places)) for line in lines.values())
    axes.margins(x=0.02)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=is_whole, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    style.legend(axes)


def _shown(line: Line, floor: float | None) -> Line:
    """Return evenly spaced points of a long line, its first and last among them; none below the floor."""
    kept = np.unique(np.linspace(0, line.places.size - 1, min(line.places.size, _MOST_POINTS)).round().astype(int))

    def thinned(values: FloatArray) -> FloatArray:
        return np.asarray(values[kept] if floor is None else np.maximum(values[kept], floor))

    low, high = (None if values is None else thinned(values) for values in (line.low, line.high))
    return Line(line.places[kept], thinned(line.middle), low, high)


def rounds_figure(group: Group, number: OfRound, title: str, ylabel: str, *, note: str = "", **look: Any) -> Figure:
    """Draw a number of every round by sampler: its mean over seeds at the rounds all seeds have.

    Raises:
        NothingToDraw: No round has it.
    """
    lines = {name: line for name, line in lines_of(group, number).items() if line.places.size}
    if not lines:
        raise NothingToDraw("No round that is done has this number.")
    if any(line.low is not None for line in lines.values()):
        note = f"{note} Mean over seeds, in a band from the least to the greatest.".strip()
    return lines_figure(title, lines, ylabel, note=note, styles=styles_of(group), **look)


def lines_of(group: Group, number: OfRound) -> dict[str, Line]:
    """Return a number of every round by sampler, for those that have it."""
    return {series.sampler: line for series in group.series if (line := line_of([series], number)) is not None}


def line_of(samplers: list[Series], number: OfRound) -> Line | None:
    """Return a number of every round, over all seeds of some samplers; None if no trial has it."""
    tracks = [track for series in samplers for track in series.settled_tracks(number)]
    if not tracks:
        return None
    table = at_common_rounds(tracks)
    return mean_line(table[0], table[1:])


def config_of(group: Group) -> RunConfig:
    """Return the configuration that a setting's samplers share, but for what was tuned for each."""
    return group.series[0].trials[0].cell.config


def styles_of(group: Group) -> dict[str, LineStyle]:
    """Return every sampler's style, by its name."""
    return line_styles(series.sampler for series in group.series)
