"""Who is drawn how often."""

import numpy as np
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report.figures.lines import Line, config_of, lines_figure, mean_line, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group, Series, TrialData

TOPIC, ORDER = "Who is drawn", 70


def draw(group: Group) -> Figure:
    """Draw the share of rounds that clients were drawn in, most drawn first."""
    num_clients = config_of(group).data.num_clients
    begun = [one for one in group.series if any(trial.rounds for trial in one.trials)]
    if not begun:
        raise NothingToDraw("No client has been drawn yet.")
    lines = {one.sampler: ranked(one, num_clients) for one in begun}
    look = {"xlabel": "client, most drawn first", "from_zero": True, "is_share": True, "styles": styles_of(group)}
    return lines_figure(TOPIC, lines, "share of rounds", note="Mean over seeds.", **look)


def ranked(series: Series, num_clients: int) -> Line:
    """Return the share of rounds the k-th most drawn client was drawn in."""
    begun = [trial for trial in series.trials if trial.rounds]
    shares = [-np.sort(-times_drawn(trial, num_clients)) / len(trial.rounds) for trial in begun]
    return mean_line(np.arange(1.0, num_clients + 1.0), np.array(shares))


def times_drawn(trial: TrialData, num_clients: int) -> FloatArray:
    """Return (clients,) how often each was drawn: as the result tells, or as the log so far."""
    if trial.result is not None and trial.result.times_drawn is not None:
        return np.array(trial.result.times_drawn, dtype=np.float64)
    cohorts = [np.array(line.cohort, dtype=np.int64) for line in trial.rounds]
    return np.bincount(np.concatenate(cohorts), minlength=num_clients).astype(np.float64)
