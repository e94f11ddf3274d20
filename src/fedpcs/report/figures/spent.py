"""What privacy clients have spent, round by round: the least, the median and the greatest ε."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import draw_line, fit, pens, thinned
from fedpcs.report.palette import Pen
from fedpcs.report.svg import NothingToDraw
from fedpcs.studies.run_files import RunFiles, SamplerFiles, Track, at_common_rounds

# Beyond so many samplers, bands from least to greatest would hide one another.
_MOST_BANDS = 3


def epsilon_figure(run: RunFiles) -> Figure:
    """Draw ε at the run's δ, of the client that has spent least, the median one and the one that has spent most."""
    charged = [sampler for sampler in run.samplers if _is_charged(sampler)]
    if not charged:
        raise NothingToDraw(_why_nothing(run))
    has_bands = len(charged) <= _MOST_BANDS
    greatest = {one.name: over_seeds(one, "maximum", np.max) for one in charged}
    figure, (axes,) = style.new_figure(_title(run, greatest), note=_note(run, has_bands), height_inches=3.5)
    labels, styles = [], pens(run)
    for sampler in charged:
        draw = _draw_band if has_bands else _draw_lines
        labels += draw(axes, sampler, greatest[sampler.name], styles[sampler.name])
    fit(axes, list(greatest.values()), from_zero=True)
    if run.config.privacy.limit_epsilon is not None:
        labels.append(_draw_limit(axes, float(run.config.privacy.limit_epsilon)))
    axes.set_ylabel(f"ε spent so far, at δ = {_format.amount(float(run.config.privacy.delta))}", color=style.INK)
    style.round_axis(axes, run.config.rounds)
    style.label_ends(axes, labels, panel_inches=2.8)
    return figure


def over_seeds(sampler: SamplerFiles, which: str, how: Callable[..., FloatArray]) -> Track:
    """Return one of the least, median and greatest ε over clients by round, put together over seeds by `how`."""
    table = at_common_rounds(sampler.settled_tracks("spent", "epsilon", which))
    return Track(table[0], how(table[1:], axis=0))


def _is_charged(sampler: SamplerFiles) -> bool:
    return any(track.values.max() > 0.0 for track in sampler.settled_tracks("spent", "num_clients"))


def _why_nothing(run: RunFiles) -> str:
    if not run.config.privacy.is_private:
        return "Nothing is spent: without privacy no budget is charged."
    return "Nothing has been spent yet: no client has been charged."


def _draw_band(axes: Axes, sampler: SamplerFiles, greatest: Track, pen: Pen) -> list[style.EndLabel]:
    least, middle = over_seeds(sampler, "minimum", np.min), over_seeds(sampler, "median", np.mean)
    low, high = thinned(least), thinned(greatest)
    axes.fill_between(low.rounds, low.values, high.values, color=pen.colour, alpha=0.13, linewidth=0)
    draw_line(axes, least, pen.colour, linewidth=0.8, alpha=0.7, marker="", label="least")
    draw_line(axes, greatest, pen.colour, linewidth=0.8, alpha=0.7, marker="", label="greatest")
    draw_line(axes, middle, pen.colour, linewidth=pen.width, linestyle=pen.stroke, label="median")
    return [
        style.EndLabel(f"{pen.label}, greatest", float(greatest.values[-1]), pen.colour),
        style.EndLabel(f"{pen.label}, median", float(middle.values[-1]), pen.colour),
    ]


def _draw_lines(axes: Axes, sampler: SamplerFiles, greatest: Track, pen: Pen) -> list[style.EndLabel]:
    middle = over_seeds(sampler, "median", np.mean)
    draw_line(axes, greatest, pen.colour, linewidth=pen.width, linestyle=pen.stroke, label="greatest")
    draw_line(axes, middle, pen.colour, linewidth=0.9, linestyle=pen.stroke, alpha=0.45, label="median")
    return [style.EndLabel(pen.label, float(greatest.values[-1]), pen.colour)]


def _draw_limit(axes: Axes, limit: float) -> style.EndLabel:
    axes.axhline(limit, color=style.INK, linewidth=1.0, linestyle=style.DASHES)
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, 1.06 * limit))
    return style.EndLabel("limit", limit, style.INK)


def _title(run: RunFiles, greatest: dict[str, Track]) -> str:
    top = _format.rounded_up(max(float(track.values.max()) for track in greatest.values()))
    when = "By the end" if run.num_done == run.num_trials else "So far"
    sign = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
    delta = _format.amount(float(run.config.privacy.delta))
    return f"{when} no client has spent more than ε{sign}{top} at δ{sign}{delta}"


def _note(run: RunFiles, has_bands: bool) -> str:
    lines = "Band: least to greatest; line: median." if has_bands else "Thick: greatest; faint: median."
    note = f"Over the clients charged so far, and over seeds. {lines}"
    level = run.config.privacy.protection.level
    return note if level is None or level.is_proven else f"{note} No guarantee: {level.caveat}."
