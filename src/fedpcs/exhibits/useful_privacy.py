"""What accuracy costs where privacy is useful: a proved mechanism for every record, the median client at ε ≤ 8.

`useful-privacy` has every sampler and rule at one level of spending; `trade-off` plans the same runs for several: a
unit of the game's budgets stands for less or more privacy, or accuracy is worth less or more to the server, which pays
accordingly. Figures show accuracy against the median client's ε, and against rewards paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.exhibits import trials
from fedpcs.exhibits.claims import Claim, Judged, mean_interval, on_bargain, on_level
from fedpcs.exhibits.exhibit import Exhibit, Gathered, Request
from fedpcs.exhibits.trials import Trained
from fedpcs.exhibits.useful_cells import MAIN_RULE, NETWORK, PLANS, planned_cells, planned_label, useful_cells
from fedpcs.report.figures.tradeoff import Cost, tradeoff_figure
from fedpcs.report.page import Drawing
from fedpcs.report.study_page import REFERENCE, headline
from fedpcs.report.tables import difference_text
from fedpcs.studies.paired import PairedDifference
from fedpcs.studies.points import TradeOff
from fedpcs.studies.results import Group, Series, against, has_common_seed, summary

if TYPE_CHECKING:
    from fedpcs.exhibits.registry import Profile
    from fedpcs.studies.grid import Cell
    from fedpcs.trial.records import RoundRecord, TrialResult

COSTS: dict[Cost, str] = {"epsilon": "the median client's ε", "paid": "rewards paid"}
NUMBERS: dict[Cost, Callable[[TrialResult], float]] = {
    "epsilon": lambda result: result.spent.epsilon.median,
    "paid": lambda result: result.paid,
}
UNWEIGHABLE = (
    "Samplers that are biased by intention have no inclusion probabilities: rules that divide by them leave them out."
)
_GOAL, _BEYOND, _MOST_EPSILON = 0.80, 0.84, 8.0
Points = Callable[[Trained, Cost], list[TradeOff]]


def _gather(
    cells: Callable[[Profile], list[Cell]], smaller: str, always: str = ""
) -> Callable[[Request], Gathered[Trained]]:
    def gather(request: Request) -> Gathered[Trained]:
        is_quick = request.profile == "quick"
        warnings = [] if is_quick and not always else [UNWEIGHABLE]
        found = trials.trained(
            request, request.run(cells(request.profile)), [smaller] if is_quick else [], warnings=warnings
        )
        frame = replace(found.frame, shrunk_heading="Smaller here than in the full profile")
        return replace(found, frame=replace(frame, facts=f"{frame.facts}{always}"))

    return gather


def _of(variant: str) -> Callable[[Trained], list[Group]]:
    """Return what finds a variant's group, if FedPCS is in it."""
    return lambda results: [one for one in results.groups if one.variant == variant and one.of(REFERENCE) is not None]


def _headline(results: Trained) -> str:
    main = _of(MAIN_RULE)(results)
    return headline(main) if main else "No trial of FedPCS is done yet."


def _goal(level: float, model: str) -> Callable[[Group], Judged | None]:
    """Hold FedPCS's mean accuracy and its median client's ε to a goal."""

    def judge(found: Group) -> Judged | None:
        series = found.of(REFERENCE)
        if series is None:
            return None
        middle = series.greatest(NUMBERS["epsilon"])
        above = mean_interval(series.accuracy)
        text = (
            f"{model}, rule {MAIN_RULE}: {_format.share_and_spread(*summary(series))} (95 % interval "
            f"{_format.share(above.low)} to {_format.share(above.high)}), the median client's ε at most "
            f"{_format.rounded_up(middle)} in every seed."
        )
        return on_level(series.accuracy, level) if middle <= _MOST_EPSILON else "differs", text

    return judge


def _bargain(cost: Cost, num_comparisons: int = 1) -> Callable[[Group], Judged | None]:
    """Hold FedPCS's accuracy, and what it costs, against random sampling's at the same place.

    Nothing can be said where seeds do not tell which of both is higher, in accuracy or in cost.
    """

    def judge(found: Group) -> Judged | None:
        ours, rival = found.of(REFERENCE), found.of("random")
        if ours is None or rival is None or not has_common_seed(ours, rival):
            return None
        lead = against(ours, rival, num_comparisons)
        extra = against(ours, rival, num_comparisons, of=NUMBERS[cost])
        mine, theirs = (_cost_number(one.mean(NUMBERS[cost]), cost) for one in (ours, rival))
        name = {"epsilon": "a median ε", "paid": "rewards"}[cost]
        text = (
            f"{found.label[:1].upper()}{found.label[1:]}: {difference_text(lead)} points from random, at {name} of "
            f"{mine} against {theirs}, {_extra(extra, cost)}."
        )
        return on_bargain(lead, extra), text

    return judge


def _cost_number(value: float, cost: Cost) -> str:
    """Return a cost as pages write it; ε is rounded up."""
    return _format.rounded_up(value) if cost == "epsilon" else f"{value:,.0f}"


