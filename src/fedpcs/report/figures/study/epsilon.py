"""What privacy clients have spent, round by round: the greatest and the median ε."""

from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.report import style
from fedpcs.report.figures.lines import Line, config_of, lines_figure, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle
from fedpcs.studies.results import Group, Series, at_common_rounds

TOPIC, ORDER = "Privacy spent over rounds", 30


def draw(group: Group) -> Figure:
    """Draw ε at the study's δ of the client that has spent most, and of the median one."""
    charged = [
        one
        for one in group.series
        if any(track.values.max() > 0.0 for track in one.settled_tracks(lambda line: line.spent.num_clients))
    ]
    privacy = config_of(group).privacy
    if not charged:
        reason = "without privacy (mode none) no budget is charged" if not privacy.is_private else "nobody is charged"
        raise NothingToDraw(f"Nothing is spent: {reason}.")
    note = "Of the clients charged so far: the greatest over seeds; dashed, the median, mean over seeds."
    level = privacy.protection.level
    if level is not None and not level.is_proven:
        note += f" No guarantee: {level.caveat}."
    shown: list[tuple[LineStyle, Line]] = []
    for series in charged:
        look = styles_of(group)[series.sampler]
        shown += [(look, greatest_of(series)), (look.beside("median", style.DASHES), median_of(series))]
    return lines_figure(
        TOPIC,
        {look.label: line for look, line in shown},
        f"ε spent so far, at δ = {_format.amount(float(privacy.delta))}",
        note=note,
        styles={look.label: look for look, _ in shown},
        level=None if privacy.limit_epsilon is None else ("limit", float(privacy.limit_epsilon)),
        from_zero=True,
    )


def greatest_of(series: Series) -> Line:
    """Return the greatest ε over clients and seeds, by round."""
    table = at_common_rounds(series.settled_tracks(lambda line: line.spent.epsilon.maximum))
    return Line(table[0], table[1:].max(axis=0))


def median_of(series: Series) -> Line:
    """Return the median client's ε, the mean over seeds, by round."""
    table = at_common_rounds(series.settled_tracks(lambda line: line.spent.epsilon.median))
    return Line(table[0], table[1:].mean(axis=0))
