"""The server's cost by sampler and sampling ratio, and what FedPCS saves, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.palette import line_styles
from fedpcs.studies.paired import PairedDifference


def cost_figure(costs: Mapping[str, Mapping[float, Sequence[float]]], title: str, note: str) -> Figure:
    """Draw cost by sampling ratio, a line for each trial through the means, a dot for each population."""
    figure, (axes,) = style.new_figure(title, note=note)
    labels, drawn, looks = [], [], line_styles(costs)
    for trial, by_ratio in costs.items():
        colour, stroke = looks[trial].colour, looks[trial].stroke
        ratios, values = list(by_ratio), np.array(list(by_ratio.values()))
        for column in values.T:
            axes.plot(ratios, column, "o", color=colour, markersize=3.5, alpha=0.6)
        axes.plot(ratios, values.mean(axis=1), color=colour, linestyle=stroke, linewidth=2.2, label=trial)
        labels.append(style.EndLabel(trial, float(values[-1].mean()), colour))
        drawn.append(values)
    style.span(axes, np.array(drawn), from_zero=True)
    axes.set_ylabel("cost over the run", color=style.INK)
    style.caption(axes, "The server's expected cost: accuracy lost plus rewards paid; dots: populations")
    _ratio_axis(axes, ratios)
    style.label_ends(axes, labels)
    return figure


def saving_figure(saved: Mapping[str, Mapping[float, PairedDifference]]) -> Figure:
    """Draw what FedPCS saves against each rival at each ratio, as a share of the rival's cost, with its interval."""
    figure, (axes,) = style.new_figure(_saving_title(saved))
    labels, drawn, looks = [], [0.0], line_styles(saved)
    for number, (rival, by_ratio) in enumerate(saved.items()):
        colour = looks[rival].colour
        ratios = np.array(list(by_ratio))
        found = list(by_ratio.values())
        means = 100.0 * np.array([gap.mean for gap in found])
        ends = 100.0 * np.array([[gap.low, gap.high] if gap.num_pairs > 1 else [gap.mean] * 2 for gap in found])
        shifted = ratios + 0.008 * number
        axes.vlines(shifted, ends[:, 0], ends[:, 1], color=colour, linewidth=2.0)
        axes.plot(shifted, means, "o-", color=colour, linewidth=1.2, markersize=6, label=rival)
        labels.append(style.EndLabel(f"against {rival}", float(means[-1]), colour))
        drawn += [*ends.ravel().tolist(), *means.tolist()]
    axes.axhline(0.0, color=style.INK, linewidth=1.0)
    style.span(axes, np.array(drawn))
    axes.set_ylabel("saved, % of the rival's cost", color=style.INK)
    style.caption(axes, "Mean over populations and its 95 % interval, paired; below zero FedPCS costs more")
    _ratio_axis(axes, list(ratios))
    style.label_ends(axes, labels)
    return figure


def _saving_title(saved: Mapping[str, Mapping[float, PairedDifference]]) -> str:
    by_ratio = next(iter(saved.values()))
    (first, early), *_, (last, late) = by_ratio.items()
    verb = "grows" if late.mean > early.mean else "shrinks"
    ends = [_format.share(gap.mean) for gap in (early, late)]
    at = [f"τ = {ratio:g}".replace(" ", "\N{NO-BREAK SPACE}") for ratio in (first, last)]
    return (
        f"FedPCS's saving {verb} from {ends[0]} at {at[0]} to {ends[1]} at {at[1]}, against a rival that "
        "sets its own rewards"
    )


def _ratio_axis(axes: Axes, ratios: Sequence[float]) -> None:
    axes.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    axes.set_xlim(ratios[0] - 0.05, ratios[-1] + 0.05)
    axes.set_xlabel("sampling ratio τ", color=style.INK)
