"""Useful privacy: a proved mechanism for every record, the median client at ε ≤ 8, all samplers and all rules.

That is the regime practitioners live in. The figures show the whole trade-off and not one point of it: accuracy against
the median client's ε, and against rewards paid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fedpcs import _format
from fedpcs.errors import InvalidInput
from fedpcs.exhibits import verdicts
from fedpcs.exhibits.accuracy_cells import Run
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.figures.tradeoff import Cost, tradeoff_figure
from fedpcs.report.page import Drawing, Finding, Page
from fedpcs.report.study_page import REFERENCE, comparison_page, headline
from fedpcs.report.tables import difference_text
from fedpcs.sampling import make_sampler
from fedpcs.studies.cell_store import Done
from fedpcs.studies.grid import Cell, make_cells, make_sweep_config
from fedpcs.studies.groups import Group, Series, against, group, has_common_seed, summary
from fedpcs.studies.paired import PairedDifference, paired_difference
from fedpcs.studies.points import TradeOff
from fedpcs.trial.preflight import try_sampler

SAMPLERS = ("fedpcs", "random", "aocs", "fed-cbs", "delta", "power-of-choice", "oort", "clustered")
RULES = ("hajek", "precision", "normalised", "horvitz-thompson", "paper")
MAIN_RULE = "precision"  # the rule made for noise that is known; goals are held to it, whatever does best here
NETWORK = f"{MAIN_RULE}, tanh-cnn"
COSTS: dict[Cost, str] = {"epsilon": "the median client's ε", "paid": "rewards paid"}
COST_NAMES: dict[Cost, str] = {"epsilon": "a median ε", "paid": "rewards"}
PATHS: dict[Cost, str] = {"epsilon": "spent.epsilon.median", "paid": "paid"}  # in results
_BARGAIN = "Drawing by budget makes more of what clients spend than drawing at random."
UNWEIGHABLE = (
    "Samplers that are biased by intention have no inclusion probabilities: rules that divide by them leave them out."
)
_GOAL, _BEYOND, _MOST_EPSILON = 0.80, 0.84, 8.0


def cells_of(profile: Profile) -> list[Cell]:
    """Return every sampler under every rule that can weigh it on fixed features, and the network made for noise.

    The quick profile has fewer rules, and the network for two samplers only.
    """
    rules = RULES if profile == "paper" else ("hajek", "precision")
    with_network = SAMPLERS if profile == "paper" else ("fedpcs", "random")
    seeds = [0, 1, 2] if profile == "quick" else [0, 1, 2, 3, 4]
    others: list[dict[str, Any]] = [
        {
            "label": f"precision, {behaviour} clients",
            "set": {"sampling.rule": "precision", "game.behaviour": behaviour},
            "samplers": list(with_network),
        }
        for behaviour in ("static", "selfish")
    ]
    features = {
        "name": "useful-privacy",
        "base": "fashion-mnist-useful",
        "seeds": seeds,
        "set": {"evaluate_every": 5},
        "variants": [
            *({"label": rule, "set": {"sampling.rule": rule}, "samplers": weighable(rule)} for rule in rules),
            *others,
        ],
    }
    network = {
        "name": "useful-privacy",
        "base": "fashion-mnist-private",
        "seeds": seeds,
        "set": {"evaluate_every": 5},
        "variants": [{"label": NETWORK, "set": {"sampling.rule": "precision"}, "samplers": list(with_network)}],
    }
    return [*make_cells(make_sweep_config(features)), *make_cells(make_sweep_config(network))]


def weighable(rule: str) -> list[str]:
    """Return the samplers that a rule can weigh: not every one has the probabilities it needs."""

    def can(name: str) -> bool:
        try:
            try_sampler(make_sampler(name), rule, num_clients=20, cohort_size=4, num_classes=10)
        except InvalidInput:
            return False
        return True

    return [name for name in SAMPLERS if can(name)]


def make_page(profile: Profile, run: Run) -> Page:
    """Run the cells and return the page."""
    return page_of(profile, run(cells_of(profile)))


def page_of(profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of finished cells."""
    groups = group(done)
    main, with_network = _of_fedpcs(groups, MAIN_RULE), _of_fedpcs(groups, NETWORK)
    shrunk = (
        "3 seeds, two aggregation rules; tanh-cnn, static and selfish clients for two samplers. The paper profile has "
        "5 seeds, five rules, and tanh-cnn and such clients for all samplers. tanh-cnn is weighed by precision alone.",
    )
    page = comparison_page("useful-privacy", done, command=f"fedpcs reproduce useful-privacy --profile {profile}")
    return replace(
        page,
        name="useful-privacy",
        title="Useful privacy on Fashion-MNIST",
        headline=headline([main[0]]) if main else "No cell of FedPCS is done yet.",
        facts=f"{page.facts}; linear is trained on oriented gradients, fixed features that no record has shaped",
        warnings=(*page.warnings, UNWEIGHABLE),
        shrunk=shrunk if profile == "quick" else (),
        findings=(
            *(_findings(main[1], "fixed features") if main else ()),
            *(_findings(with_network[1], "tanh-cnn")[:1] if with_network else ()),
            *(bargain(main[0], "epsilon", _BARGAIN) if main else ()),
        ),
        claims_heading="What was aimed at, and what was found",
        shrunk_heading="Smaller here than in the full profile",
        drawings=tuple(
            Drawing(f"accuracy against {words}", _drawing(groups, cost)) for cost, words in COSTS.items() if groups
        ),
    )


