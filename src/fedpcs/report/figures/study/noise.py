"""How large updates are as they arrive, and how much of that is noise.

Noise is independent of what a client has to say, so squared norms add up on average: update² = signal² + noise².
"""

import numpy as np
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_each, joined, mean_tracks, num_rounds
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group, Track

TOPIC, ORDER = "Noise and signal", 60


def draw(group: Group) -> Figure:
    """Draw the norm of a typical update as it arrives, and the share of it that noise alone would make."""
    update, noise = (
        mean_tracks(group, lambda line: line.update_norm.median),
        mean_tracks(group, lambda line: line.noise_norm.median),
    )
    if not update:
        raise NothingToDraw("No update has arrived yet: there are no norms to draw.")
    shares = {name: share(noise[name], update[name]) for name in update}
    is_noisy = bool(joined(shares).max() > 0.0)
    note = "Medians over the clients heard, means over seeds."
    note += " At 100 % an update shows noise and nothing else; what helps is to average many." if is_noisy else ""
    num_rows, height = (2, 5.2) if is_noisy else (1, 3.5)
    figure, panels = style.new_figure(TOPIC, note=note, height_inches=height, num_rows=num_rows)
    draw_each(panels[0], group, update, from_zero=True)
    panels[0].set_ylabel("norm", color=style.INK)
    style.caption(panels[0], "A typical update as it arrives")
    if is_noisy:
        draw_each(panels[1], group, shares, from_zero=True)
        style.percent_ticks(panels[1].yaxis)
        panels[1].set_ylabel("noise ÷ update", color=style.INK)
        style.caption(panels[1], "Noise alone, as a share of it")
    for panel in panels:
        style.round_axis(panel, num_rounds(group), label="round" if panel is panels[-1] else "")
        style.legend(panel)
    return figure


def share(noise: Track, update: Track) -> Track:
    """Return noise ÷ update, 0 where nothing was sent."""
    safe: FloatArray = np.where(update.values > 0.0, update.values, np.inf)
    return Track(noise.rounds, noise.values / safe)
