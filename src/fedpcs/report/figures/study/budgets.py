"""Budgets over rounds beside what was announced, and the rewards announced with them.

Samplers whose clients play the same game share an announcement, and are drawn once.
"""

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, styles_of
from fedpcs.report.page import NothingToDraw
from fedpcs.report.palette import LineStyle
from fedpcs.studies.run_files import RunFiles, SamplerFiles, Track, TrialFiles, mean_track

TOPIC, ORDER = "Budgets and rewards", 50


@dataclass(frozen=True)
class Played:
    """A game that was played by the clients of these samplers.

    Attributes:
        samplers: Whose clients play it.
        style: How it is drawn.
        spent: Mean budget over all clients, by round.
        drawn: Mean budget over the clients drawn, by round.
        announced: φ(t); None as long as no trial is done.
        reward: R_t; None likewise.
    """

    samplers: tuple[SamplerFiles, ...]
    style: LineStyle
    spent: Track
    drawn: Track
    announced: Track | None
    reward: Track | None


def draw(run: RunFiles) -> Figure:
    """Draw the mean budget of all clients and of the drawn above, rewards below."""
    games = games_played(run)
    if not games:
        raise NothingToDraw("No budgets to draw: nobody has played yet, or nothing depends on budgets in this run.")
    has_reward = any(game.reward is not None for game in games)
    note = "Thick: mean over all clients. Faint: mean over the clients drawn."
    note += " Dotted: φ(t), the mean first announced." if has_reward else " What was announced is not known yet."
    num_rows, height = (2, 5.2) if has_reward else (1, 3.5)
    figure, panels = style.new_figure(TOPIC, note=note, height_inches=height, num_rows=num_rows)
    _draw_budgets(panels[0], games)
    if has_reward:
        _draw_rewards(panels[1], games)
    for panel in panels:
        style.round_axis(panel, run.config.rounds, label="round" if panel is panels[-1] else "")
        style.legend(panel)
    return figure


def games_played(run: RunFiles) -> list[Played]:
    """Return the games of a run, one for each announcement."""
    groups: dict[object, list[SamplerFiles]] = {}
    for sampler in run.samplers:
        if any(trial.rounds for trial in sampler.trials) and _is_played(run, sampler):
            groups.setdefault(_announcement(sampler) or sampler.name, []).append(sampler)
    return [_played(run, tuple(group)) for group in groups.values()]


def _is_played(run: RunFiles, sampler: SamplerFiles) -> bool:
    if not sampler.done:
        return run.config.privacy.mode != "none"
    return any(result["game"]["standing"] != "not-played" for result in sampler.done)


def _announcement(sampler: SamplerFiles) -> tuple[float, ...]:
    return tuple(sampler.done[0]["game"]["announced_mean_budget"]) if sampler.done else ()


def _played(run: RunFiles, samplers: tuple[SamplerFiles, ...]) -> Played:
    look = styles_of(run)[samplers[0].name]
    done = [result for sampler in samplers for result in sampler.done]
    label = look.label if len(samplers) == 1 else f"{look.label} + {len(samplers) - 1} more"
    if len(samplers) == len(run.samplers) > 1:
        label = "all samplers"
    return Played(
        samplers,
        replace(look, label=label),
        mean_track([track for sampler in samplers for track in sampler.settled_tracks("mean_budget")]),
        mean_track([_drawn_mean(trial) for trial in _settled(samplers)]),
        _path(done[0]["game"]["announced_mean_budget"]) if done else None,
        _path(done[0]["game"]["reward"]) if done else None,
    )


def _settled(samplers: tuple[SamplerFiles, ...]) -> list[TrialFiles]:
    trials = [trial for sampler in samplers for trial in sampler.trials if any(line["cohort"] for line in trial.rounds)]
    return [trial for trial in trials if trial.result is not None] or trials


def _drawn_mean(trial: TrialFiles) -> Track:
    lines = [line for line in trial.rounds if line["cohort"]]
    rounds = np.array([line["round"] for line in lines], dtype=np.float64)
    return Track(rounds, np.array([line["cohort_budget"] / len(line["cohort"]) for line in lines], dtype=np.float64))


def _path(values: list[float]) -> Track:
    path: FloatArray = np.array(values, dtype=np.float64)
    return Track(np.arange(path.size, dtype=np.float64), path)


def _draw_budgets(axes: Axes, games: list[Played]) -> None:
    shown = []
    for game in games:
        draw_line(axes, game.drawn, game.style, linewidth=1.0, alpha=0.45, markersize=2.5, label="_")
        draw_line(axes, game.spent, game.style)
        shown += [game.spent, game.drawn]
        if game.announced is not None:
            draw_line(
                axes, game.announced, game.style, color=style.INK, linewidth=1.0, linestyle=":", marker="", label="_"
            )
            shown.append(game.announced)
    style.span(axes, np.concatenate([track.values for track in shown]))
    axes.set_ylabel("budget, ρ of zCDP", color=style.INK)
    style.caption(axes, "Mean budget a client spends if drawn")


def _draw_rewards(axes: Axes, games: list[Played]) -> None:
    paths = [(game, game.reward) for game in games if game.reward is not None]
    for game, path in paths:
        draw_line(axes, path, game.style)
    style.span(axes, np.concatenate([path.values for _, path in paths]), from_zero=True)
    axes.set_ylabel("reward $R_t$", color=style.INK)
    style.caption(axes, "Reward announced for a unit of budget")
