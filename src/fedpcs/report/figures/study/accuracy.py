"""Accuracy on records nobody trained on, over rounds."""

from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.figures.lines import config_of, curves_figure, evaluated
from fedpcs.studies.results import Group

TOPIC, ORDER = "Accuracy over rounds", 10


def draw(group: Group) -> Figure:
    """Draw a line for each sampler."""
    figure, axes = curves_figure(
        evaluated(group, lambda line: line.accuracy), TOPIC, f"accuracy on {config_of(group).data.evaluated_on}"
    )
    style.percent_ticks(axes.yaxis)
    return figure
