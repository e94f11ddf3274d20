"""What privacy clients have spent, round by round: the greatest and the median ε."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.run_files import RunFiles, SamplerFiles, Track, at_common_rounds

TOPIC, ORDER = "Privacy spent over rounds", 30


def draw(run: RunFiles) -> Figure:
    """Draw ε at the run's δ of the client that has spent most, and fainter of the median one."""
    charged = [one for one in run.samplers if any(track.values.max() > 0.0 for track in _charged(one))]
    privacy = run.config.privacy
    if not charged:
        reason = "without privacy (mode none) no budget is charged" if privacy.mode == "none" else "nobody is charged"
        raise NothingToDraw(f"Nothing is spent: {reason}.")
    note = "Over the clients charged so far and over seeds: the greatest; fainter, the median."
    if privacy.mode == "paper":
        note += " By the paper's calibration, which is not proven."
    figure, (axes,) = style.new_figure(TOPIC, note=note, height_inches=3.5)
    styles, shown = styles_of(run), [0.0]
    for sampler in charged:
        greatest, median = greatest_of(sampler), median_of(sampler)
        draw_line(axes, greatest, styles[sampler.name])
        draw_line(axes, median, styles[sampler.name], linewidth=0.9, alpha=0.5, marker="", label="_")
        shown += [*greatest.values, *median.values]
    if privacy.limit_epsilon is not None:
        limit = float(privacy.limit_epsilon)
        axes.axhline(limit, color=style.INK, linewidth=1.0, linestyle=style.DASHES, label="limit")
        shown.append(limit)
    style.span(axes, np.array(shown), from_zero=True)
    axes.set_ylabel(f"ε spent so far, at δ = {_format.amount(float(privacy.delta))}", color=style.INK)
    style.round_axis(axes, run.config.rounds)
    style.legend(axes)
    return figure


def greatest_of(sampler: SamplerFiles) -> Track:
    """Return the greatest ε over clients and seeds, by round."""
    table = at_common_rounds(sampler.settled_tracks("spent", "epsilon", "maximum"))
    return Track(table[0], table[1:].max(axis=0))


def median_of(sampler: SamplerFiles) -> Track:
    """Return the median client's ε, the mean over seeds, by round."""
    table = at_common_rounds(sampler.settled_tracks("spent", "epsilon", "median"))
    return Track(table[0], table[1:].mean(axis=0))


def _charged(sampler: SamplerFiles) -> list[Track]:
    return sampler.settled_tracks("spent", "num_clients")
