"""Figures that set a solved game beside others: other response modes, another sampler, the optimum.

These solve equilibria of their own. Where a game has too many types for that to be quick, its types are
merged first, and the figure says so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.game import equilibrium, mean_field, welfare
from fedpcs.game.equilibrium import Equilibrium, merge_note, merge_types
from fedpcs.game.mean_field import RESPONSE_MODES, ResponseMode
from fedpcs.game.rules import Game
from fedpcs.report import style

# Four equilibria are solved for one figure and one for the other; beyond so many types, on merged ones.
_MOST_RESPONSE_TYPES = 300
_MOST_WELFARE_TYPES = 20_000

_MODE_LABELS: dict[ResponseMode, str] = {
    "exact": "exact\ndynamic programming",
    "costate": "costate\nTheorem 1, corrected",
    "paper": "paper\nAlgorithm 1 as printed",
    "paper-backward": "paper-backward\nits loop run backward",
}


def response_figure(found: Equilibrium) -> Figure:
    """Draw what a client gains by leaving the profile of each response mode, on this game's rewards."""
    game, _ = merge_types(found, _MOST_RESPONSE_TYPES)
    gains = {mode: _relative_gain(game, found.reward.path, mode) for mode in RESPONSE_MODES}
    figure, (axes,) = style.new_figure(
        "What a client gains by deviating", note=merge_note(found, game), height_inches=4.0
    )
    _draw_gains(axes, gains)
    return figure


def _relative_gain(game: Game, path: FloatArray, mode: ResponseMode) -> float:
    return equilibrium.solve(game, path, response=mode, throw=False).certificate.relative


def _draw_gains(axes: Axes, gains: dict[ResponseMode, float]) -> None:
    values = np.array(list(gains.values()))
    floor = 10.0 ** np.floor(np.log10(values[values > _format.ROUNDING].min(initial=1e-4)) - 0.5)
    values = np.where(values > _format.ROUNDING, values, floor)
    colours = (style.BLUE, style.GREEN, style.VERMILION, style.ORANGE)
    bars = axes.barh(range(values.size), values - floor, left=floor, height=0.6, color=colours)
    axes.bar_label(bars, [_format.gain(gain) for gain in gains.values()], padding=6, fontsize=10, color=style.INK)
    axes.set_xscale("log")
    axes.set_xlim(floor, 12.0 * max(1.0, values.max()))
    axes.set_yticks(range(values.size), [_MODE_LABELS[mode] for mode in gains])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _format.percent(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvline(1e-3, color=style.GREY, linewidth=1.0, linestyle=style.DASHES, zorder=0)
    axes.set_xlabel("exploitability: mean gain by deviating ÷ mean best utility (log scale)", color=style.INK)
    style.caption(axes, "Four ways to compute responses, same rewards; dashed: 0.1 %, the default tolerance")


def welfare_figure(found: Equilibrium) -> Figure:
    """Draw welfare of the equilibrium beside its yardsticks, and the price of anarchy of each."""
    game, budget = merge_types(found, _MOST_WELFARE_TYPES)
    if game is found.game:
        worth, price = found.welfare()
    else:
        blind = mean_field.settle(replace(game, selection="budget-blind"), found.reward.path).profile
        worth, price = welfare.assess(budget, blind.budget, found.reward.path, game)
    note = " ".join((_bound_note(price), merge_note(found, game))).strip()
    figure, (left, right) = style.new_figure(
        "Welfare and price of anarchy", note=note, height_inches=4.4, num_columns=2
    )
    _draw_worth(left, worth)
    _draw_price(right, price)
    return figure


def _draw_worth(axes: Axes, worth: welfare.Welfare) -> None:
    bars = {
        "optimum within bounds": (worth.optimum_bounded, style.PALE),
        "this solution": (worth.equilibrium, style.BLUE),
        "budget-blind sampler": (worth.budget_blind, style.GREY),
        "all at lowest budget": (worth.worst_case, style.ORANGE),
    }
    values = [value for value, _ in bars.values()]
    drawn = axes.barh(range(4), values, height=0.6, color=[colour for _, colour in bars.values()])
    axes.bar_label(drawn, [_format.amount(value) for value in values], padding=5, fontsize=9.5, color=style.INK)
    axes.axvline(0.0, color=style.INK, linewidth=0.8)
    low, high = min(0.0, *values), max(0.0, *values)
    room = max(high - low, 1e-9)
    axes.set_xlim(low - (0.5 * room if low < 0.0 else 0.0), high + 0.5 * room)
    axes.set_yticks(range(4), list(bars))
    axes.grid(visible=False, axis="y")
    axes.set_ylim(3.55, -0.55)
    axes.locator_params(axis="x", nbins=3)
    style.plain_ticks(axes.xaxis)
    axes.set_xlabel("welfare Σ(ρR − ψρ²), clients and rounds", color=style.INK)
    style.caption(axes, "Social welfare")


def _draw_price(axes: Axes, price: welfare.PriceOfAnarchy) -> None:
    rows = (
        (1, price.equilibrium, style.BLUE),
        (2, price.budget_blind, style.GREY),
        (3, price.worst_case, style.ORANGE),
    )
    known = [value for _, value, _ in rows if value is not None]
    axes.set_xscale("log")
    axes.set_xlim(0.9, 6.0 * max([2.0, *known]))
    for row, value, colour in rows:
        text = "none: welfare not positive" if value is None else _ratio(value)
        place = 1.0 if value is None else value
        axes.plot([1.0, place], [row, row], color=colour, linewidth=2.0)
        if value is not None:
            axes.plot(value, row, "o", color=colour, markersize=8)
        axes.annotate(text, (place, row), (9, 0), textcoords="offset points", va="center", fontsize=9.5)
    axes.axvline(1.0, color=style.INK, linewidth=0.8)
    axes.set_ylim(3.55, -0.55)
    axes.set_yticks([])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("price of anarchy (log scale; 1 is best)", color=style.INK)
    style.caption(axes, "Optimum within bounds ÷ welfare")


def _ratio(value: float) -> str:
    return f"{value:.3f}" if value < 10.0 else _format.amount(value)


def _bound_note(price: welfare.PriceOfAnarchy) -> str:
    random, private = _format.amount(price.paper_random_bound), _format.amount(price.paper_private_bound)
    holds = {True: "premise holds", False: "premise fails here, so it bounds nothing"}
    return (
        f"The paper's bounds, not drawn: Proposition 4, at least {random} for all at the lowest budget "
        f"against the unbounded optimum ({holds[price.paper_random_premise]}); Theorem 6, at most {private} "
        f"for FedPCS's equilibrium ({holds[price.paper_private_premise]})."
    )
