"""Maps of correlation between clients, and the spread between them round by round."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.palette import line_styles

_COLOURS = LinearSegmentedColormap.from_list("correlation", [style.BLUE, "white", style.VERMILION])


def correlation_figure(maps: Mapping[str, tuple[FloatArray, float | None]]) -> Figure:
    """Draw each trial's (clients, clients) correlations, clients in the order given, warm for +1 and cold for −1."""
    known = {name: _format.two_decimals(mean) for name, (_, mean) in maps.items() if mean is not None}
    told = [f"{mean} ({name})" for name, mean in known.items()]
    title = f"In one population the mean correlation of two clients' budget paths is {' and '.join(told)}"
    note = (
        "Clients from the smallest initial budget to the largest. Grey: a budget that never moves has no correlation."
    )
    # Square maps side by side; what their squares leave free goes to the space about them, not between them.
    figure, panels = style.new_figure(title, note=note, height_inches=5.4, num_columns=len(maps))
    figure.set_layout_engine("compressed")
    colours = _COLOURS.with_extremes(bad=style.PALE)
    for axes, (name, (table, _)) in zip(panels, maps.items(), strict=True):
        image = axes.imshow(table, cmap=colours, vmin=-1.0, vmax=1.0, origin="lower", interpolation="nearest")
        axes.grid(visible=False)
        axes.set_xlabel("client, by initial budget", color=style.INK)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.tick_params(labelleft=axes is panels[0])
        style.caption(axes, name)
    panels[0].set_ylabel("client, by initial budget", color=style.INK)
    scale = figure.colorbar(image, ax=panels, location="bottom", pad=0.03, fraction=0.05, aspect=40, shrink=0.8)
    scale.set_ticks([-1.0, -0.5, 0.0, 0.5, 1.0], labels=["−1", "−0.5", "0", "0.5", "1"])
    scale.outline.set_visible(False)
    scale.ax.tick_params(colors=style.INK, labelsize=9)
    scale.set_label("Pearson correlation over rounds", color=style.INK)
    return figure


def divergence_figure(spreads: Mapping[str, FloatArray]) -> Figure:
    """Draw the standard deviation of budgets over clients: (populations, rounds) by trial."""
    ends = [f"{_format.amount(float(paths[:, -1].mean()))} ({name})" for name, paths in spreads.items()]
    figure, (axes,) = style.new_figure(f"In the last round clients are {', '.join(ends)} apart")
    labels, looks = [], line_styles(spreads)
    for name, paths in spreads.items():
        pen, mean = looks[name], paths.mean(axis=0)
        axes.plot(paths.T, color=pen.colour, linewidth=0.7, alpha=0.5)
        axes.plot(
            mean, color=pen.colour, linestyle=pen.stroke, linewidth=2.4, marker=style.marker(mean.size), label=name
        )
        labels.append(style.EndLabel(name, float(mean[-1]), pen.colour))
    style.span(axes, np.vstack(list(spreads.values())), from_zero=True)
    axes.set_ylabel("spread of budgets, ρ of zCDP", color=style.INK)
    style.caption(axes, "Standard deviation over clients; thin: each population, thick: their mean")
    style.round_axis(axes, next(iter(spreads.values())).shape[1])
    style.label_ends(axes, labels)
    return figure
