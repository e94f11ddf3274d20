"""Privacy usage by trial and the sampling ratio under falling caps, drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.palette import line_styles


def usage_figure(usage: Mapping[str, FloatArray], name: str) -> Figure:
    """Draw (populations, rounds) shares of the cap used, the mean over populations, by trial."""
    means = [f"{_format.share(float(paths.mean()))} ({trial})" for trial, paths in usage.items()]
    figure, (axes,) = style.new_figure(f"Of the caps, cohorts use {', '.join(means)}")
    labels, looks = [], line_styles(usage)
    for trial, paths in usage.items():
        pen, middle = looks[trial], 100.0 * paths.mean(axis=0)
        axes.plot(100.0 * paths.T, color=pen.colour, linewidth=0.7, alpha=0.4)
        axes.plot(
            middle, color=pen.colour, linestyle=pen.stroke, linewidth=2.2, marker=style.marker(middle.size), label=trial
        )
        labels.append(style.EndLabel(trial, float(middle[-1]), pen.colour))
    axes.axhline(100.0, color=style.INK, linewidth=1.0, linestyle=style.DASHES)
    labels.append(style.EndLabel("the cap", 100.0, style.INK))
    style.span(axes, np.concatenate([np.array([100.0]), *(100.0 * paths.ravel() for paths in usage.values())]))
    axes.set_ylabel("privacy usage Σρ / $B_t$ (%)", color=style.INK)
    style.caption(axes, f"Share of the cap used, {name} caps; thin: each population, thick: their mean")
    style.round_axis(axes, middle.size)
    style.label_ends(axes, labels)
    return figure


def ratio_figure(ratios: FloatArray, caps: FloatArray) -> Figure:
    """Draw (populations, rounds) τ(t): thin lines each, their mean thick."""
    middle = ratios.mean(axis=0)
    title = (
        f"As the cap falls from {_format.amount(caps[0])} to {_format.amount(caps[-1])} the sampling ratio goes from "
        f"{middle[0]:.2f} to {middle[-1]:.2f}"
    )
    figure, (axes,) = style.new_figure(title)
    axes.plot(ratios.T, color=style.BLUE, linewidth=0.7, alpha=0.5)
    axes.plot(middle, color=style.BLUE, linewidth=2.4, marker=style.marker(middle.size), label="mean")
    style.span(axes, np.append(ratios.ravel(), 1.0), from_zero=True)
    axes.set_ylabel("sampling ratio τ(t)", color=style.INK)
    style.caption(axes, "$K_t / N$ of least cost under the cap; thin: each population, thick: their mean")
    style.round_axis(axes, middle.size)
    style.label_ends(axes, [style.EndLabel("mean", float(middle[-1]), style.BLUE)])
    return figure
