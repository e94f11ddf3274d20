"""What the paper says of the server's cost, held against costs by trial, sampling ratio and population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fedpcs import _format
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits import verdicts
from fedpcs.report.page import Finding, Verdict
from fedpcs.studies.paired import PairedDifference, paired_difference

RATIOS = (0.2, 0.5, 0.8)
FEDPCS, BLIND, BLIND_OWN = "FedPCS", "budget-blind, same rewards", "budget-blind, its own rewards"
STATIC, SELFISH = "budget-blind, static clients", "budget-blind, selfish clients"
# What the draw does by itself: the budget-blind game's clients under FedPCS's rewards, drawn by budget.
DRAW = "drawn by budget, budget-blind clients"
# The order the paper's rivals are told in; the rational ones decide.
RIVALS = (BLIND_OWN, BLIND, STATIC, SELFISH)
_NEARLY_ALL, _HALF = 0.9, 0.5

Costs = Mapping[str, Mapping[float, Sequence[float]]]
# By ratio, and for each population whose lemma game certifies: cost with the lemma's rewards, and with those announced.
LemmaCosts = Mapping[float, Sequence[tuple[float, float]]]


def gaps(costs: Costs, rival: str) -> dict[float, PairedDifference]:
    """Return what FedPCS's server saves against a rival's at each ratio, as a share of the rival's cost, paired."""
    return {
        ratio: paired_difference(1.0 - np.divide(costs[FEDPCS][ratio], costs[rival][ratio]), np.zeros(len(values)))
        for ratio, values in costs[rival].items()
    }


def findings(costs: Costs) -> tuple[Finding, ...]:
    """Hold what the paper says of the server's cost against costs by trial, ratio and population."""
    lowest = tuple(
        Finding(
            f"FedPCS's server has the least cost at every sampling ratio. Here, against: {rival}.",
            "Saved, as a share of the rival's cost: "
            + "; ".join(f"τ = {ratio:g}: {shared.difference(gap, _format.share)}" for ratio, gap in found.items())
            + ".",
            verdict_on_lowest(found),
        )
        for rival, found in ((rival, gaps(costs, rival)) for rival in RIVALS)
    )
    return (
        *lowest,
        _growth_finding(costs),
        *(_draw_finding(costs) if DRAW in costs else ()),
        Finding("Random, AOCS, Fed-CBS and DELTA each have a cost of their own.", shared.ONE_GAME, "differs"),
    )


def verdict_on_lowest(saved: Mapping[float, PairedDifference]) -> Verdict:
    """Return whether FedPCS is clearly cheaper at every ratio, at some, clearly nowhere, or cannot be told."""
    if all(gap.is_above for gap in saved.values()):
        return "agrees"
    if all(gap.is_below for gap in saved.values()):
        return "differs"
    if any(gap.is_above for gap in saved.values()):
        return "in part"
    return "differs" if any(gap.is_below for gap in saved.values()) else "cannot say"


def _growth_finding(costs: Costs) -> Finding:
    """Hold "the gap grows with the cohort" against absolute and relative gaps to the fairest rival."""
    first, last = RATIOS[0], RATIOS[-1]
    gap = {ratio: np.subtract(costs[BLIND_OWN][ratio], costs[FEDPCS][ratio]) for ratio in (first, last)}
    share = {ratio: gap[ratio] / np.array(costs[BLIND_OWN][ratio]) for ratio in (first, last)}
    absolute, relative = paired_difference(gap[last], gap[first]), paired_difference(share[last], share[first])
    return Finding(
        "The gap between FedPCS and the baselines widens as more clients are sampled.",
        f"From τ = {first:g} to {last:g}, against a budget-blind server with its own rewards, the gap changes by "
        f"{shared.difference(absolute)}, and as a share of cost by {shared.points(relative)}.",
        verdict_on_growth(absolute, relative),
    )


def _draw_finding(costs: Costs) -> tuple[Finding, ...]:
    """Part the saving into what the draw does and what clients' budgets do, under the same rewards."""
    drawn, whole = (
        {ratio: 1.0 - np.divide(costs[trial][ratio], costs[BLIND][ratio]) for ratio in RATIOS}
        for trial in (DRAW, FEDPCS)
    )
    shares = [drawn[ratio] / whole[ratio] for ratio in RATIOS if (whole[ratio] > 0.0).all()]
    told = "; ".join(
        f"τ = {ratio:g}: {_format.share(float(drawn[ratio].mean()))} of {_format.share(float(whole[ratio].mean()))}"
        for ratio in RATIOS
    )
    return (
        Finding(
            "FedPCS's cost is the lowest because of its optimal reward.",
            f"Drawing the budget-blind game's own clients by their budgets saves, of the whole saving under the same "
            f"rewards: {told}. The cost counts 1/ρ of drawn clients, and that falls whenever larger budgets are drawn "
            "more often, whatever clients do; it leaves out what unbiased weights would add to the noise.",
            verdict_on_draw(shares),
        ),
    )


def verdict_on_draw(shares: Sequence[FloatArray]) -> Verdict:
    """Return whether incentives explain the saving: surely, if the draw's share is under a half at every ratio.

    Surely not, if it is nine tenths at every ratio; in part, if it is more than half. Shares are by population.
    """
    if not shares:
        return "cannot say"
    halves, nearly_all = ([verdicts.on_level(share, level) for share in shares] for level in (_HALF, _NEARLY_ALL))
    if set(nearly_all) == {"agrees"}:
        return "differs"
    if set(halves) == {"differs"}:
        return "agrees"
    return "in part" if "agrees" in halves else "cannot say"


def verdict_on_growth(absolute: PairedDifference, relative: PairedDifference) -> Verdict:
    """Return whether the gap grows in itself and as a share of cost, in one sense only, or in neither."""
    if absolute.is_above and relative.is_above:
        return "agrees"
    if absolute.is_above or relative.is_above:
        return "in part"
    return "differs" if absolute.is_below or relative.is_below else "cannot say"


def lemma_finding(lemma: LemmaCosts, num_seeds: int) -> tuple[Finding, ...]:
    """Hold "the lemma's reward is optimal" against the path announced in advance, where the lemma's game certifies."""
    known = {ratio: pairs for ratio, pairs in lemma.items() if pairs}
    extra = {ratio: _more(pairs) for ratio, pairs in known.items()}
    if not num_seeds:
        return ()
    told = "; ".join(f"τ = {ratio:g}: {shared.difference(more, _format.share)}" for ratio, more in extra.items())
    missing = sum(num_seeds - len(pairs) for pairs in lemma.values())
    left_out = f" {missing} games under the lemma's rewards did not certify and are left out." if missing else ""
    return (
        Finding(
            "The lemma's round-by-round reward minimises the server's cost.",
            f"With FedPCS it costs more than the path announced in advance by: {told or 'not known'}.{left_out}",
            verdict_on_lemma(tuple(extra.values())),
        ),
    )


def _more(pairs: Sequence[tuple[float, float]]) -> PairedDifference:
    """Return what the first of each pair costs more, as a share of the second."""
    return paired_difference([first / second - 1.0 for first, second in pairs], [0.0] * len(pairs))


def verdict_on_lemma(extra: Sequence[PairedDifference]) -> Verdict:
    """Return whether the lemma's rewards cost no more: they clearly do everywhere, somewhere, or it cannot be told."""
    if any(more.is_above for more in extra):
        return "differs" if all(more.is_above for more in extra) else "in part"
    return "agrees" if extra and all(more.is_below for more in extra) else "cannot say"
