"""Theory as pictures: a run's loss under its bound, where the loss went, and a quadratic under every bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.palette import line_styles
from fedpcs.studies.theory.quadratic import QuadraticTheory
from fedpcs.studies.theory.run import TrialTheory

_PARTS = {
    "descent": "gained by descent",
    "noise": "taken back by noise",
    "sampling": "taken back by the draw",
    "overshoot": "taken back by overshooting",
    "drift": "taken back by drift",
}
_MOST_PANELS = 3


def progress_figure(trials: Sequence[TrialTheory]) -> Figure:
    """Draw each sampler's loss, and how high each round could at most have left it."""
    shown = trials[:_MOST_PANELS]
    title = f"The loss changes by no more than its bound in {sum(one.num_under for one in shown)} of "
    title += f"{sum(one.change.size for one in shown)} rounds"
    note = f"Means over {_seeds(shown[0])}, on training records. The bound of a round begins at the loss before it."
    if len(trials) > len(shown):
        note += f" The first {len(shown)} samplers of {len(trials)}."
    figure, panels = style.new_figure(title, note=note, height_inches=4.4, num_columns=len(shown))
    heights = np.concatenate([np.concatenate((one.loss, _reach(one))) for one in shown])
    for axes, one in zip(panels, shown, strict=True):
        rounds, reach = np.arange(one.loss.size), _reach(one)
        axes.plot(rounds, one.loss, color=style.BLUE, linewidth=1.8, label="measured")
        steps, climbs = np.stack((rounds[:-1], rounds[1:])), np.stack((one.loss[:-1], reach))
        axes.plot(steps, climbs, color=style.PALE, linewidth=0.8, zorder=1.0)
        axes.plot(rounds[1:], reach, color=style.VERMILION, marker="v", markersize=4.5, linestyle="none", label="bound")
        style.round_axis(axes, one.loss.size, label="rounds done")
        style.span(axes, heights, from_zero=True)
        style.caption(axes, one.sampler)
    panels[0].set_ylabel("training loss", color=style.INK)
    panels[0].legend()
    return figure


def account_figure(trials: Sequence[TrialTheory]) -> Figure:
    """Draw what descent gained over a run and what took it back."""
    worst = max(trials, key=lambda one: one.shares[one.largest])
    title = f"{_PARTS[worst.largest].removeprefix('taken back by ').capitalize()} takes back most: "
    title += f"{_format.percent(worst.shares[worst.largest])} of what descent gains under {worst.sampler}"
    note = f"Sums over all rounds, {_seeds(trials[0])}, to second order in the step."
    figure, (axes,) = style.new_figure(title, note=note, height_inches=1.8 + 0.32 * len(trials) * len(_PARTS))
    looks, rows = line_styles(one.sampler for one in trials), np.arange(len(_PARTS))
    for k, one in enumerate(trials):
        totals = [one.totals[part] * (-1.0 if part == "descent" else 1.0) for part in _PARTS]
        look, thickness = looks[one.sampler], 0.8 / len(trials)
        face = "white" if look.is_hollow else look.colour
        heights = rows + (k - (len(trials) - 1) / 2) * thickness
        bars = axes.barh(heights, totals, color=face, edgecolor=look.colour, height=0.8 * thickness, label=one.sampler)
        axes.bar_label(bars, [_format.amount(total) for total in totals], padding=3, fontsize=8.5)
    axes.set_yticks(rows, list(_PARTS.values()))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.15)
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel("training loss", color=style.INK)
    axes.legend()
    return figure


def quadratic_figure(found: QuadraticTheory) -> Figure:
    """Draw the measured gap of a quadratic under the valid bound, with its terms, and the printed one."""
    ratio = found.ratio
    title = f"The valid bound is {ratio.min():.1f} to {ratio.max():.0f} times what is measured; "
    title += f"{found.valid.dominating()} dominates it in the end"
    note = f"{found.summary} Mean of {found.num_trajectories:,} trainings."
    figure, (axes,) = style.new_figure(title, note=note, height_inches=4.8)
    for label, values, colour, stroke in (
        ("valid bound", found.valid.value, style.VERMILION, "-"),
        ("measured", found.measured.value, style.BLUE, "-"),
        ("as printed", found.printed.value, style.GREY, "--"),
    ):
        shown = np.where(values > 0.0, values, np.nan)
        axes.plot(shown, label=label, color=colour, linestyle=stroke, linewidth=1.8)
    strokes = [(0, (1, 1)), (0, (3, 1)), (0, (3, 1, 1, 1)), (0, (5, 2)), (0, (1, 3))]
    for (name, values), dots in zip(found.valid.terms.items(), strokes, strict=False):
        if values[-1] > 0.02 * found.valid.value[-1]:
            shown = np.where(values > 0.0, values, np.nan)
            axes.plot(shown, label=f"part of it: {name}", color=style.DARK_ORANGE, linewidth=1.2, linestyle=dots)
    axes.set_yscale("log")
    axes.set_ylim(bottom=found.measured.value.min() / 30.0)
    style.round_axis(axes, found.measured.value.size, label="rounds done")
    axes.set_ylabel("F(w) − F*", color=style.INK)
    axes.legend()
    return figure


def _reach(trial: TrialTheory) -> FloatArray:
    return np.asarray(trial.loss[:-1] + trial.bound.value)


def _seeds(trial: TrialTheory) -> str:
    return "one seed" if trial.num_seeds == 1 else f"{trial.num_seeds} seeds"
