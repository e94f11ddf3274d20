"""Social welfare round by round, drawn."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.palette import line_styles


def round_figure(paths: Mapping[str, FloatArray], title: str, caption: str) -> Figure:
    """Draw (rounds,) welfare of each trial: the yardstick first, then FedPCS, then its rivals."""
    figure, (axes,) = style.new_figure(title, note="All trials under the rewards FedPCS's server announces.")
    yardstick, *trials = paths
    looks = {trial: (pen.colour, pen.stroke) for trial, pen in line_styles(trials).items()}
    labels = []
    for trial, path in paths.items():
        colour, stroke = (style.INK, style.DASHES) if trial == yardstick else looks[trial]
        axes.plot(path, color=colour, linestyle=stroke, linewidth=2.2, marker=style.marker(path.size), label=trial)
        labels.append(style.EndLabel(textwrap.fill(trial, 20), float(path[-1]), colour))
    axes.axhline(0.0, color=style.INK, linewidth=0.8)
    style.span(axes, np.array(list(paths.values())))
    axes.set_ylabel("welfare Σ(ρR − ψρ²) of a round", color=style.INK)
    style.caption(axes, caption)
    style.round_axis(axes, path.size)
    style.label_ends(axes, labels)
    return figure