def _of_fedpcs(groups: Sequence[Group], variant: str) -> tuple[Group, Series] | None:
    """Return a variant's group, and FedPCS's series in it."""
    found = ((one, series) for one in groups if one.variant == variant and (series := one.of(REFERENCE)) is not None)
    return next(found, None)


def _findings(series: Series, model: str) -> tuple[Finding, ...]:
    """Hold FedPCS's mean accuracy and its median client's ε to both goals."""
    middle = max(one.outcome["spent"]["epsilon"]["median"] for one in series.done)
    is_private = middle <= _MOST_EPSILON
    above = paired_difference(series.accuracy, np.zeros(series.accuracy.size))
    words = (
        f"{model}, rule {MAIN_RULE}: {_format.share_and_spread(*summary(series))} (95 % interval "
        f"{_format.share(above.low)} to {_format.share(above.high)}), the median client's ε at most "
        f"{_format.rounded_up(middle)} in every seed."
    )

    def held(claim: str, goal: float) -> Finding:
        return Finding(claim, words, verdicts.on_level(series.accuracy, goal) if is_private else "differs")

    return (
        held(f"Goal: at least {_format.share(_GOAL)} with the median client at ε ≤ {_MOST_EPSILON:g}.", _GOAL),
        held(f"Goal beyond: {_format.share(_BEYOND)}.", _BEYOND),
    )


def bargain(found: Group, cost: Cost, claim: str, num_comparisons: int = 1) -> list[Finding]:
    """Hold FedPCS's accuracy, and what it costs, against random sampling's at the same place.

    Nothing can be said where seeds do not tell which of both is higher, in accuracy or in cost.

    Args:
        found: The place.
        cost: Which cost.
        claim: What is held against it.
        num_comparisons: So many intervals hold together.
    """
    ours, rival = found.of(REFERENCE), found.of("random")
    if ours is None or rival is None or not has_common_seed(ours, rival):
        return []
    lead = against(ours, rival, num_comparisons)
    extra = against(ours, rival, num_comparisons, of=PATHS[cost])
    mine, theirs = (cost_number(one.mean(PATHS[cost]), cost) for one in (ours, rival))
    costs = f"at {COST_NAMES[cost]} of {mine} against {theirs}, {_extra_words(extra, cost)}"
    told = f"{difference_text(lead)} points from random, {costs}."
    return [Finding(claim, f"{found.words[:1].upper()}{found.words[1:]}: {told}", verdicts.on_bargain(lead, extra))]


def cost_number(value: float, cost: Cost) -> str:
    """Return a cost as pages write it; ε is rounded up."""
    return _format.rounded_up(value) if cost == "epsilon" else f"{value:,.0f}"


def _extra_words(extra: PairedDifference, cost: Cost) -> str:
    form = "+.2f" if cost == "epsilon" else "+,.0f"
    if not math.isfinite(extra.low):
        return f"{extra.mean:{form}} (one seed)".replace("-", "−")
    return f"{extra.mean:{form}} ({extra.low:{form}} to {extra.high:{form}})".replace("-", "−")


def _drawing(groups: Sequence[Group], against: Cost) -> Callable[[], Figure]:
    def draw() -> Figure:
        found = [_point(one, series) for one in groups for series in one.series]
        return tradeoff_figure(found, against, _title(found, against), "Lines: the way there, round by round.")

    return draw


def _title(found: Sequence[TradeOff], against: Cost) -> str:
    """Say how far samplers end apart under the rule that comes highest, and at what cost."""
    rule = max(found, key=lambda point: point.accuracy_mean).rule
    alike = [point for point in found if point.rule == rule]
    accuracies = [point.accuracy_mean for point in alike]
    apart = f"{100.0 * (max(accuracies) - min(accuracies)):.1f} points of one another"
    costs = [point.epsilon_median if against == "epsilon" else point.paid for point in alike]
    low, high = (cost_number(one, against) for one in (min(costs), max(costs)))
    return f"Under {rule}, {len(alike)} samplers end within {apart}, at {COST_NAMES[against]} of {low} to {high}"


def _point(found: Group, series: Series) -> TradeOff:
    mean, std = summary(series)
    return TradeOff(
        label=series.sampler,
        rule=found.variant,
        epsilon_median=series.mean(PATHS["epsilon"]),
        paid=series.mean("paid"),
        accuracy_mean=mean,
        accuracy_std=float("nan") if std is None else std,
        way=_way(series),
    )


def _way(series: Series) -> tuple[tuple[float, float, float], ...]:
    """Return what had been spent and paid, and what had been reached for it, after each round."""
    quantities = ("spent.epsilon.median", "paid_so_far", "accuracy")
    means = [series.curve(path)[1].mean(axis=0).tolist() for path in quantities]
    return tuple(zip(*means, strict=True))