def _extra(extra: PairedDifference, cost: Cost) -> str:
    form = "+.2f" if cost == "epsilon" else "+,.0f"
    reach = f"{extra.low:{form}} to {extra.high:{form}}" if math.isfinite(extra.low) else "one seed"
    return f"{extra.mean:{form}} ({reach})".replace("-", "−")


def along(results: Trained, cost: Cost, rule: str = MAIN_RULE) -> list[Group]:
    """Return the groups of a rule whose plans lead from little to much of a cost, in that order."""
    named = {one.variant: one for one in results.groups}
    return [named[label] for plan in PLANS[cost] if (label := planned_label(rule, plan)) in named]


def _point(series: Series, rule: str, way: tuple[tuple[float, float, float], ...] = ()) -> TradeOff:
    mean, std = summary(series)
    epsilon, paid = series.mean(NUMBERS["epsilon"]), series.mean(NUMBERS["paid"])
    return TradeOff(series.sampler, rule, epsilon, paid, mean, math.nan if std is None else std, way)


def _useful_points(results: Trained, _: Cost) -> list[TradeOff]:
    """Return a point for each sampler and variant, with its way there, round by round."""
    numbers: tuple[Callable[[RoundRecord], float | None], ...] = (
        lambda line: line.spent.epsilon.median,
        lambda line: line.paid_so_far,
        lambda line: line.accuracy,
    )

    def way(series: Series) -> tuple[tuple[float, float, float], ...]:
        means = [series.curve(number)[1].mean(axis=0).tolist() for number in numbers]
        return tuple(zip(*means, strict=True))

    return [_point(series, one.variant, way(series)) for one in results.groups for series in one.series]


def _planned_points(results: Trained, cost: Cost) -> list[TradeOff]:
    """Return a point for each sampler, rule and plan, with the line through all plans of that sampler and rule."""
    lines: dict[tuple[str, str], list[TradeOff]] = {}
    for rule in dict.fromkeys(one.variant.partition(":")[0] for one in results.groups):
        for series in (series for one in along(results, cost, rule) for series in one.series):
            lines.setdefault((series.sampler, rule), []).append(_point(series, rule))
    return [
        replace(point, way=tuple((one.epsilon_median, one.paid, one.accuracy_mean) for one in line))
        for line in lines.values()
        for point in line
    ]


def _drawings(points: Points, note: str) -> Callable[[Trained], Iterable[Drawing]]:
    def draw(results: Trained, cost: Cost) -> Figure:
        return tradeoff_figure(points(results, cost), cost, f"Accuracy against {COSTS[cost]}", note)

    return lambda results: [Drawing(f"accuracy against {COSTS[cost]}", partial(draw, results, cost)) for cost in COSTS]


_FIRST_GOAL = f"Goal: at least {_format.share(_GOAL)} with the median client at ε ≤ {_MOST_EPSILON:g}."
USEFUL_PRIVACY = Exhibit(
    title="Useful privacy on Fashion-MNIST",
    gather=_gather(
        useful_cells,
        "3 seeds, two aggregation rules; tanh-cnn, static and selfish clients for two samplers. The paper profile has "
        "5 seeds, five rules, and tanh-cnn and such clients for all samplers. tanh-cnn is weighed by precision alone.",
        always="; linear is trained on oriented gradients, fixed features that no record has shaped",
    ),
    headline=_headline,
    claims=(
        Claim(_FIRST_GOAL, _goal(_GOAL, "fixed features"), _of(MAIN_RULE)),
        Claim(f"Goal beyond: {_format.share(_BEYOND)}.", _goal(_BEYOND, "fixed features"), _of(MAIN_RULE)),
        Claim(_FIRST_GOAL, _goal(_GOAL, "tanh-cnn"), _of(NETWORK)),
        Claim(
            "Drawing by budget makes more of what clients spend than drawing at random.",
            _bargain("epsilon"),
            _of(MAIN_RULE),
        ),
    ),
    claims_heading="What was aimed at, and what was found",
    drawings=_drawings(_useful_points, "Lines: the way there, round by round."),
)
TRADE_OFF = Exhibit(
    title="What accuracy costs in privacy and in rewards, on Fashion-MNIST",
    gather=_gather(
        planned_cells,
        f"3 seeds, the paper's five samplers, the rule {MAIN_RULE}. The paper profile has 5 seeds, eight samplers and "
        "five rules.",
    ),
    claims=(
        Claim(
            "FedPCS makes more of what clients spend than random sampling.",
            _bargain("epsilon", len(PLANS["epsilon"])),
            partial(along, cost="epsilon"),
        ),
        Claim(
            "FedPCS makes more of what is paid than random sampling.",
            _bargain("paid", len(PLANS["paid"])),
            partial(along, cost="paid"),
        ),
    ),
    claims_heading="What was asked, and what was found",
    drawings=_drawings(
        _planned_points, "Lines join one sampler's plans. A point is whole trainings, mean and std over seeds."
    ),
)
