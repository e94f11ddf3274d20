"""The paper's curves: accuracy and loss over rounds, for every sampler and ratio, of the accuracy table's cells.

Trainings that are shortened are left out: they are scored at their end alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import TUNED, VARIANTS, Profile, Run, setting_of, shrunk
from fedpcs.experiments.exhibits.accuracy_table import run_table
from fedpcs.experiments.exhibits.page import Finding, Page, Verdict
from fedpcs.experiments.sweep_groups import Group, Series, group
from fedpcs.experiments.sweep_page import REFERENCE, comparison_page

_RATIO = "sampling.sampling_ratio"


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Run the accuracy table's cells and return the page of their curves."""
    variants = (TUNED,) if setting_of(dataset, profile).shorter else VARIANTS
    return page_of(dataset, profile, run_table(dataset, profile, run, variants))


def page_of(dataset: str, profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of curves of finished cells."""
    groups = group(done)
    accuracy = [_throughout(one, "accuracy") for one in groups if _is_comparable(one)]
    loss = [_throughout(one, "loss") for one in groups if _is_comparable(one)]
    first = sum(one.verdict == "agrees" for one in accuracy)
    return replace(
        comparison_page("curves", done, command=f"fedpcs reproduce curves --dataset {dataset} --profile {profile}"),
        name=f"curves-{dataset}",
        title=f"Accuracy and loss over rounds on {dataset}",
        headline=f"FedPCS's mean accuracy is the highest in every round of {first} of {len(accuracy)} settings."
        if accuracy
        else "Too few cells are done yet.",
        shrunk=shrunk(setting_of(dataset, profile), [one.variant for one in groups]),
        findings=(*accuracy, *loss, growth(groups)),
    )


def _is_comparable(found: Group) -> bool:
    return found.of(REFERENCE) is not None and len(found.series) > 1


def _throughout(found: Group, quantity: str) -> Finding:
    """Hold "FedPCS is better than the baselines throughout" against one group."""
    mine, *others = (
        _mean_by_round(series, quantity)
        for series in sorted(found.series, key=lambda series: series.sampler != REFERENCE)
    )
    sign = 1.0 if quantity == "accuracy" else -1.0
    rounds = set(mine).intersection(*others)
    ahead = sum(
        math.isfinite(mine[now]) and not any(sign * one[now] > sign * mine[now] for one in others) for now in rounds
    )
    verdict: Verdict = "agrees" if ahead == len(rounds) else "differs" if ahead == 0 else "in part"
    claim, words = {
        "accuracy": ("FedPCS's accuracy surpasses the baselines' throughout training.", "mean accuracy is the highest"),
        "loss": ("FedPCS's loss falls faster than the baselines' and stays lower.", "mean test loss is the lowest"),
    }[quantity]
    told = f"{found.words}: its {words} in {ahead} of {len(rounds)} rounds that were scored."
    return Finding(claim, told, verdict if rounds else "cannot say")


def growth(groups: Sequence[Group]) -> Finding:
    """Hold "the lead grows with the ratio" against the lead over the best baseline, at the least and greatest ratio."""
    claim = "The more clients are sampled, the larger is FedPCS's lead in accuracy."
    leads: dict[str, dict[float, float]] = {}
    for one in filter(_is_comparable, groups):
        place = {key: value for key, value in one.point.items() if key != _RATIO}
        leads.setdefault(f"{one.variant} {place}", {})[float(one.point[_RATIO])] = _lead(one)
    grown = [lead[max(lead)] - lead[min(lead)] for lead in leads.values() if len(lead) > 1]
    if not grown:
        return Finding(claim, "One sampling ratio was run.", "cannot say")
    num_grown = sum(one > 0.0 for one in grown)
    verdict: Verdict = "agrees" if num_grown == len(grown) else "differs" if num_grown == 0 else "in part"
    told = f"From the lowest ratio to the highest the lead over the best baseline grows in {num_grown} of {len(grown)}"
    return Finding(claim, f"{told} settings, by {100.0 * sum(grown) / len(grown):+.1f} points on average.", verdict)


def _lead(found: Group) -> float:
    """Return FedPCS's mean accuracy at the end, less that of the best baseline."""
    ends = {series.sampler: float(series.accuracy.mean()) for series in found.series}
    return ends.pop(REFERENCE) - max(ends.values())


def _mean_by_round(series: Series, quantity: str) -> dict[float, float]:
    rounds, values = series.curve(quantity)
    return dict(zip(rounds.tolist(), values.mean(axis=0).tolist(), strict=True)) if rounds.size else {}
