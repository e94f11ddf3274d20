"""Lines of a run's figures: the palette's pens for its samplers, and as many points as a screen shows."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fedpcs._validate import FloatArray
from fedpcs.report import palette, style
from fedpcs.report.palette import Pen
from fedpcs.studies.run_files import RunFiles, Track

_MOST_POINTS = 300


def pens(run: RunFiles) -> dict[str, Pen]:
    """Return a pen for every sampler, by its name."""
    return palette.pens(sampler.name for sampler in run.samplers)


def thinned(track: Track) -> Track:
    """Return evenly spaced points of a long track, its first and last among them."""
    num = track.rounds.size
    if num <= _MOST_POINTS:
        return track
    kept = np.unique(np.linspace(0, num - 1, _MOST_POINTS).round().astype(int))
    return Track(track.rounds[kept], track.values[kept])


def draw_line(axes: Axes, track: Track, colour: str, **how: Any) -> None:
    """Draw a track; a handful of points get dots, so that one alone is seen."""
    shown = thinned(track)
    look = {"marker": style.marker(shown.rounds.size), "markersize": 3.5, **how}
    axes.plot(shown.rounds, shown.values, color=colour, **look)


def fit(axes: Axes, tracks: list[Track], *, from_zero: bool = False) -> None:
    """Fit y to tracks."""
    style.span(axes, joined(tracks), from_zero=from_zero)


def joined(tracks: list[Track]) -> FloatArray:
    """Return all values of some tracks."""
    return np.concatenate([track.values for track in tracks])
