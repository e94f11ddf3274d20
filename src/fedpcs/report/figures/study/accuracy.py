"""Accuracy on records nobody trained on, over rounds."""

from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.figures.lines import curves_figure, evaluated
from fedpcs.studies.run_files import RunFiles

TOPIC, ORDER = "Accuracy over rounds", 10


def draw(run: RunFiles) -> Figure:
    """Draw a line for each sampler."""
    figure, axes = curves_figure(evaluated(run, "accuracy"), TOPIC, f"accuracy on {run.config.data.evaluated_on}")
    style.percent_ticks(axes.yaxis)
    return figure
