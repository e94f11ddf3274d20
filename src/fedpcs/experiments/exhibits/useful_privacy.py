"""Useful privacy: a proven guarantee for every record, the median client at ε ≤ 8, all samplers and all rules.

That is the regime practitioners live in. The figures show the whole trade-off and not one point of it: accuracy against
the median client's ε, and against rewards paid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from fedpcs.errors import InvalidInput
from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import Profile, Run
from fedpcs.experiments.exhibits.page import Drawing, Finding, Page, Verdict
from fedpcs.experiments.run_table import rounded_up
from fedpcs.experiments.sweep_config import Cell, make_cells, make_sweep_config
from fedpcs.experiments.sweep_groups import Group, Series, group, summary
from fedpcs.experiments.sweep_page import REFERENCE, comparison_page, points, spread_words
from fedpcs.experiments.sweep_points import TradeOff
from fedpcs.experiments.sweep_tradeoff import tradeoff_figure
from fedpcs.experiments.try_out import try_sampler
from fedpcs.sampling import make_sampler

SAMPLERS = ("fedpcs", "random", "aocs", "fed-cbs", "delta", "power-of-choice", "oort", "clustered")
RULES = ("hajek", "precision", "normalised", "horvitz-thompson", "paper")
NETWORK = "precision, tanh-cnn"
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
            *({"label": rule, "set": {"sampling.rule": rule}, "samplers": _weighable(rule)} for rule in rules),
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


def _weighable(rule: str) -> list[str]:
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
    best = _best(groups)
    shrunk = (
        "3 seeds, two aggregation rules; tanh-cnn, static and selfish clients for two samplers. The paper profile has "
        "5 seeds, five rules, and tanh-cnn and such clients for all samplers. tanh-cnn is weighed by precision alone.",
    )
    return replace(
        comparison_page("useful-privacy", done, command=f"fedpcs reproduce useful-privacy --profile {profile}"),
        name="useful-privacy",
        title="Useful privacy on Fashion-MNIST",
        headline=_headline(best),
        shrunk=shrunk if profile == "quick" else (),
        findings=() if best is None else _findings(*best),
        claims_heading="What was aimed at, and what was found",
        shrunk_heading="Smaller here than in the full profile",
        drawings=tuple(
            Drawing(f"accuracy against {words}", _drawing(groups, against))
            for against, words in (("epsilon", "the median client's ε"), ("paid", "rewards paid"))
            if groups
        ),
    )


def _best(groups: Sequence[Group]) -> tuple[str, Series] | None:
    """Return FedPCS's best rule with rational clients, by mean accuracy, and its series."""
    found = [(one.variant, series) for one in groups if (series := one.of(REFERENCE)) is not None]
    ours = [(rule, series) for rule, series in found if series.done[0].cell.config.game.behaviour == "rational"]
    return max(ours, key=lambda item: float(item[1].accuracy.mean())) if ours else None


def _headline(best: tuple[str, Series] | None) -> str:
    if best is None:
        return "No cell of FedPCS is done yet."
    rule, series = best
    middle, greatest = series.mean("spent", "epsilon", "median"), series.greatest("spent", "epsilon", "maximum")
    return (
        f"FedPCS comes to {spread_words(*summary(series))} with rule {rule}; the median client spends ε = "
        f"{rounded_up(middle)}, the greatest {rounded_up(greatest)} (δ = {series.done[0].result['delta']:g})."
    )


def _findings(rule: str, series: Series) -> tuple[Finding, ...]:
    accuracy = float(series.accuracy.mean())
    middle = max(one.result["spent"]["epsilon"]["median"] for one in series.done)
    is_private = middle <= _MOST_EPSILON

    def verdict(goal: float) -> Verdict:
        return "agrees" if accuracy >= goal and is_private else "differs"

    words = (
        f"{spread_words(*summary(series))} with rule {rule}, the median client's ε at most {rounded_up(middle)} in "
        "every seed."
    )
    return (
        Finding(
            f"Goal: at least {points(_GOAL)} with the median client at ε ≤ {_MOST_EPSILON:g}.", words, verdict(_GOAL)
        ),
        Finding(f"Goal beyond: {points(_BEYOND)}.", words, verdict(_BEYOND)),
    )


def _drawing(groups: Sequence[Group], against: Any) -> Any:
    def draw() -> Figure:
        found = [_point(one, series) for one in groups for series in one.series]
        return tradeoff_figure(found, against, _title(found, against), "Lines: the way there, round by round.")

    return draw


def _title(found: Sequence[TradeOff], against: Any) -> str:
    """Say how far samplers end apart under the rule that comes highest, and at what cost."""
    rule = max(found, key=lambda point: point.accuracy_mean).rule
    alike = [point for point in found if point.rule == rule]
    accuracies = [point.accuracy_mean for point in alike]
    apart = f"{100.0 * (max(accuracies) - min(accuracies)):.1f} points of one another"
    costs = [point.epsilon_median if against == "epsilon" else point.paid for point in alike]
    low, high = (f"{one:.1f}" if against == "epsilon" else f"{one:,.0f}" for one in (min(costs), max(costs)))
    name = "a median ε" if against == "epsilon" else "rewards"
    return f"Under {rule}, {len(alike)} samplers end within {apart}, at {name} of {low} to {high}"


def _point(found: Group, series: Series) -> TradeOff:
    mean, std = summary(series)
    return TradeOff(
        label=series.sampler,
        rule=found.variant,
        epsilon_median=series.mean("spent", "epsilon", "median"),
        paid=series.mean("paid"),
        accuracy_mean=mean,
        accuracy_std=float("nan") if std is None else std,
        way=_way(series),
    )


def _way(series: Series) -> tuple[tuple[float, float, float], ...]:
    """Return what had been spent and paid, and what had been reached for it, after each round."""
    quantities = (("spent", "epsilon", "median"), ("paid_so_far",), ("accuracy",))
    means = [series.curve(*path)[1].mean(axis=0).tolist() for path in quantities]
    return tuple(zip(*means, strict=True))
