"""What accuracy costs: every sampler's runs planned for less or more ε, and for less or more reward.

`useful_privacy` has every sampler at one level of spending. Here the same runs are planned at several: a unit of the
game's budgets stands for less or more privacy, or accuracy is worth less or more to the server, which pays accordingly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.exhibits.accuracy_cells import Run
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.exhibits.profiles import Profile
from fedpcs.exhibits.useful_privacy import (
    COST_NAMES,
    COSTS,
    MAIN_RULE,
    PATHS,
    RULES,
    UNWEIGHABLE,
    bargain,
    cost_number,
    weighable,
)
from fedpcs.report.figures.tradeoff import Cost, tradeoff_figure
from fedpcs.report.page import Drawing, Page
from fedpcs.report.study_page import comparison_page
from fedpcs.studies.cell_store import Done
from fedpcs.studies.grid import Cell, make_cells, make_sweep_config
from fedpcs.studies.groups import Group, group, summary
from fedpcs.studies.points import TradeOff

_UNIT, _WORTH = 0.005, 10_000.0  # where both ways of planning meet
_UNITS = (0.00125, _UNIT, 0.02)
_WORTHS = (1_000.0, _WORTH, 100_000.0)


def _plan(unit: float, worth: float) -> str:
    return f"unit ρ = {unit:g}, accuracy worth {worth:,.0f}"


# The plans that lead from little to much of a cost, by cost.
PLANS: dict[Cost, tuple[str, ...]] = {
    "epsilon": tuple(_plan(unit, _WORTH) for unit in _UNITS),
    "paid": tuple(_plan(_UNIT, worth) for worth in _WORTHS),
}
_CLAIMS: dict[Cost, str] = {
    "epsilon": "FedPCS makes more of what clients spend than random sampling.",
    "paid": "FedPCS makes more of what is paid than random sampling.",
}


def cells_of(profile: Profile) -> list[Cell]:
    """Return every sampler under every plan; the quick profile has those of the paper, and one rule."""
    rules = {MAIN_RULE: list(SAMPLERS)} if profile == "quick" else {rule: weighable(rule) for rule in RULES}
    plans = dict.fromkeys([*((unit, _WORTH) for unit in _UNITS), *((_UNIT, worth) for worth in _WORTHS)])
    sweep = {
        "name": "trade-off",
        "base": "fashion-mnist-useful",
        "seeds": [0, 1, 2] if profile == "quick" else [0, 1, 2, 3, 4],
        "set": {"evaluate_every": 5},
        "variants": [
            {
                "label": f"{rule}: {_plan(unit, worth)}",
                "set": {"sampling.rule": rule, "game.budget_unit": unit, "game.accuracy_scale": worth},
                "samplers": samplers,
            }
            for rule, samplers in rules.items()
            for unit, worth in plans
        ],
    }
    return make_cells(make_sweep_config(sweep))


def make_page(profile: Profile, run: Run) -> Page:
    """Run the cells and return the page."""
    return page_of(profile, run(cells_of(profile)))


def page_of(profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of finished cells."""
    groups = group(done)
    page = comparison_page("trade-off", done, command=f"fedpcs reproduce trade-off --profile {profile}")
    shrunk = (
        f"3 seeds, the paper's five samplers, the rule {MAIN_RULE}. The paper profile has 5 seeds, eight samplers and "
        "five rules.",
    )
    return replace(
        page,
        name="trade-off",
        title="What accuracy costs in privacy and in rewards, on Fashion-MNIST",
        warnings=(*page.warnings, *(() if profile == "quick" else (UNWEIGHABLE,))),
        shrunk=shrunk if profile == "quick" else (),
        shrunk_heading="Smaller here than in the full profile",
        findings=tuple(
            finding
            for cost, claim in _CLAIMS.items()
            for one in _along(groups, cost, MAIN_RULE)
            for finding in bargain(one, cost, claim, len(PLANS[cost]))
        ),
        claims_heading="What was asked, and what was found",
        drawings=tuple(Drawing(f"accuracy against {words}", _drawing(groups, cost)) for cost, words in COSTS.items())
        if groups
        else (),
    )


def _along(groups: Sequence[Group], cost: Cost, rule: str) -> list[Group]:
    """Return the groups of a rule whose plans lead from little to much of a cost, in that order."""
    named = {one.variant: one for one in groups}
    return [named[label] for plan in PLANS[cost] if (label := f"{rule}: {plan}") in named]


def _drawing(groups: Sequence[Group], cost: Cost) -> Callable[[], Figure]:
    def draw() -> Figure:
        note = "Lines join one sampler's plans. A point is whole trainings, mean and std over seeds."
        return tradeoff_figure(_points(groups, cost), cost, _title(groups, cost), note)

    return draw


def _points(groups: Sequence[Group], cost: Cost) -> list[TradeOff]:
    """Return a point for each sampler, rule and plan, with the line through all plans of that sampler and rule."""
    lines: dict[tuple[str, str], list[TradeOff]] = {}
    for rule in dict.fromkeys(one.variant.partition(":")[0] for one in groups):
        for series in (series for one in _along(groups, cost, rule) for series in one.series):
            mean, std = summary(series)
            epsilon, paid = series.mean(PATHS["epsilon"]), series.mean(PATHS["paid"])
            point = TradeOff(series.sampler, rule, epsilon, paid, mean, float("nan") if std is None else std)
            lines.setdefault((series.sampler, rule), []).append(point)
    return [
        replace(point, way=tuple((one.epsilon_median, one.paid, one.accuracy_mean) for one in line))
        for line in lines.values()
        for point in line
    ]


def _title(groups: Sequence[Group], cost: Cost) -> str:
    """Say what the least and the greatest plan bring and cost, and how far samplers are apart under one plan."""
    along = _along(groups, cost, MAIN_RULE)
    if not along:
        return f"Accuracy against {COSTS[cost]}"
    means = [[float(series.accuracy.mean()) for series in one.series] for one in along]
    costs = [series.mean(PATHS[cost]) for one in along for series in one.series]
    least, most = (cost_number(one, cost) for one in (min(costs), max(costs)))
    apart = 100.0 * max(max(some) - min(some) for some in means)
    reached = f"accuracy goes from {_format.share(min(means[0]))} to {_format.share(max(means[-1]))}"
    return (
        f"From {COST_NAMES[cost]} of {least} to {most} {reached}; under one plan samplers are within {apart:.1f} points"
    )
