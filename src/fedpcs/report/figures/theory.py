"""Theory as pictures: a run's loss under its bound, where the loss went, and a quadratic under every bound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.palette import line_styles
from fedpcs.studies.theory_quadratic import QuadraticTheory
from fedpcs.studies.theory_run import TrialTheory

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
        rounds = np.arange(one.loss.size)
        axes.plot(rounds, one.loss, color=style.BLUE, linewidth=1.8)
        reach = _reach(one)
        for t, high in enumerate(reach):
            axes.plot([t, t + 1], [one.loss[t], high], color=style.PALE, linewidth=0.8, zorder=1.0)
        axes.plot(rounds[1:], reach, color=style.VERMILION, marker="v", markersize=4.5, linestyle="none")
        style.round_axis(axes, one.loss.size, label="rounds done")
        style.span(axes, heights, from_zero=True)
        style.caption(axes, one.sampler)
    axes = panels[0]
    axes.set_ylabel("training loss", color=style.INK)
    axes.annotate("at most", (1, _reach(shown[0])[0]), (8, 4), textcoords="offset points", color=style.VERMILION)
    middle = shown[0].loss.size // 2
    below = (0, -16)
    axes.annotate(
        "measured", (middle, shown[0].loss[middle]), below, textcoords="offset points", color=style.BLUE, ha="right"
    )
    return figure


def account_figure(trials: Sequence[TrialTheory]) -> Figure:
    """Draw what descent gained over a run and what took it back."""
    worst = max(trials, key=lambda one: one.shares[one.largest])
    title = f"{_PARTS[worst.largest].removeprefix('taken back by ').capitalize()} takes back most: "
    title += f"{_format.percent(worst.shares[worst.largest])} of what descent gains under {worst.sampler}"
    note = f"Sums over all rounds, {_seeds(trials[0])}, to second order in the step."
    figure, (axes,) = style.new_figure(title, note=note, height_inches=1.8 + 0.32 * len(trials) * len(_PARTS))
    looks = line_styles(one.sampler for one in trials)
    room = len(trials) + 1
    for row, part in enumerate(_PARTS):
        for k, one in enumerate(trials):
            value, height = one.totals[part] * (-1.0 if part == "descent" else 1.0), row * room + k
            pen = looks[one.sampler]
            axes.barh(height, value, color="white" if pen.is_hollow else pen.colour, edgecolor=pen.colour, height=0.8)
            words = f" {one.sampler} {_format.amount(value)}"
            axes.annotate(
                words, (max(value, 0.0), height), (3, 0), textcoords="offset points", va="center", fontsize=8.5
            )
    axes.set_yticks([row * room + (len(trials) - 1) / 2 for row in range(len(_PARTS))], list(_PARTS.values()))
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    most = max(abs(one.totals[part]) for one in trials for part in _PARTS)
    least = min(one.totals[part] for one in trials for part in _PARTS if part != "descent")
    axes.set_xlim(min(least, 0.0) * 1.05, 1.25 * most)
    axes.axvline(0.0, color=style.GREY, linewidth=0.8)
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel("training loss", color=style.INK)
    return figure


def quadratic_figure(found: QuadraticTheory) -> Figure:
    """Draw the measured gap of a quadratic under the valid bound, with its terms, and the printed one."""
    ratio = found.ratio
    title = f"The valid bound is {ratio.min():.1f} to {ratio.max():.0f} times what is measured; "
    title += f"{found.valid.dominating()} dominates it in the end"
    note = f"{found.words} Mean of {found.num_trajectories:,} trainings."
    figure, (axes,) = style.new_figure(title, note=note, height_inches=4.8)
    rounds = np.arange(found.measured.value.size)
    lines = {
        "valid bound": (found.valid.value, style.VERMILION, "-", 1.8),
        "measured": (found.measured.value, style.BLUE, "-", 1.8),
        "as printed": (found.printed.value, style.GREY, "--", 1.4),
    }
    lines |= {
        f"of it {name}": (value, style.DARK_ORANGE, ":", 1.2)
        for name, value in found.valid.terms.items()
        if value[-1] > 0.02 * found.valid.value[-1]
    }
    ends = []
    for words, (values, colour, stroke, width) in lines.items():
        shown = np.where(values > 0.0, values, np.nan)
        axes.plot(rounds, shown, color=colour, linestyle=stroke, linewidth=width)
        ends.append(style.EndLabel(words, float(np.log10(values[-1])), colour))
    axes.set_yscale("log")
    low = min(float(values[values > 0.0].min()) for values, *_ in lines.values())
    high = max(float(values.max()) for values, *_ in lines.values())
    axes.set_ylim(max(low, found.measured.value.min() / 30.0) / 1.5, high * 1.5)
    axes.yaxis.set_minor_formatter(NullFormatter())
    style.round_axis(axes, rounds.size, label="rounds done")
    axes.set_ylabel("F(w) − F*", color=style.INK)
    style.label_ends(axes, ends)
    return figure


def _reach(trial: TrialTheory) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.asarray(trial.loss[:-1] + trial.bound.value)


def _seeds(trial: TrialTheory) -> str:
    return "one seed" if trial.num_seeds == 1 else f"{trial.num_seeds} seeds"
