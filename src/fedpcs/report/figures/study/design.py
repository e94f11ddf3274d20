"""Whether draws follow the probabilities they were designed with."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import rounds_figure
from fedpcs.studies.results import Group

TOPIC, ORDER = "Draws against their design", 71


def draw(group: Group) -> Figure:
    """Draw how far draws stray from the design, in standard deviations over clients."""
    return rounds_figure(
        group,
        lambda line: line.draw.inclusion_score,
        TOPIC,
        "drawn − designed, in std. dev.",
        note="Near 1 if draws follow the sampler's own probabilities. Samplers without any have no line.",
        level=("chance", 1.0),
        from_zero=True,
    )
