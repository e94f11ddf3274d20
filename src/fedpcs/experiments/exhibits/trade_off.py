"""What accuracy costs: one sampler's runs planned for different ε, and for different rewards, beside another's.

`useful_privacy` has every sampler at one level of spending. Here the same runs are planned at several: a unit of the
game's budgets stands for more or less privacy, or accuracy is worth more or less to the server, which then pays more or
less. Samplers differ in what their clients spend, so they are compared where both spend, or are paid, the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import Run
from fedpcs.experiments.exhibits.paper_numbers import SAMPLERS
from fedpcs.experiments.exhibits.profiles import Profile
from fedpcs.experiments.exhibits.useful_privacy import COSTS, MAIN_RULE, RULES, weighable
from fedpcs.experiments.page import Drawing, Finding, Page, Table, Verdict
from fedpcs.experiments.paired import PairedDifference, joint_confidence, paired_difference
from fedpcs.experiments.run_table import rounded_up
from fedpcs.experiments.sweep_config import Cell, make_cells, make_sweep_config
from fedpcs.experiments.sweep_groups import Group, Series, group, summary
from fedpcs.experiments.sweep_page import REFERENCE, comparison_page
from fedpcs.experiments.sweep_points import TradeOff
from fedpcs.experiments.sweep_tradeoff import Cost, tradeoff_figure
from fedpcs.experiments.sweep_words import difference_words, points

_UNIT, _WORTH = 0.005, 10_000.0  # where both ways of planning meet
_UNITS = (0.00125, _UNIT, 0.02)
_WORTHS = (1_000.0, _WORTH, 100_000.0)


@dataclass(frozen=True)
class Axis:
    """One way of planning for more or less.

    Attributes:
        cost: What is then spent more or less of, as figures know it.
        path: Where results have it.
        labels: Of the variants along it, the least first.
    """

    cost: Cost
    path: tuple[str, ...]
    labels: tuple[str, ...]


def _label(unit: float, worth: float) -> str:
    return f"unit ρ = {unit:g}, accuracy worth {worth:,.0f}"


PRIVACY = Axis("epsilon", ("spent", "epsilon", "median"), tuple(_label(unit, _WORTH) for unit in _UNITS))
REWARDS = Axis("paid", ("paid",), tuple(_label(_UNIT, worth) for worth in _WORTHS))


def cells_of(profile: Profile) -> list[Cell]:
    """Return every sampler at every level; the quick profile has those of the paper, under one rule."""
    is_quick = profile == "quick"
    levels = dict.fromkeys([*((unit, _WORTH) for unit in _UNITS), *((_UNIT, worth) for worth in _WORTHS)])
    sweep = {
        "name": "trade-off",
        "base": "fashion-mnist-useful",
        "seeds": [0, 1, 2] if is_quick else [0, 1, 2, 3, 4],
        "set": {"evaluate_every": 5},
        "variants": [
            {
                "label": f"{rule}: {_label(unit, worth)}",
                "set": {"sampling.rule": rule, "game.budget_unit": unit, "game.accuracy_scale": worth},
                "samplers": list(SAMPLERS) if is_quick else weighable(rule),
            }
            for rule in ((MAIN_RULE,) if is_quick else RULES)
            for unit, worth in levels
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
    found = [(axis, _leads(groups, axis)) for axis in (PRIVACY, REWARDS)]
    shrunk = (
        f"3 seeds, the paper's five samplers, the rule {MAIN_RULE}. The paper profile has 5 seeds, all samplers and "
        "five rules.",
    )
    return replace(
        page,
        name="trade-off",
        title="What accuracy costs in privacy and in rewards, on Fashion-MNIST",
        headline=_title(groups, PRIVACY) if groups else "No cell is done yet.",
        shrunk=shrunk if profile == "quick" else (),
        shrunk_heading="Smaller here than in the full profile",
        findings=tuple(_finding(axis, leads["random"]) for axis, leads in found if leads.get("random")),
        claims_heading="What was asked, and what was found",
        tables=(*(_table(axis, leads) for axis, leads in found if leads), *page.tables),
        drawings=tuple(
            Drawing(f"accuracy against {COSTS[axis.cost]}", _drawing(groups, axis))
            for axis in (PRIVACY, REWARDS)
            if _levels(groups, axis)
        ),
    )


@dataclass(frozen=True)
class Lead:
    """How far FedPCS is ahead of a rival where both spend the same.

    Attributes:
        cost: What the rival spent, mean over seeds.
        gained: FedPCS's accuracy at that cost less the rival's; None where FedPCS's runs do not reach so low or high.
    """

    cost: float
    gained: PairedDifference | None


def _leads(groups: Sequence[Group], axis: Axis) -> dict[str, list[Lead]]:
    """Return FedPCS's lead under the main rule over each rival, at each of the rival's levels; intervals hold together.

    FedPCS's accuracy between its own levels is read off a line over the logarithm of the cost, seed by seed.
    """
    levels = [one for one in _levels(groups, axis) if one.variant.startswith(f"{MAIN_RULE}:")]
    ours = [series for one in levels if (series := one.of(REFERENCE)) is not None]
    names = [series.sampler for series in levels[0].series if series.sampler != REFERENCE] if levels and ours else []
    return {
        name: [
            Lead(rival.mean(*axis.path), _lead_at_equal_cost(ours, rival, axis.path, len(levels)))
            for one in levels
            if (rival := one.of(name)) is not None
        ]
        for name in names
    }


def _lead_at_equal_cost(
    ours: Sequence[Series], rival: Series, path: tuple[str, ...], num_comparisons: int
) -> PairedDifference | None:
    seeds = [seed for seed in rival.seeds if all(seed in series.seeds for series in ours)]
    mine, theirs = [], []
    for seed in seeds:
        cost, accuracy = rival.number(seed, *path), rival.number(seed, "accuracy")
        known = sorted((math.log(one.number(seed, *path)), one.number(seed, "accuracy")) for one in ours)
        costs, reached = zip(*known, strict=True)
        if not costs[0] <= math.log(cost) <= costs[-1]:
            return None
        mine.append(float(np.interp(math.log(cost), costs, reached)))
        theirs.append(accuracy)
    if not seeds:
        return None
    resolution = 1.0 / rival.done[0].result["num_test"]
    return paired_difference(mine, theirs, joint_confidence(num_comparisons), resolution=resolution)


def _finding(axis: Axis, leads: Sequence[Lead]) -> Finding:
    known = [lead.gained for lead in leads if lead.gained is not None]
    told = "; ".join(
        f"at {_cost_words(lead.cost, axis.cost)} {difference_words(lead.gained)} points"
        for lead in leads
        if lead.gained is not None
    )
    return Finding(
        f"For the same {_SAME[axis.cost]} FedPCS is more accurate than random sampling.",
        f"Rule {MAIN_RULE}: {told}. Intervals hold together." if known else "Their costs do not overlap.",
        _verdict(known),
    )


_SAME = {"epsilon": "ε of the median client", "paid": "rewards"}


def _verdict(known: Sequence[PairedDifference]) -> Verdict:
    """Return whether all leads are above zero; in part, if only some are and none is below."""
    if any(one.is_below for one in known):
        return "differs"
    num_above = sum(one.is_above for one in known)
    return ("agrees" if num_above == len(known) else "in part") if num_above else "cannot say"


def _table(axis: Axis, leads: Mapping[str, Sequence[Lead]]) -> Table:
    """Return FedPCS's lead over every rival at the rival's own cost."""
    num_levels = max(map(len, leads.values()))
    rows = tuple(
        (name, *(_lead_words(lead, axis.cost) for lead in some), *("–",) * (num_levels - len(some)))
        for name, some in leads.items()
    )
    return Table(
        f"FedPCS minus the sampler, in points of accuracy, at the same {_SAME[axis.cost]}",
        ("sampler", *(f"level {k + 1}" for k in range(num_levels))),
        rows,
        note=f"Rule {MAIN_RULE}. At each level: what the sampler cost, and FedPCS's accuracy at that cost less its "
        "own, with an interval; those of one row hold together with 95 % confidence. FedPCS's accuracy between its "
        "levels is read off a line over the logarithm of the cost; where they do not reach, nothing is said.",
    )


def _lead_words(lead: Lead, cost: Cost) -> str:
    told = "out of FedPCS's reach" if lead.gained is None else difference_words(lead.gained)
    return f"{_cost_words(lead.cost, cost)}: {told}"


def _cost_words(value: float, cost: Cost) -> str:
    return f"ε = {rounded_up(value)}" if cost == "epsilon" else f"{value:,.0f}"


def _levels(groups: Sequence[Group], axis: Axis) -> list[Group]:
    """Return the groups along an axis, the least planned for first, rule by rule."""
    named = {one.variant: one for one in groups}
    rules = dict.fromkeys(one.variant.partition(":")[0] for one in groups)
    return [named[label] for rule in rules for one in axis.labels if (label := f"{rule}: {one}") in named]


def _drawing(groups: Sequence[Group], axis: Axis) -> Callable[[], Figure]:
    def draw() -> Figure:
        note = (
            "Lines join runs planned for different costs; each point is whole trainings, mean and one std over seeds."
        )
        return tradeoff_figure(_points(groups, axis), axis.cost, _title(groups, axis), note)

    return draw


def _points(groups: Sequence[Group], axis: Axis) -> list[TradeOff]:
    """Return a point for each sampler, rule and level; the last of a line has the way through the others."""
    found: dict[tuple[str, str], list[TradeOff]] = {}
    for one in _levels(groups, axis):
        rule = one.variant.partition(":")[0]
        for series in one.series:
            mean, std = summary(series)
            epsilon, paid = series.mean(*PRIVACY.path), series.mean(*REWARDS.path)
            point = TradeOff(series.sampler, rule, epsilon, paid, mean, float("nan") if std is None else std)
            found.setdefault((series.sampler, rule), []).append(point)
    return [
        replace(point, way=tuple((one.epsilon_median, one.paid, one.accuracy_mean) for one in line))
        if point is line[-1]
        else point
        for line in found.values()
        for point in line
    ]


def _title(groups: Sequence[Group], axis: Axis) -> str:
    """Say what the least and the greatest cost bring, and how far samplers are apart at a level."""
    levels = [one for one in _levels(groups, axis) if one.variant.startswith(f"{MAIN_RULE}:")]
    if not levels:
        return f"Accuracy against {COSTS[axis.cost]}"
    means = [[float(series.accuracy.mean()) for series in one.series] for one in levels]
    costs = [series.mean(*axis.path) for one in levels for series in one.series]
    apart = max(max(some) - min(some) for some in means)
    least, most = (_cost_words(pick(costs), axis.cost) for pick in (min, max))
    return (
        f"From {least} to {most} accuracy goes from {points(min(means[0]))} to {points(max(means[-1]))}; samplers are "
        f"at most {100.0 * apart:.1f} points apart at a level"
    )
