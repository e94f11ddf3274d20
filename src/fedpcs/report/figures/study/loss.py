"""Cross-entropy on records nobody trained on, over rounds."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import config_of, rounds_figure
from fedpcs.studies.results import Group

TOPIC, ORDER = "Loss over rounds", 20


def draw(group: Group) -> Figure:
    """Draw a line for each sampler."""
    label = f"cross-entropy on {config_of(group).data.evaluated_on}"
    return rounds_figure(group, lambda line: line.loss, TOPIC, label)
