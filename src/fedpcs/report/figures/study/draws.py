"""Who is drawn how often, and whether draws follow the probabilities they were designed with."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import config_of, draw_each, joined, mean_tracks, num_rounds, styles_of, thinned
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group, Series, Track, TrialData

TOPIC, ORDER = "Who is drawn", 70


def draw(group: Group) -> Figure:
    """Draw how often clients were drawn, most drawn first; below, how far that strays from the design."""
    drawn = {one.sampler: one for one in group.series if any(trial.rounds for trial in one.trials)}
    if not drawn:
        raise NothingToDraw("No client has been drawn yet.")
    designed = mean_tracks(group, lambda line: line.draw.inclusion_score)
    note = "Means over seeds."
    if without := [name for name in drawn if name not in designed]:
        note += f" Without designed probabilities: {', '.join(without)}."
    num_rows, height = (2, 5.2) if designed else (1, 3.5)
    figure, panels = style.new_figure(TOPIC, note=note, height_inches=height, num_rows=num_rows)
    shares = {name: shares_drawn(group, sampler) for name, sampler in drawn.items()}
    styles, axes = styles_of(group), panels[0]
    for name, track in shares.items():
        shown = thinned(track)
        axes.step(shown.rounds, shown.values, where="mid", **styles[name].line)
    style.span(axes, joined(shares), from_zero=True)
    style.percent_ticks(axes.yaxis)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    style.plain_ticks(axes.xaxis)
    axes.set_ylabel("share of rounds", color=style.INK)
    axes.set_xlabel("client, most drawn first", color=style.INK)
    style.caption(axes, "How often a client is drawn")
    style.legend(axes)
    if designed:
        axes = panels[1]
        draw_each(axes, group, designed)
        axes.axhline(1.0, color=style.GREY, linewidth=1.0, linestyle=style.DASHES)
        style.span(axes, np.append(joined(designed), 1.0), from_zero=True)
        axes.set_ylabel("drawn − designed,\nin std. dev.", color=style.INK)
        style.caption(axes, "Distance from the design (chance: 1)")
        style.round_axis(axes, num_rounds(group))
        style.legend(axes)
    return figure


def times_drawn(trial: TrialData, num_clients: int) -> FloatArray:
    """Return (clients,) how often each was drawn: as the result tells, or as the log so far."""
    if trial.result is not None and trial.result.times_drawn is not None:
        return np.array(trial.result.times_drawn, dtype=np.float64)
    cohorts = [np.array(line.cohort, dtype=np.int64) for line in trial.rounds]
    return np.bincount(np.concatenate(cohorts), minlength=num_clients).astype(np.float64)


def shares_drawn(group: Group, series: Series) -> Track:
    """Return the share of rounds the k-th most drawn client was drawn in, mean over seeds."""
    num_clients = config_of(group).data.num_clients
    trials = [trial for trial in series.trials if trial.rounds]
    ranked = [-np.sort(-times_drawn(trial, num_clients)) / len(trial.rounds) for trial in trials]
    return Track(np.arange(1.0, num_clients + 1.0), np.mean(ranked, axis=0))
