"""How large a typical update is as it arrives."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import rounds_figure
from fedpcs.studies.results import Group

TOPIC, ORDER = "Size of updates", 60


def draw(group: Group) -> Figure:
    """Draw the median client's norm, update and noise together."""
    note = "Median of the clients heard."
    return rounds_figure(
        group, lambda line: line.update_norm.median, TOPIC, "norm of an update", note=note, from_zero=True
    )
