"""How large updates are as they arrive, and how much of that is noise.

Noise is independent of what a client has to say, so squared norms add up on average: update² = signal² + noise².
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, fit, joined, pens
from fedpcs.report.palette import Pen
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles, Track, mean_track

# With this much of its norm noise, an update's signal is less than a seventh of it, and not to be told from nothing.
_DROWNED = 0.99


def noise_figure(run: RunFiles) -> Figure:
    """Draw the norm of a typical update as it arrives above, and the share of it that noise alone would make below."""
    update, noise = _norms(run, "update_norm"), _norms(run, "noise_norm")
    if not update:
        raise NothingToDraw("No update has arrived yet: there are no norms to draw.")
    shares = {name: share(noise[name], update[name]) for name in update}
    is_noisy = bool(joined(list(shares.values())).max() > 0.0)
    note = "Medians over the clients heard, means over seeds."
    note += " At 100 % an update shows noise and nothing else; what helps is to average many." if is_noisy else ""
    num_rows, height, panel_inches = (2, 5.2, 1.8) if is_noisy else (1, 3.5, 2.8)
    figure, panels = style.new_figure(_title(update, shares), note=note, height_inches=height, num_rows=num_rows)
    styles = pens(run)
    _draw_each(panels[0], update, styles, panel_inches)
    panels[0].set_ylabel("norm", color=style.INK)
    style.caption(panels[0], "A typical update as it arrives")
    style.round_axis(panels[0], run.config.rounds, words="" if is_noisy else "round")
    if is_noisy:
        _draw_each(panels[1], shares, styles, panel_inches)
        panels[1].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))
        panels[1].set_ylabel("noise ÷ update", color=style.INK)
        style.caption(panels[1], "Noise alone, as a share of it")
        style.round_axis(panels[1], run.config.rounds)
    return figure


def share(noise: Track, update: Track) -> Track:
    """Return noise ÷ update, 0 where nothing was sent."""
    safe: FloatArray = np.where(update.values > 0.0, update.values, np.inf)
    return Track(noise.rounds, noise.values / safe)


def _norms(run: RunFiles, which: str) -> dict[str, Track]:
    found = {sampler.name: sampler.settled_tracks(which, "median") for sampler in run.samplers}
    return {name: mean_track(tracks) for name, tracks in found.items() if tracks}


def _draw_each(axes: Axes, tracks: dict[str, Track], styles: dict[str, Pen], panel_inches: float) -> None:
    labels = []
    for name, track in tracks.items():
        pen = styles[name]
        draw_line(axes, track, pen.colour, linewidth=pen.width, linestyle=pen.stroke, label=name)
        labels.append(style.EndLabel(pen.label, float(track.values[-1]), pen.colour))
    fit(axes, list(tracks.values()), from_zero=True)
    style.label_ends(axes, labels, panel_inches=panel_inches)


def _title(update: dict[str, Track], shares: dict[str, Track]) -> str:
    norm = _format.amount(float(np.median(joined(list(update.values())))))
    typical = float(np.median(joined(list(shares.values()))))
    if typical == 0.0:
        return f"Updates arrive without noise; a typical one has norm {norm}"
    if typical >= _DROWNED:
        return f"A typical update has norm {norm}, and noise alone would have as much: by itself it shows nothing"
    ratio = _format.amount(typical / float(np.sqrt(1.0 - typical**2)))
    return f"A typical update has norm {norm}, and its noise is {ratio} times its signal"
