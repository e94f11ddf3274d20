"""The paper's curves: accuracy and loss over rounds, for every sampler and ratio, of the accuracy table's cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fedpcs.experiments.cell_store import Done
from fedpcs.experiments.exhibits.accuracy_cells import Profile, Run, setting_of
from fedpcs.experiments.exhibits.accuracy_table import run_table
from fedpcs.experiments.exhibits.page import Finding, Page, Verdict
from fedpcs.experiments.sweep_groups import Group, group
from fedpcs.experiments.sweep_page import REFERENCE, comparison_page


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Run the accuracy table's cells and return the page of their curves."""
    return page_of(dataset, profile, run_table(dataset, profile, run))


def page_of(dataset: str, profile: Profile, done: Sequence[Done]) -> Page:
    """Return the page of curves of finished cells."""
    groups = group(done)
    found = tuple(finding for one in groups for finding in findings_of(one))
    first = sum(one.verdict == "agrees" for one in found)
    return replace(
        comparison_page("curves", done),
        name=f"curves-{dataset}",
        title=f"Accuracy and loss over rounds on {dataset}",
        headline=f"FedPCS's mean accuracy is the highest in every round of {first} of {len(found)} settings.",
        shrunk=setting_of(dataset, profile).shrunk,
        findings=found,
        commands=((f"fedpcs reproduce curves --dataset {dataset} --profile {profile}", "the whole page"),),
    )


def findings_of(found: Group) -> list[Finding]:
    """Hold "FedPCS is above the baselines throughout" against one group."""
    ours = found.of(REFERENCE)
    rivals = [series for series in found.series if series.sampler != REFERENCE]
    if ours is None or not rivals:
        return []
    means = {series.sampler: series.curve("accuracy")[1].mean(axis=0) for series in found.series}
    mine = means[REFERENCE]
    others = [means[series.sampler] for series in rivals]
    length = min(len(mine), *(len(one) for one in others))
    ahead = sum(all(mine[k] >= one[k] for one in others) for k in range(length))
    verdict: Verdict = "agrees" if ahead == length else "differs" if ahead == 0 else "in part"
    words = f"{found.words}: its mean accuracy is the highest in {ahead} of {length} rounds."
    return [Finding("FedPCS surpasses the baselines throughout training.", words, verdict)]
