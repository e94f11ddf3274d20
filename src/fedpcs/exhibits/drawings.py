"""The drawings exhibits share: lines over rounds or settings, and maps of clients by clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.bars import bars_figure
from fedpcs.report.figures.lines import lines_figure, mean_line
from fedpcs.report.page import Drawing
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import Bar

_WARM_AND_COLD = LinearSegmentedColormap.from_list("correlation", [style.BLUE, "white", style.VERMILION])


def lines_drawing(
    topic: str,
    lines: Mapping[str, FloatArray],
    ylabel: str,
    *,
    note: str = "",
    places: Sequence[float] = (),
    **look: Any,
) -> Drawing:
    """Return a drawing of (populations, points) values by label.

    Args:
        topic: What is shown; the title, too.
        lines: The values.
        ylabel: The quantity.
        note: Small print.
        places: Of the points; rounds from 0 on if there are none.
        look: What `draw_lines` is told.
    """

    def draw() -> Figure:
        means = {
            label: mean_line(np.array(places if len(places) else range(values.shape[1]), dtype=np.float64), values)
            for label, values in lines.items()
        }
        text = f"{note} Mean over populations, in a band from the least to the greatest.".strip()
        return lines_figure(topic[:1].upper() + topic[1:], means, ylabel, note=text, **look)

    return Drawing(topic, draw)


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
        axes.set_xlabel(axis_label)
        axes.tick_params(labelleft=axes is panels[0])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        style.caption(axes, name)
    panels[0].set_ylabel(axis_label)
    scale = figure.colorbar(image, ax=panels, location="bottom", pad=0.03, fraction=0.05, aspect=40, shrink=0.8)
    scale.outline.set_visible(False)
    scale.set_label(scale_label)
    return figure
