"""Budgets over rounds beside what was announced, and the rewards announced with them.

Samplers whose clients play the same game share an announcement, and are drawn once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.figures.lines import config_of, draw_line, num_rounds, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle
from fedpcs.studies.results import Group, Series, Track, mean_track

TOPIC, ORDER = "Budgets and rewards", 50


@dataclass(frozen=True)
class Played:
    """A game that was played.

    Attributes:
        style: How it is drawn.
        spent: Mean budget over all clients, by round.
        drawn: Mean budget over the clients drawn, by round.
        announced: φ(t); None as long as no trial is done.
        reward: R_t; None likewise.
    """

    style: LineStyle
    spent: Track
    drawn: Track
    announced: Track | None
    reward: Track | None


def draw(group: Group) -> Figure:
    """Draw the mean budget of all clients and of the drawn above, rewards below."""
    games = games_played(group)
    if not games:
        raise NothingToDraw("No budgets to draw: nobody has played yet, or nothing depends on budgets here.")
    rewards = [(game.style, game.reward) for game in games if game.reward is not None]
    note = "Thick: mean over all clients. Faint: mean over the clients drawn."
    note += " Dotted: φ(t), the mean first announced." if rewards else " What was announced is not known yet."
    num_rows, height = (2, 5.2) if rewards else (1, 3.5)
    figure, panels = style.new_figure(TOPIC, note=note, height_inches=height, num_rows=num_rows)
    shown = []
    for game in games:
        draw_line(panels[0], game.drawn, game.style, linewidth=1.0, alpha=0.45, markersize=2.5, label="_")
        draw_line(panels[0], game.spent, game.style)
        shown += [game.spent.values, game.drawn.values]
        if game.announced is not None:
            look = {"color": style.INK, "linewidth": 1.0, "linestyle": ":", "marker": "", "label": "_"}
            draw_line(panels[0], game.announced, game.style, **look)
            shown.append(game.announced.values)
    style.span(panels[0], np.concatenate(shown))
    panels[0].set_ylabel("budget, ρ of zCDP", color=style.INK)
    style.caption(panels[0], "Mean budget a client spends if drawn")
    for look_of_it, path in rewards:
        draw_line(panels[1], path, look_of_it)
    if rewards:
        style.span(panels[1], np.concatenate([path.values for _, path in rewards]), from_zero=True)
        panels[1].set_ylabel("reward $R_t$", color=style.INK)
        style.caption(panels[1], "Reward announced for a unit of budget")
    for panel in panels:
        style.round_axis(panel, num_rounds(group), label="round" if panel is panels[-1] else "")
        style.legend(panel)
    return figure


def games_played(group: Group) -> list[Played]:
    """Return the games that were played, one for each announcement."""
    games: dict[object, list[Series]] = {}
    for series in group.series:
        announced = tuple(series.results[0].game.mean_budget) if series.done else ()
        if any(trial.rounds for trial in series.trials) and _is_played(group, series):
            games.setdefault(announced or series.sampler, []).append(series)
    return [_played(group, together) for together in games.values()]


def _is_played(group: Group, series: Series) -> bool:
    if not series.done:
        return config_of(group).privacy.is_private
    return any(result.game.standing != "not-played" for result in series.results)


def _played(group: Group, samplers: Sequence[Series]) -> Played:
    look = styles_of(group)[samplers[0].sampler]
    done = [result for one in samplers for result in one.results]
    label = look.label if len(samplers) == 1 else f"{look.label} + {len(samplers) - 1} more"
    if len(samplers) == len(group.series) > 1:
        label = "all samplers"
    spent = [track for one in samplers for track in one.settled_tracks(lambda line: line.realised_mean_budget)]
    drawn = [
        track
        for one in samplers
        for track in one.settled_tracks(lambda line: line.cohort_budget / len(line.cohort) if line.cohort else None)
    ]
    return Played(
        replace(look, label=label),
        mean_track(spent),
        mean_track(drawn),
        _path(done[0].game.mean_budget) if done else None,
        _path(done[0].game.reward) if done else None,
    )


def _path(values: Sequence[float]) -> Track:
    return Track(np.arange(len(values), dtype=np.float64), np.array(values, dtype=np.float64))
