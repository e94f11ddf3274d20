"""Who is drawn how often, and whether draws follow the probabilities they were designed with."""

from __future__ import annotations

import math
import statistics

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, fit, pens, thinned
from fedpcs.report.palette import Pen
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles, SamplerFiles, Track, TrialFiles, mean_track

# Standard deviations beyond which chance is no longer a fair guess.
_BEYOND_CHANCE = 4.0


def draws_figure(run: RunFiles) -> Figure:
    """Draw how often clients were drawn, most drawn first, above; how far that strays from the design below."""
    drawn = [sampler for sampler in run.samplers if any(trial.rounds for trial in sampler.trials)]
    if not drawn:
        raise NothingToDraw("No client has been drawn yet.")
    scores = {sampler.name: sampler.settled_tracks("draw", "inclusion_score") for sampler in drawn}
    means = {name: mean_track(tracks) for name, tracks in scores.items() if tracks}
    designed = {name: mean for name, mean in means.items() if not mean.is_empty}
    num_rows, height = (2, 5.2) if designed else (1, 3.5)
    figure, panels = style.new_figure(
        _title(run, drawn, designed), note=_note(drawn, designed), height_inches=height, num_rows=num_rows
    )
    styles = pens(run)
    _draw_times(panels[0], run, drawn, styles, 1.8 if designed else 2.8)
    if designed:
        _draw_scores(panels[1], designed, styles)
        style.round_axis(panels[1], run.config.rounds)
    return figure


def times_drawn(trial: TrialFiles, num_clients: int) -> FloatArray:
    """Return (clients,) how often each was drawn: as the result tells, or as the log so far."""
    if trial.result is not None and trial.result.get("times_drawn") is not None:
        return np.array(trial.result["times_drawn"], dtype=np.float64)
    cohorts = [np.array(line["cohort"], dtype=np.int64) for line in trial.rounds]
    return np.bincount(np.concatenate(cohorts), minlength=num_clients).astype(np.float64)


def _shares(run: RunFiles, sampler: SamplerFiles) -> Track:
    """Return the share of rounds the k-th most drawn client was drawn in, mean over seeds."""
    trials = [trial for trial in sampler.trials if trial.rounds]
    ranked = [-np.sort(-times_drawn(trial, run.config.data.num_clients)) / len(trial.rounds) for trial in trials]
    return Track(np.arange(1.0, run.config.data.num_clients + 1.0), np.mean(ranked, axis=0))


def _draw_times(
    axes: Axes, run: RunFiles, drawn: list[SamplerFiles], styles: dict[str, Pen], panel_inches: float
) -> None:
    labels, curves = [], []
    for sampler in drawn:
        pen, curve = styles[sampler.name], _shares(run, sampler)
        shown = thinned(curve)
        axes.step(shown.rounds, shown.values, where="mid", color=pen.colour, linewidth=pen.width, linestyle=pen.stroke)
        curves.append(curve)
        labels.append(style.EndLabel(pen.label, float(curve.values[-1]), pen.colour))
    fit(axes, curves, from_zero=True)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    style.plain_ticks(axes.xaxis)
    axes.set_ylabel("share of rounds", color=style.INK)
    axes.set_xlabel("client, most drawn first", color=style.INK)
    style.caption(axes, "How often a client is drawn")
    style.label_ends(axes, labels, panel_inches=panel_inches)


def _draw_scores(axes: Axes, designed: dict[str, Track], styles: dict[str, Pen]) -> None:
    axes.axhline(1.0, color=style.GREY, linewidth=1.0, linestyle=style.DASHES)
    labels = []
    for name, track in designed.items():
        pen = styles[name]
        draw_line(axes, track, pen.colour, linewidth=pen.width, linestyle=pen.stroke, label=name)
        labels.append(style.EndLabel(pen.label, float(track.values[-1]), pen.colour))
    one = Track(np.array([0.0]), np.array([1.0]))
    fit(axes, [*designed.values(), one], from_zero=True)
    axes.set_ylabel("drawn − designed,\nin std. dev.", color=style.INK)
    style.caption(axes, "Distance from the design (chance: 1)")
    style.label_ends(axes, labels, panel_inches=1.8)


def _title(run: RunFiles, drawn: list[SamplerFiles], designed: dict[str, Track]) -> str:
    num_rounds = max(len(trial.rounds) for sampler in drawn for trial in sampler.trials)
    ends = {name: float(track.values[-1]) for name, track in designed.items()}
    far = {name: score for name, score in ends.items() if score > _chance_limit(run, num_rounds)}
    if far:
        worst = max(far, key=far.__getitem__)
        return f"{worst} strays from its designed probabilities, by {far[worst]:.1f} times what chance explains"
    if ends:
        low, high = f"{min(ends.values()):.2f}", f"{max(ends.values()):.2f}"
        score = f"{low} to {high}" if low != high else low
        return f"Clients come up as often as designed: distance {score}, where chance alone gives 1"
    never = statistics.fmean(float((_shares(run, sampler).values == 0.0).mean()) for sampler in drawn)
    return f"{_format.percent(never)} of clients were never drawn" if never else "Every client was drawn"


def _chance_limit(run: RunFiles, num_rounds: int) -> float:
    """Return what the root mean square of standardised counts stays under if draws follow the design.

    A squared standardised count of n draws with probability p has mean 1 and variance about 2 + 1/(n p (1 − p)).
    """
    ratio = min(max(float(run.config.sampling.sampling_ratio), 1e-6), 0.5)
    variance = 2.0 + 1.0 / (num_rounds * ratio * (1.0 - ratio))
    return math.sqrt(1.0 + _BEYOND_CHANCE * math.sqrt(variance / run.config.data.num_clients))


def _note(drawn: list[SamplerFiles], designed: dict[str, Track]) -> str:
    without = [sampler.name for sampler in drawn if sampler.name not in designed]
    note = "Means over seeds."
    return note if not without else f"{note} Without designed probabilities: {', '.join(without)}."
