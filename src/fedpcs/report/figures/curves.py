"""Accuracy and loss over rounds: a thin line for every seed, a thick one for their mean."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, fit, pens, thinned
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles, Track, mean_track


def accuracy_figure(run: RunFiles) -> Figure:
    """Draw accuracy on records nobody trained on over rounds, by sampler."""
    figure = _curves(run, "accuracy", _format.share)
    axes = figure.axes[0]
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))
    axes.set_ylabel(f"accuracy on {run.config.data.evaluated_on}", color=style.INK)
    return figure


def loss_figure(run: RunFiles) -> Figure:
    """Draw cross-entropy on records nobody trained on over rounds, by sampler."""
    figure = _curves(run, "loss", _format.three_decimals)
    figure.axes[0].set_ylabel(f"cross-entropy on {run.config.data.evaluated_on}", color=style.INK)
    return figure


def _curves(run: RunFiles, name: str, written: Callable[[float], str]) -> Figure:
    means, styles = _means(run, name), pens(run)
    note = "Thick: mean over seeds. Thin: each seed." if len(run.config.seeds) > 1 else ""
    what = f"Mean {name}" if len(run.config.seeds) > 1 else name.capitalize()
    figure, (axes,) = style.new_figure(_title(means, what, written), note=note, height_inches=3.5)
    everything, labels = list(means.values()), []
    for sampler in run.samplers:
        if sampler.name not in means:
            continue
        pen, mean, tracks = styles[sampler.name], means[sampler.name], sampler.tracks(name)
        for track in map(thinned, tracks):
            axes.plot(track.rounds, track.values, color=pen.colour, linewidth=0.7, alpha=0.4)
        draw_line(axes, mean, pen.colour, linewidth=pen.width, linestyle=pen.stroke, label=sampler.name)
        everything += tracks
        labels.append(style.EndLabel(pen.label, float(mean.values[-1]), pen.colour))
    fit(axes, everything)
    style.round_axis(axes, run.config.rounds)
    style.label_ends(axes, labels, panel_inches=2.8)
    return figure


def _means(run: RunFiles, name: str) -> dict[str, Track]:
    found = {sampler.name: sampler.settled_tracks(name) for sampler in run.samplers}
    means = {sampler: mean_track(tracks) for sampler, tracks in found.items() if tracks}
    known = {sampler: mean for sampler, mean in means.items() if not mean.is_empty}
    if not known:
        raise NothingToDraw(f"No round has been evaluated yet: there is no {name} to draw.")
    return known


def _title(means: dict[str, Track], what: str, written: Callable[[float], str]) -> str:
    """Say where the means go, and nothing of which is better: that is the headline's to say."""
    last = f"round {max(int(mean.rounds[-1]) for mean in means.values())}"
    ends = {name: float(mean.values[-1]) for name, mean in means.items()}
    if len(means) == 1:
        (mean,) = means.values()
        return f"{what} goes from {written(float(mean.values[0]))} to {written(float(mean.values[-1]))} by {last}"
    low, high = min(ends, key=ends.__getitem__), max(ends, key=ends.__getitem__)
    return f"{what} by {last} lies between {written(ends[low])} ({low}) and {written(ends[high])} ({high})"
