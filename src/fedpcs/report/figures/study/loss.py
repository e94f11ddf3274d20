"""Cross-entropy on records nobody trained on, over rounds."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import curves_figure, evaluated
from fedpcs.studies.run_files import RunFiles

TOPIC, ORDER = "Loss over rounds", 20


def draw(run: RunFiles) -> Figure:
    """Draw a line for each sampler."""
    return curves_figure(evaluated(run, "loss"), TOPIC, f"cross-entropy on {run.config.data.evaluated_on}")[0]
