"""The paper's curves: accuracy and loss over rounds, for every sampler and ratio, of the accuracy table's cells.

Trainings that are shortened are left out: they are scored at their end alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import TUNED, VARIANTS, Profile, Run, setting_of
from fedpcs.experiments.exhibits.accuracy_table import run_table
from fedpcs.experiments.exhibits.page import Finding, Page, Verdict
from fedpcs.experiments.sweep_groups import Group, Series, group
from fedpcs.experiments.sweep_page import REFERENCE, comparison_page


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Run the accuracy table's cells and return the page of their curves."""
    variants = (TUNED,) if setting_of(dataset, profile).shorter else VARIANTS
    return page_of(dataset, profile, run_table(dataset, profile, run, variants))


def page_of(dataset: str, profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of curves of finished cells."""
    groups = group(done)
    found = tuple(finding for one in groups for finding in findings_of(one))
    first = sum(one.verdict == "agrees" for one in found)
    return replace(
        comparison_page("curves", done, command=f"fedpcs reproduce curves --dataset {dataset} --profile {profile}"),
        name=f"curves-{dataset}",
        title=f"Accuracy and loss over rounds on {dataset}",
        headline=f"FedPCS's mean accuracy is the highest in every round of {first} of {len(found)} settings.",
        shrunk=setting_of(dataset, profile).shrunk,
        findings=found,
    )


def findings_of(found: Group) -> list[Finding]:
    """Hold "FedPCS is above the baselines throughout" against one group."""
    ours = found.of(REFERENCE)
    rivals = [series for series in found.series if series.sampler != REFERENCE]
    if ours is None or not rivals:
        return []
    mine, *others = (_mean_by_round(series) for series in (ours, *rivals))
    rounds = set(mine).intersection(*others)
    ahead = sum(all(mine[now] >= one[now] for one in others) for now in rounds)
    verdict: Verdict = "agrees" if ahead == len(rounds) else "differs" if ahead == 0 else "in part"
    words = f"{found.words}: its mean accuracy is the highest in {ahead} of {len(rounds)} rounds."
    return [Finding("FedPCS surpasses the baselines throughout training.", words, verdict if rounds else "cannot say")]


def _mean_by_round(series: Series) -> dict[float, float]:
    rounds, values = series.curve("accuracy")
    return dict(zip(rounds.tolist(), values.mean(axis=0).tolist(), strict=True)) if rounds.size else {}
