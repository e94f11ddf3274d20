"""Which client holds which classes, in the first seed's partition (paper, Fig. 2)."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report.figures.lines import config_of
from fedpcs.report.figures.partition import partition_figure, split_text
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group

TOPIC, ORDER = "Who holds what", 40


def draw(group: Group) -> Figure:
    """Draw records by client and class for the first seed whose partition is known."""
    results = [trial.result for series in group.series for trial in series.trials if trial.result is not None]
    known = [one for one in results if one.label_counts is not None]
    if not known:
        raise NothingToDraw(
            "Who holds which classes is not in the results: no trial is done, or there are too many clients to keep it."
        )
    first = min(known, key=lambda one: one.seed)
    text = f"{split_text(config_of(group).data)}, seed {first.seed}"
    return partition_figure(np.array(first.label_counts), text)
