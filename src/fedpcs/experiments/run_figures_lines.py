"""Lines of a run's figures: a colour and a stroke for every sampler, and as many points as a screen shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from fedpcs._validate import FloatArray
from fedpcs.experiments import figure_style as style
from fedpcs.experiments.run_report_files import RunFiles, Track

# Okabe and Ito's, the two that are too pale for letters made darker.
_COLOURS = (style.BLUE, style.VERMILION, style.GREEN, "#A3527F", style.DARK_ORANGE)
_STROKES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
# Letters that look like the strokes, for labels once colours alone do not tell samplers apart.
_STROKE_SIGNS = ("━ ", "╍ ", "┅ ", "┉ ")
_MOST_POINTS = 300
_MOST_LETTERS = 18


@dataclass(frozen=True)
class Pen:
    """How a sampler is drawn.

    Attributes:
        name: The sampler's name, short enough for a label and safe from being read as mathematics.
        colour: Of its lines and label.
        stroke: Of its lines.
        width: Of its main line, in points: the more lines there are, the finer.
    """

    name: str
    colour: str
    stroke: Any
    width: float


def pens(run: RunFiles) -> dict[str, Pen]:
    """Return a pen for every sampler, by its name: the same in every figure."""
    names = [sampler.name for sampler in run.samplers]
    width = 2.2 if len(names) <= len(_COLOURS) else 1.4
    found = {}
    for k, name in enumerate(names):
        turn = k // len(_COLOURS) % len(_STROKES)
        sign = _STROKE_SIGNS[turn] if len(names) > len(_COLOURS) else ""
        found[name] = Pen(sign + _short(name), _COLOURS[k % len(_COLOURS)], _STROKES[turn], width)
    return found


def _short(name: str) -> str:
    last = name.rpartition(":")[2] or name
    cut = last if len(last) <= _MOST_LETTERS else last[: _MOST_LETTERS - 1] + "…"
    return cut.replace("$", r"\$")


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
