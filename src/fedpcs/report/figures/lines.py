"""Lines of a study's figures: a sampler's style for its line, and as many points as a screen shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle, line_styles
from fedpcs.studies.results import Group, OfRound, Track, at_common_rounds, mean_track
from fedpcs.trial.config import RunConfig

_MOST_POINTS = 300
# Up to so many bands have room beside one another.
_FEW_BANDS = 4


def config_of(group: Group) -> RunConfig:
    """Return the configuration that a setting's samplers share, but for what was tuned for each."""
    return group.series[0].trials[0].cell.config


def num_rounds(group: Group) -> int:
    """Return how many rounds the longest of the trials is to have."""
    return max(one.cell.config.rounds for series in group.series for one in series.trials)


def styles_of(group: Group) -> dict[str, LineStyle]:
    """Return every sampler's style, by its name."""
    return line_styles(series.sampler for series in group.series)


def mean_tracks(group: Group, number: OfRound) -> dict[str, Track]:
    """Return the mean over seeds of a number over rounds, for every sampler that has it."""
    found = {series.sampler: series.settled_tracks(number) for series in group.series}
    means = {name: mean_track(tracks) for name, tracks in found.items() if tracks}
    return {name: mean for name, mean in means.items() if not mean.is_empty}


def thinned(track: Track) -> Track:
    """Return evenly spaced points of a long track, its first and last among them."""
    if track.rounds.size <= _MOST_POINTS:
        return track
    kept = np.unique(np.linspace(0, track.rounds.size - 1, _MOST_POINTS).round().astype(int))
    return Track(track.rounds[kept], track.values[kept])


def draw_line(axes: Axes, track: Track, style_of_it: LineStyle, **changes: Any) -> None:
    """Draw a track in a sampler's style; a handful of points get dots, so that one alone is seen."""
    shown = thinned(track)
    how = {**style_of_it.line, "marker": style.marker(shown.rounds.size), "markersize": 3.5, **changes}
    axes.plot(shown.rounds, shown.values, **how)


def draw_each(axes: Axes, group: Group, tracks: Mapping[str, Track], *, from_zero: bool = False) -> None:
    """Draw a track for each sampler, and fit y to them."""
    styles = styles_of(group)
    for name, track in tracks.items():
        draw_line(axes, track, styles[name])
    style.span(axes, joined(tracks), from_zero=from_zero)


def joined(tracks: Mapping[str, Track]) -> FloatArray:
    """Return all values of some tracks."""
    return np.concatenate([track.values for track in tracks.values()])


def evaluated(group: Group, number: OfRound) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return (rounds,) and (seeds, rounds) of a number by sampler, at the rounds that all seeds have."""
    tracks = {series.sampler: series.settled_tracks(number) for series in group.series}
    tables = {name: at_common_rounds(found) for name, found in tracks.items() if found}
    return {name: (table[0], table[1:]) for name, table in tables.items()}


def curves_figure(curves: Mapping[str, tuple[FloatArray, FloatArray]], title: str, label: str) -> tuple[Figure, Axes]:
    """Draw a quantity of evaluated rounds by sampler: the mean over seeds, in a band of one standard deviation.

    Args:
        curves: (rounds,) and (seeds, rounds), by sampler.
        title: What is shown.
        label: The quantity.

    Raises:
        NothingToDraw: No round was evaluated.
    """
    shown = {name: one for name, one in curves.items() if one[0].size}
    if not shown:
        raise NothingToDraw(f"No round has been evaluated yet: there is no {label} to draw.")
    has_bands = any(len(values) > 1 for _, values in shown.values())
    note = "Mean over seeds, in a band of one standard deviation." if has_bands else ""
    figure, (axes,) = style.new_figure(title, note=note, height_inches=3.5)
    styles, ends = line_styles(curves), []
    for name, (rounds, values) in shown.items():
        middle = values.mean(axis=0)
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(rounds.size)
        low, high = thinned(Track(rounds, middle - spread)), thinned(Track(rounds, middle + spread))
        alpha = 0.15 if len(shown) <= _FEW_BANDS else 0.07
        axes.fill_between(low.rounds, low.values, high.values, color=styles[name].colour, alpha=alpha, linewidth=0)
        draw_line(axes, Track(rounds, middle), styles[name])
        ends += [low.values, high.values, middle]
    every = np.concatenate(ends)
    style.span(axes, every)
    style.round_axis(axes, 1 + int(max(rounds.max() for rounds, _ in shown.values())))
    axes.set_ylabel(label, color=style.INK)
    style.legend(axes)
    return figure, axes
