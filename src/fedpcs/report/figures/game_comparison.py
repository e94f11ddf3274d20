"""Figures that set a solved game beside others: other response modes, another sampler, the optimum.

These solve equilibria of their own. Where a game has too many types for that to be quick, its types are
merged first, and the figure says so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.game import equilibrium, mean_field, welfare
from fedpcs.game.equilibrium import Equilibrium, merge_note, merge_types
from fedpcs.game.mean_field import RESPONSE_MODES, ResponseMode
from fedpcs.game.rules import Game
from fedpcs.report import style
from fedpcs.report.figures.bars import draw_amounts

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
    known = [gain for gain in gains.values() if gain > _format.ROUNDING]
    bars = {_MODE_LABELS[mode]: (gain, _format.gain(gain)) for mode, gain in gains.items()}
    title, note = "What a client gains by deviating", merge_note(found, game)
    figure, (axes,) = style.new_figure(title, note=note, height_inches=4.0)
    floor = float(10.0 ** np.floor(np.log10(min([1e-4, *known])) - 0.5))
    draw_amounts(axes, bars, "exploitability: mean gain by deviating ÷ mean best utility (log scale)", floor=floor)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _format.percent(value)))
    axes.axvline(1e-3, color=style.GREY, linewidth=1.0, linestyle=style.DASHES, zorder=0)
    style.caption(axes, "Four ways to compute responses, same rewards; dashed: 0.1 %, the default tolerance")
    return figure


def _relative_gain(game: Game, path: FloatArray, mode: ResponseMode) -> float:
    return equilibrium.solve(game, path, response=mode, throw=False).certificate.relative


def welfare_figure(found: Equilibrium) -> Figure:
    """Draw welfare of the equilibrium beside its yardsticks, and the price of anarchy of each."""
    game, budget = merge_types(found, _MOST_WELFARE_TYPES)
    if game is found.game:
        worth, price = found.welfare()
    else:
        blind = mean_field.settle(replace(game, selection="budget-blind"), found.reward.path).profile
        worth, price = welfare.assess(budget, blind.budget, found.reward.path, game)
    note = " ".join((_bound_note(price), merge_note(found, game))).strip()
    bars = {
        "optimum within bounds": (worth.optimum_bounded, _format.amount(worth.optimum_bounded)),
        "this solution": (worth.equilibrium, _worth_and_price(worth.equilibrium, price.equilibrium)),
        "budget-blind sampler": (worth.budget_blind, _worth_and_price(worth.budget_blind, price.budget_blind)),
        "all at lowest budget": (worth.worst_case, _worth_and_price(worth.worst_case, price.worst_case)),
    }
    figure, (axes,) = style.new_figure("Welfare and price of anarchy", note=note, height_inches=3.6)
    draw_amounts(axes, bars, "welfare Σ(ρR − ψρ²), clients and rounds")
    style.caption(axes, "Price of anarchy: optimum within bounds ÷ welfare; 1 is best")
    return figure


def _worth_and_price(worth: float, price: float | None) -> str:
    if price is None:
        return f"{_format.amount(worth)}; no price: welfare not positive"
    return f"{_format.amount(worth)}; price {f'{price:.3f}' if price < 10.0 else _format.amount(price)}"


def _bound_note(price: welfare.PriceOfAnarchy) -> str:
    random, private = _format.amount(price.paper_random_bound), _format.amount(price.paper_private_bound)
    holds = {True: "premise holds", False: "premise fails here, so it bounds nothing"}
    return (
        f"The paper's bounds, not drawn: Proposition 4, at least {random} for all at the lowest budget "
        f"against the unbounded optimum ({holds[price.paper_random_premise]}); Theorem 6, at most {private} "
        f"for FedPCS's equilibrium ({holds[price.paper_private_premise]})."
    )
