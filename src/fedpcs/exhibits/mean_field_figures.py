"""How much each sweep changes the mean budget, drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style

_COLOURS = {"as printed": style.VERMILION, "whole paths": style.GREEN, "in order": style.BLUE}
_FLOOR = 1e-6


def change_figure(moved: Mapping[str, FloatArray], title: str, words: str, threshold: float) -> Figure:
    """Draw (populations, sweeps) changes of φ for each iteration: thin lines each, their median thick.

    Heights are powers of ten on an even axis, so that labels at the lines' ends can be kept apart.
    """
    figure, (axes,) = style.new_figure(title)
    labels = [style.EndLabel("rest, ε₀", float(np.log10(threshold)), style.INK)]
    for name, colour in _COLOURS.items():
        powers = np.log10(moved[name].clip(_FLOOR))
        middle = np.median(powers, axis=0)
        sweeps = np.arange(1, middle.size + 1)
        axes.plot(sweeps, powers.T, color=colour, linewidth=0.8, alpha=0.5)
        axes.plot(sweeps, middle, color=colour, linewidth=2.4, label=name)
        labels.append(style.EndLabel(name, float(middle[-1]), colour))
    axes.axhline(np.log10(threshold), color=style.INK, linewidth=1.0, linestyle=style.DASHES)
    axes.set_ylim(np.log10(_FLOOR) - 0.2, 1.2)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda power, _: f"$10^{{{power:.0f}}}$"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.set_xlabel("sweep", color=style.INK)
    axes.set_ylabel("largest change of φ(t), log scale", color=style.INK)
    style.caption(axes, f"{words}; thin: each population, thick: median; below 10⁻⁶ cut off")
    style.label_ends(axes, labels)
    return figure
