"""Budgets over rounds beside what was announced, and the rewards announced with them.

Samplers whose clients play the same game share an announcement, and are drawn as one group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, fit, pens
from fedpcs.report.palette import Pen
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles, SamplerFiles, Track, TrialFiles, mean_track

# Relative differences a reader could not see.
_UNSEEN = 0.02


@dataclass(frozen=True)
class Played:
    """A game that was played: by the clients of these samplers.

    Attributes:
        samplers: Whose clients play it.
        pen: How it is drawn.
        spent: Mean budget over all clients, by round.
        drawn: Mean budget over the clients drawn, by round.
        announced: φ(t); None as long as no trial is done.
        reward: R_t; None likewise.
    """

    samplers: tuple[SamplerFiles, ...]
    pen: Pen
    spent: Track
    drawn: Track
    announced: Track | None
    reward: Track | None

    @property
    def is_replanned(self) -> bool:
        """Whether the game was solved anew on the way, so that what was announced first did not stand."""
        lines = [line for sampler in self.samplers for trial in sampler.trials for line in trial.rounds]
        return any(line.replanned for line in lines)


def budget_figure(run: RunFiles) -> Figure:
    """Draw the mean budget of all clients and of the drawn above, rewards below."""
    games = games_played(run)
    if not games:
        raise NothingToDraw("No budgets to draw: nobody has played yet, or nothing depends on budgets in this run.")
    has_reward = any(game.reward is not None for game in games)
    note = "Solid: mean over all clients. Faint: mean over the clients drawn."
    note += (
        " Dashed: φ(t), the mean first announced."
        if has_reward
        else " What was announced is known once a trial is done."
    )
    num_rows, height = (2, 5.2) if has_reward else (1, 3.5)
    figure, panels = style.new_figure(_title(games), note=note, height_inches=height, num_rows=num_rows)
    _draw_budgets(panels[0], games)
    style.round_axis(panels[0], run.config.rounds, words="" if has_reward else "round")
    _label(panels[0], games, [game.spent for game in games])
    if has_reward:
        _draw_rewards(panels[1], games)
        style.round_axis(panels[1], run.config.rounds)
    return figure


def games_played(run: RunFiles) -> list[Played]:
    """Return the games of a run, one for each announcement."""
    groups: dict[object, list[SamplerFiles]] = {}
    for sampler in run.samplers:
        if any(trial.rounds for trial in sampler.trials) and _is_played(run, sampler):
            groups.setdefault(_announcement(sampler) or sampler.name, []).append(sampler)
    styles = pens(run)
    return [_played(run, tuple(group), styles) for group in groups.values()]


def _is_played(run: RunFiles, sampler: SamplerFiles) -> bool:
    if not sampler.done:
        return run.config.privacy.is_private
    return any(result["game"]["standing"] != "not-played" for result in sampler.done)


def _announcement(sampler: SamplerFiles) -> tuple[float, ...]:
    return tuple(sampler.done[0]["game"]["mean_budget"]) if sampler.done else ()


def _played(run: RunFiles, samplers: tuple[SamplerFiles, ...], styles: dict[str, Pen]) -> Played:
    pen = styles[samplers[0].name]
    done = [result for sampler in samplers for result in sampler.done]
    name = pen.name if len(samplers) == 1 else f"{pen.name} + {len(samplers) - 1} more"
    if len(samplers) == len(run.samplers) > 1:
        name = "all samplers"
    return Played(
        samplers,
        replace(pen, name=name),
        mean_track([track for sampler in samplers for track in sampler.settled_tracks("realised_mean_budget")]),
        mean_track([_drawn_mean(trial) for trial in _settled(samplers)]),
        _path(done[0]["game"]["mean_budget"]) if done else None,
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
        draw_line(axes, game.drawn, game.pen.colour, linewidth=1.0, alpha=0.45, markersize=2.5)
        draw_line(axes, game.spent, game.pen.colour, linewidth=2.2, label="spent")
        shown += [game.spent, game.drawn]
        if game.announced is not None:
            # Over the solid line: where they agree, the dashes show on it.
            axes.plot(
                game.announced.rounds, game.announced.values, color="white", linewidth=1.0, linestyle=style.DASHES
            )
            if _gap(game) > _UNSEEN:
                draw_line(axes, game.announced, game.pen.colour, linewidth=1.4, linestyle=style.DASHES, marker="")
            shown.append(game.announced)
    fit(axes, shown)
    axes.set_ylabel("budget, ρ of zCDP", color=style.INK)
    style.caption(axes, "Mean budget a client spends if drawn")


def _draw_rewards(axes: Axes, games: list[Played]) -> None:
    paths = [(game, game.reward) for game in games if game.reward is not None]
    for game, path in paths:
        draw_line(axes, path, game.pen.colour, linewidth=2.0, label="reward")
    fit(axes, [path for _, path in paths], from_zero=True)
    axes.set_ylabel("reward $R_t$", color=style.INK)
    style.caption(axes, "Reward announced for a unit of budget")
    _label(axes, [game for game, _ in paths], [path for _, path in paths])


def _label(axes: Axes, games: list[Played], tracks: list[Track]) -> None:
    labels = [
        style.EndLabel(game.pen.name, float(track.values[-1]), game.pen.colour)
        for game, track in zip(games, tracks, strict=True)
    ]
    style.label_ends(axes, labels, panel_inches=1.8)


def _gap(game: Played) -> float:
    """Return how far clients spend from what was announced, at most, as a share of the greatest φ(t)."""
    if game.announced is None:
        return 0.0
    announced = game.announced.values[game.spent.rounds.astype(int)]
    return float(np.abs(game.spent.values - announced).max() / max(announced.max(), 1e-300))


def _title(games: list[Played]) -> str:
    first = games[0]
    start, end = _format.amount(float(first.spent.values[0])), _format.amount(float(first.spent.values[-1]))
    path = f"goes from {start} to {end}" if start != end else f"stays at {start}"
    who = "" if len(games) == 1 else f" under {first.pen.name}"
    if any(game.is_replanned for game in games):
        return f"The mean budget{who} {path}; the game was solved anew as clients came and went"
    if first.announced is None:
        return f"The mean budget{who} {path}"
    widest = max(_gap(game) for game in games)
    if widest <= _UNSEEN:
        return f"Clients spend what was announced: the mean budget{who} {path}"
    return f"Clients spend up to {_format.percent(widest)} off what was announced: the mean budget{who} {path}"
