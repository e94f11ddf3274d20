"""The rewards announced for a unit of budget, round by round."""

from matplotlib.figure import Figure

from fedpcs.report.figures.lines import lines_figure
from fedpcs.report.figures.study.budgets import announced, games_played
from fedpcs.report.page import NothingToDraw
from fedpcs.studies.results import Group

TOPIC, ORDER = "Rewards announced", 51


def draw(group: Group) -> Figure:
    """Draw R_t of every game that was played."""
    paths = [(look, announced(samplers, "reward")) for look, samplers in games_played(group)]
    known = [(look, path) for look, path in paths if path is not None]
    if not known:
        raise NothingToDraw("No rewards to draw: no trial is done, or nothing depends on budgets here.")
    lines, styles = {look.label: path for look, path in known}, {look.label: look for look, _ in known}
    return lines_figure(TOPIC, lines, "reward $R_t$ for a unit of budget", styles=styles, from_zero=True)
