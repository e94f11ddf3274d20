"""Cross-entropy on records nobody trained on, over rounds."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import config_of, curves_figure, evaluated
from fedpcs.studies.results import Group

TOPIC, ORDER = "Loss over rounds", 20


def draw(group: Group) -> Figure:
    """Draw a line for each sampler."""
    return curves_figure(
        evaluated(group, lambda line: line.loss), TOPIC, f"cross-entropy on {config_of(group).data.evaluated_on}"
    )[0]
