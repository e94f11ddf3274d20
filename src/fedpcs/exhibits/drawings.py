"""The drawings exhibits share: lines over rounds or settings, and maps of clients by clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.page import Drawing
from fedpcs.report.palette import line_styles
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import Bar

_WARM_AND_COLD = LinearSegmentedColormap.from_list("correlation", [style.BLUE, "white", style.VERMILION])


def lines_drawing(topic: str, lines: Mapping[str, FloatArray], ylabel: str, **look: Any) -> Drawing:
    """Return a drawing of lines whose title is its topic."""
    return Drawing(topic, partial(lines_figure, lines, topic[:1].upper() + topic[1:], ylabel, **look))


def lines_figure(
    lines: Mapping[str, FloatArray],
    title: str,
    ylabel: str,
    *,
    note: str = "",
    x: Sequence[float] = (),
    xlabel: str = "round",
    level: tuple[str, float] | None = None,
    from_zero: bool = False,
    middle: Literal["mean", "median"] = "mean",
    log_floor: float | None = None,
) -> Figure:
    """Draw (populations, points) values by label: thin lines each, their middle thick.

    Args:
        lines: The values.
        title: What is shown.
        ylabel: The quantity.
        note: Small print.
        x: The points, marked as they are; rounds from 0 on if there are none.
        xlabel: What points are.
        level: A label and a value, drawn across.
        from_zero: Whether zero must be seen.
        middle: What is drawn thick.
        log_floor: The least value of a log scale; None for a plain one.
    """
    figure, (axes,) = style.new_figure(title, note=f"{note} Thin: each population; thick: their {middle}.".strip())
    looks = line_styles(lines)
    for label, values in lines.items():
        places = np.array(x) if len(x) else np.arange(values.shape[1])
        shown, look = values if log_floor is None else values.clip(log_floor), looks[label]
        axes.plot(places, shown.T, color=look.colour, linewidth=0.7, alpha=0.5)
        thick = {"color": look.colour, "linestyle": look.stroke, "linewidth": 2.3, "marker": style.marker(places.size)}
        axes.plot(places, getattr(np, middle)(shown, axis=0), label=label, **thick)
    if level is not None:
        axes.axhline(level[1], color=style.INK, linewidth=1.0, linestyle=style.DASHES, label=level[0])
    if log_floor is None:
        heights = [values.ravel() for values in lines.values()]
        style.span(axes, np.concatenate([*heights, [] if level is None else [level[1]]]), from_zero=from_zero)
    else:
        axes.set_yscale("log")
    style.round_axis(axes, places.size, label=xlabel)
    if len(x):
        axes.set_xlim(auto=True)
        axes.set_xticks(list(x), [f"{place:g}" for place in x])
    axes.set_ylabel(ylabel, color=style.INK)
    style.legend(axes)
    return figure


def bars_drawing(topic: str, gains: Mapping[str, PairedDifference], title: str, note: str) -> Drawing:
    """Return a drawing of differences with their intervals, one below the other."""
    bars = [Bar(label, found.mean, found.low, found.high) for label, found in gains.items()]
    return Drawing(topic, partial(bars_figure, bars, title, note))


def maps_figure(maps: Mapping[str, FloatArray], title: str, axis_label: str, scale_label: str, note: str) -> Figure:
    """Draw square maps of values in [−1, 1] side by side, warm for +1 and cold for −1, grey where undefined."""
    figure, panels = style.new_figure(title, note=note, height_inches=5.4, num_columns=len(maps))
    figure.set_layout_engine("compressed")
    colours = _WARM_AND_COLD.with_extremes(bad=style.PALE)
    for axes, (name, table) in zip(panels, maps.items(), strict=True):
        image = axes.imshow(table, cmap=colours, vmin=-1.0, vmax=1.0, origin="lower", interpolation="nearest")
        axes.grid(visible=False)
        axes.set_xlabel(axis_label, color=style.INK)
        axes.tick_params(labelleft=axes is panels[0])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        style.caption(axes, name)
    panels[0].set_ylabel(axis_label, color=style.INK)
    scale = figure.colorbar(image, ax=panels, location="bottom", pad=0.03, fraction=0.05, aspect=40, shrink=0.8)
    scale.outline.set_visible(False)
    scale.set_label(scale_label, color=style.INK)
    return figure
