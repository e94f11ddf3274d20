"""Social welfare round by round, drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.experiments import figure_style as style

# Line, ink and dashes in the order arms are given: the yardstick first, then FedPCS, then its rivals.
_LOOKS = (
    (style.INK, style.INK, style.DASHES),
    (style.BLUE, style.BLUE, "-"),
    (style.ORANGE, style.DARK_ORANGE, "-"),
    (style.GREEN, style.GREEN, "-"),
    (style.GREY, style.GREY, "-"),
)


def round_figure(paths: Mapping[str, FloatArray], title: str, caption: str) -> Figure:
    """Draw (rounds,) welfare of each arm, at most five of them."""
    figure, (axes,) = style.new_figure(title, note="All arms under the rewards FedPCS's server announces.")
    labels = []
    for (arm, path), (colour, ink, dashes) in zip(paths.items(), _LOOKS, strict=False):
        axes.plot(path, color=colour, linestyle=dashes, linewidth=2.2, marker=style.marker(path.size), label=arm)
        labels.append(style.EndLabel(style.wrapped(arm, 20), float(path[-1]), ink))
    axes.axhline(0.0, color=style.INK, linewidth=0.8)
    style.span(axes, np.array(list(paths.values())))
    axes.set_ylabel("welfare Σ(ρR − ψρ²) of a round", color=style.INK)
    style.caption(axes, caption)
    style.round_axis(axes, path.size)
    style.label_ends(axes, labels)
    return figure
