"""Theory as pictures: a run's loss under its bound, where the loss went, and a quadratic under every bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.figures.lines import Line, lines_figure
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
    note = f"Means over {_seeds(shown[0])}, on training records. The bound of a round begins at the loss before it."
    if len(trials) > len(shown):
        note += f" The first {len(shown)} samplers of {len(trials)}."
    figure, panels = style.new_figure("Loss under its bound", note=note, height_inches=4.4, num_columns=len(shown))
    for axes, one in zip(panels, shown, strict=True):
        rounds, reach = np.arange(one.loss.size), np.asarray(one.loss[:-1] + one.bound.value)
        axes.plot(rounds, one.loss, color=style.BLUE, linewidth=1.8, label="measured")
        axes.plot(rounds[1:], reach, color=style.VERMILION, marker="v", markersize=4.5, linestyle="none", label="bound")
        axes.set_xlabel("rounds done")
        style.span(axes, np.concatenate((one.loss, reach)), from_zero=True)
        style.caption(axes, f"{one.sampler}: under it in {one.num_under} of {one.change.size} rounds")
    panels[0].set_ylabel("training loss")
    panels[0].legend()
    return figure


def account_figure(trials: Sequence[TrialTheory]) -> Figure:
    """Draw what descent gained over a run and what took it back."""
    note = f"Sums over all rounds, {_seeds(trials[0])}, to second order in the step."
    height = 1.8 + 0.32 * len(trials) * len(_PARTS)
    figure, (axes,) = style.new_figure("What descent gained, and what took it back", note=note, height_inches=height)
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
    axes.margins(x=0.15)
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel("training loss")
    axes.legend()
    return figure


def quadratic_figure(found: QuadraticTheory) -> Figure:
    """Draw the measured gap of a quadratic under the valid bound, with its terms, and the printed one."""
    lines = {"valid bound": found.valid.value, "measured": found.measured.value, "as printed": found.printed.value}
    lines |= {
        f"part of it: {name}": values
        for name, values in found.valid.terms.items()
        if values[-1] > 0.02 * found.valid.value[-1]
    }
    rounds, least = np.arange(found.measured.value.size, dtype=np.float64), float(found.measured.value.min()) / 30.0
    note = f"{found.summary} Mean of {found.num_trajectories:,} trainings."
    return lines_figure(
        "A quadratic under its bounds",
        {name: Line(rounds, np.where(values > 0.0, values, np.nan)) for name, values in lines.items()},
        "F(w) − F*",
        note=note,
        xlabel="rounds done",
        log_floor=least,
    )


def _seeds(trial: TrialTheory) -> str:
    return "one seed" if trial.num_seeds == 1 else f"{trial.num_seeds} seeds"
