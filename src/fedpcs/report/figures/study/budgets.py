"""Budgets over rounds beside what was announced.

Samplers whose clients play the same game share an announcement, and are drawn once.
"""

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.figures.lines import Line, config_of, line_of, lines_figure, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle
from fedpcs.studies.results import Group, Series
from fedpcs.trial.records import RoundRecord

TOPIC, ORDER = "Budgets", 50


def draw(group: Group) -> Figure:
    """Draw the mean budget of all clients, of those drawn, and the mean first announced."""
    shown = []
    for look, samplers in games_played(group):
        shown += [
            (look, line_of(samplers, lambda line: line.realised_mean_budget)),
            (look.beside("drawn", style.DASHES), line_of(samplers, _mean_drawn)),
            (look.beside("announced", style.DOTS), announced(samplers, "mean_budget")),
        ]
    lines = {look.label: replace(line, low=None, high=None) for look, line in shown if line is not None}
    if not lines:
        raise NothingToDraw("No budgets to draw: nobody has played yet, or nothing depends on budgets here.")
    note = "What a client spends if drawn: mean over all clients and seeds; dashed, over those drawn."
    return lines_figure(TOPIC, lines, "budget, ρ of zCDP", note=note, styles={look.label: look for look, _ in shown})


def games_played(group: Group) -> list[tuple[LineStyle, list[Series]]]:
    """Return the games that were played, one for each announcement: how it is drawn, and its samplers."""
    games: dict[object, list[Series]] = {}
    for series in group.series:
        key = tuple(series.results[0].game.mean_budget) if series.done else ()
        if any(trial.rounds for trial in series.trials) and _is_played(group, series):
            games.setdefault(key or series.sampler, []).append(series)
    return [(_look(group, samplers), samplers) for samplers in games.values()]


def announced(samplers: list[Series], path: str) -> Line | None:
    """Return φ(t) or R_t as they were first announced; None as long as no trial is done."""
    results = [result for one in samplers for result in one.results]
    if not results:
        return None
    values = np.array(getattr(results[0].game, path), dtype=np.float64)
    return Line(np.arange(values.size, dtype=np.float64), values)


def _mean_drawn(line: RoundRecord) -> float | None:
    return line.cohort_budget / len(line.cohort) if line.cohort else None


def _is_played(group: Group, series: Series) -> bool:
    if not series.done:
        return config_of(group).privacy.is_private
    return any(result.game.standing != "not-played" for result in series.results)


def _look(group: Group, samplers: list[Series]) -> LineStyle:
    look = styles_of(group)[samplers[0].sampler]
    if len(samplers) == 1:
        return look
    is_all = len(samplers) == len(group.series)
    return replace(look, label="all samplers" if is_all else f"{look.label} + {len(samplers) - 1} more")
