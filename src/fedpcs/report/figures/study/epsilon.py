"""What privacy clients have spent, round by round: the greatest and the median ε."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.figures.lines import config_of, draw_line, num_rounds, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group, Series, Track, at_common_rounds

TOPIC, ORDER = "Privacy spent over rounds", 30


def draw(group: Group) -> Figure:
    """Draw ε at the study's δ of the client that has spent most, and fainter of the median one."""
    charged = [
        one
        for one in group.series
        if any(track.values.max() > 0.0 for track in one.settled_tracks(lambda line: line.spent.num_clients))
    ]
    privacy = config_of(group).privacy
    if not charged:
        reason = "without privacy (mode none) no budget is charged" if not privacy.is_private else "nobody is charged"
        raise NothingToDraw(f"Nothing is spent: {reason}.")
    note = "Over the clients charged so far and over seeds: the greatest; fainter, the median."
    level = privacy.protection.level
    if level is not None and not level.is_proven:
        note += f" No guarantee: {level.caveat}."
    figure, (axes,) = style.new_figure(TOPIC, note=note, height_inches=3.5)
    styles, shown = styles_of(group), [0.0]
    for series in charged:
        greatest, median = greatest_of(series), median_of(series)
        draw_line(axes, greatest, styles[series.sampler])
        draw_line(axes, median, styles[series.sampler], linewidth=0.9, alpha=0.5, marker="", label="_")
        shown += [*greatest.values, *median.values]
    if privacy.limit_epsilon is not None:
        limit = float(privacy.limit_epsilon)
        axes.axhline(limit, color=style.INK, linewidth=1.0, linestyle=style.DASHES, label="limit")
        shown.append(limit)
    style.span(axes, np.array(shown), from_zero=True)
    axes.set_ylabel(f"ε spent so far, at δ = {_format.amount(float(privacy.delta))}", color=style.INK)
    style.round_axis(axes, num_rounds(group))
    style.legend(axes)
    return figure


def greatest_of(series: Series) -> Track:
    """Return the greatest ε over clients and seeds, by round."""
    table = at_common_rounds(series.settled_tracks(lambda line: line.spent.epsilon.maximum))
    return Track(table[0], table[1:].max(axis=0))


def median_of(series: Series) -> Track:
    """Return the median client's ε, the mean over seeds, by round."""
    table = at_common_rounds(series.settled_tracks(lambda line: line.spent.epsilon.median))
    return Track(table[0], table[1:].mean(axis=0))
