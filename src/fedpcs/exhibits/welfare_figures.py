"""Social welfare round by round, drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.palette import pens


def round_figure(paths: Mapping[str, FloatArray], title: str, caption: str) -> Figure:
    """Draw (rounds,) welfare of each arm: the yardstick first, then FedPCS, then its rivals."""
    figure, (axes,) = style.new_figure(title, note="All arms under the rewards FedPCS's server announces.")
    yardstick, *arms = paths
    looks = {arm: (pen.colour, pen.stroke) for arm, pen in pens(arms).items()}
    labels = []
    for arm, path in paths.items():
        colour, stroke = (style.INK, style.DASHES) if arm == yardstick else looks[arm]
        axes.plot(path, color=colour, linestyle=stroke, linewidth=2.2, marker=style.marker(path.size), label=arm)
        labels.append(style.EndLabel(style.wrapped(arm, 20), float(path[-1]), colour))
    axes.axhline(0.0, color=style.INK, linewidth=0.8)
    style.span(axes, np.array(list(paths.values())))
    axes.set_ylabel("welfare Σ(ρR − ψρ²) of a round", color=style.INK)
    style.caption(axes, caption)
    style.round_axis(axes, path.size)
    style.label_ends(axes, labels)
    return figure
