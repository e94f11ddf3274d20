"""Samplers compared in pairs of seeds: who is paired with whom, how sure that makes, and what their tables show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_cells import made
from made_records import a_manifest
from scipy import stats

from fedpcs.errors import InvalidInput
from fedpcs.exhibits import accuracy_table
from fedpcs.exhibits.accuracy_cells import TUNED, setting_of, table_cells
from fedpcs.report.tables import study_tables
from fedpcs.report.warnings import mixed
from fedpcs.studies.cell_store import Done
from fedpcs.studies.groups import Group, Series, against, best_of

SAMPLERS = ("random", "aocs", "fed-cbs", "delta", "fedpcs")
CELLS = {
    (cell.sampler, cell.seed): cell
    for cell in table_cells(setting_of("fashion-mnist", "quick"), {(TUNED, name): 1.0 for name in SAMPLERS})
    if cell.config.data.partition == "iid"
}
SEEDS = (0, 1, 2)


def series(sampler: str, accuracy: Mapping[int, float], **more: Any) -> Series:
    """One sampler's cells in the order of seeds that is given."""
    return Series(sampler, tuple(made(CELLS[sampler, seed], value, **more) for seed, value in accuracy.items()))


def spread(mean: float, doubt: float) -> list[float]:
    """Return three leads around a mean whose t-interval just reaches zero where this much doubt is allowed."""
    std = mean * np.sqrt(3.0) / stats.t.ppf(1.0 - 0.5 * doubt, 2)
    return [mean - std, mean, mean + std]


def all_behind(leads: Sequence[float]) -> Group:
    """FedPCS at 90 %, and every baseline behind it by the same leads, seed by seed."""
    rivals = [series(name, {seed: 0.9 - leads[seed] for seed in SEEDS}) for name in SAMPLERS[:-1]]
    return Group(TUNED, CELLS["random", 0].point, (*rivals, series("fedpcs", dict.fromkeys(SEEDS, 0.9))))


def test_cells_are_paired_by_their_seed_in_whatever_order_they_come() -> None:
    one = series("fedpcs", {0: 0.71, 1: 0.82, 2: 0.93})
    turned = series("random", {2: 0.90, 0: 0.70, 1: 0.80})
    found = against(one, turned)
    twin = stats.ttest_rel([0.71, 0.82, 0.93], [0.70, 0.80, 0.90]).confidence_interval(0.95)
    assert (found.mean, found.low, found.high) == pytest.approx((0.02, twin.low, twin.high))


def test_only_seeds_that_both_have_are_paired() -> None:
    found = against(series("fedpcs", {0: 0.1, 1: 0.82, 2: 0.93}), series("random", {1: 0.80, 2: 0.90}))
    assert (found.mean, found.num_pairs) == (pytest.approx(0.025), 2)
    with pytest.raises(InvalidInput):
        against(series("fedpcs", {0: 0.1}), series("random", {1: 0.8}))


def test_seeds_that_agree_to_the_record_are_believed_to_one_record_and_no_further() -> None:
    """The interval is that of a deviation of one test record in so many; a number that is not counted has none."""
    one, other = (series(name, dict.fromkeys(SEEDS, value)) for name, value in (("fedpcs", 0.8001), ("random", 0.8)))
    found, reach = against(one, other), stats.t.ppf(0.975, 2) * 1e-4 / np.sqrt(3.0)
    assert (found.low, found.high) == pytest.approx((1e-4 - reach, 1e-4 + reach))
    assert not found.is_above
    paid = against(replace(one, trials=tuple(_paid(cell, 101.0) for cell in one.done)), other, of="paid")
    assert (paid.low, paid.high) == (1.0, 1.0)


def _paid(done: Done, amount: float) -> Done:
    return replace(done, result=done.outcome.model_copy(update={"paid": amount}))


@pytest.mark.parametrize(("factor", "is_sure"), [(0.9, True), (1.1, False)])
def test_the_best_is_above_all_others_together(factor: float, is_sure: bool) -> None:
    """Above each of four by as much as a quarter of 5 % of doubt barely allows."""
    best = best_of(all_behind(spread(0.02, factor * 0.05 / 4)))
    assert (best is not None and best.sampler == "fedpcs") == is_sure


@pytest.mark.parametrize(("factor", "num_ahead"), [(0.9, 4), (1.1, 0)])
def test_a_lead_over_all_baselines_is_judged_and_shown_by_intervals_that_hold_together(
    factor: float, num_ahead: int
) -> None:
    leads = spread(0.02, factor * 0.05 / 4)
    _, finding = accuracy_table.findings_of("fashion-mnist", all_behind(leads))
    assert f"surely ahead of {num_ahead} of 4 baselines" in finding.found
    assert finding.verdict == ("in part" if num_ahead else "cannot say")
    twin = stats.ttest_rel(leads, [0.0] * 3).confidence_interval(1.0 - 0.05 / 4)
    assert f"+2.0 ({100 * twin.low:+.1f} to {100 * twin.high:+.1f}) points".replace("-", "−") in finding.found
    assert "Intervals of all baselines hold together with 95 % confidence." in finding.found


@pytest.mark.parametrize(("width", "verdict"), [(0.001, "agrees"), (0.0035, "in part")])
def test_as_large_a_lead_as_the_papers_needs_the_wider_interval_too(width: float, verdict: str) -> None:
    """The paper's lead is 1.72 points, ours 3.0; its plain interval leaves 1.72 out both times."""
    leads = [0.03 - width, 0.03, 0.03 + width]
    assert stats.ttest_rel(leads, [0.0] * 3).confidence_interval(0.95).low > 0.0172
    _, finding = accuracy_table.findings_of("fashion-mnist", all_behind(leads))
    assert finding.verdict == verdict


def column(found: Group, heading: str) -> list[str]:
    table = next(one for one in study_tables([found]) if heading in one.headings)
    return [row[table.headings.index(heading)] for row in table.rows]


def test_epsilon_is_the_least_of_all_seeds_the_mean_of_their_medians_and_the_greatest_of_all() -> None:
    """Seeds' medians are 1, 2 and 6, their least clients' half of that, their greatest clients' twice."""
    done = tuple(made(CELLS["random", seed], 0.8, epsilon=epsilon) for seed, epsilon in enumerate((1.0, 2.0, 6.0)))
    found = Group(TUNED, done[0].cell.point, (Series("random", done),))
    assert column(found, "ε spent") == ["0.500 / 3.00 / 12.0"]


def test_rewards_are_the_mean_of_what_was_paid_with_its_spread() -> None:
    done = tuple(made(CELLS["random", seed], 0.8, paid=paid) for seed, paid in enumerate((100.0, 200.0, 600.0)))
    assert column(Group(TUNED, done[0].cell.point, (Series("random", done),)), "rewards") == [
        "300\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}265"
    ]


@pytest.mark.parametrize("library", ["torch", "numpy", "scipy", "numba"])
def test_cells_of_different_versions_of_a_library_are_said_to_be(library: str) -> None:
    done = [made(CELLS["random", seed], 0.8) for seed in SEEDS]
    assert mixed(done) == ()
    other = replace(done[0], manifest=a_manifest(libraries=done[0].manifest.libraries | {library: "0.0.1"}))
    (warning,) = mixed([other, *done[1:]])
    assert f"different versions of {library};" in warning
