"""Where the gain comes from: each step against the one before, each split by itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from made_cells import made
from made_pages import QUICK, page_of_trials

from fedpcs.exhibits import ablation
from fedpcs.exhibits.trials import CALIBRATED, table_cells
from fedpcs.report.page import Finding, Page
from fedpcs.studies.results import TrialData


def ablated(of_rules: float, control: float = 0.05, splits: Sequence[str] = ("iid",)) -> list[TrialData]:
    """The ablation's trials on some splits; those of rules that are no step come to `of_rules`."""
    labels = [label for label, _, _ in ablation.STEPS]
    gained = {**dict(zip(labels, [0.0, 0.01, 0.04, 0.03, 0.05], strict=True)), ablation.CONTROL: control}
    return [
        made(cell, 0.7 + 0.001 * cell.seed + gained[cell.variant] if cell.variant in gained else of_rules)
        for cell in ablation.cells_of(QUICK, 20.0)
        if cell.config.data.partition in splits
    ]


def page(done: Sequence[TrialData]) -> Page:
    return page_of_trials("ablation", done)


def finding(made_page: Page, label: str) -> Finding:
    (found,) = [one for one in made_page.findings if one.claim.endswith(f"{ablation.GAINS[label]}.")]
    return found


def test_ablation_tells_of_each_split_by_itself() -> None:
    found = page(ablated(0.6, splits=["iid", "dirichlet"]))
    assert [table.title.partition(": ")[2] for table in found.tables[:6]] == ["iid"] * 3 + ["dirichlet"] * 3
    assert [one.claim.partition(":")[0] for one in found.findings] == ["iid", "dirichlet"] * 7
    assert "84.43 %" in found.findings[12].claim
    assert "83.35 %" in found.findings[13].claim
    assert found.headline.count("'and levelled', +3.0, draw and weights together +1.0") == 2
    assert [one.topic for one in found.drawings] == [f"gain of each step ({one})" for one in ("iid", "dirichlet")]
    cells = ablation.cells_of(QUICK, 20.0)
    assert [cell.config.data.partition for cell in cells] == ["iid"] * 27 + ["dirichlet"] * 27


def test_ablation_gives_each_step_its_own_gain() -> None:
    found = page(ablated(0.6))
    assert {label: finding(found, label).verdict for label in ablation.GAINS} == {
        "budgets raised": "agrees",
        "and levelled": "agrees",
        "drawn by budget": "differs",
        "weighed by precision": "agrees",
        "the draw alone": "cannot say",
        "draw and weights": "agrees",
    }
    # Weights take the draw's loss back, and one point more.
    assert finding(found, "draw and weights").found.startswith("+1.0")
    differences = next(table for table in found.tables if table.title.startswith("The three differences"))
    against = differences.headings.index("against")
    steps = [label for label, _, _ in ablation.STEPS[:-1]]
    assert [row[against] for row in differences.rows] == [*steps, ablation.CONTROL, "and levelled"]
    accuracy = [row[against + 1].split()[1:3] for row in differences.rows[:3]]
    assert accuracy == [["points", "higher"]] * 2 + [["points", "lower"]]
    assert {row[against + 3] for row in differences.rows} == {"equal"}  # everyone is paid the same in these trials
    assert found.drawings[0].draw()


@pytest.mark.parametrize(("control", "verdict"), [(0.02, "agrees"), (0.09, "differs")])
def test_the_draw_alone_is_judged_with_everyone_weighed_by_precision(control: float, verdict: str) -> None:
    found = page(ablated(0.6, control))
    alone = finding(found, "the draw alone")
    assert alone.verdict == verdict
    assert alone.found.startswith(f"{100 * (0.05 - control):+.1f}".replace("-", "−"))
    crossed = found.tables[1]
    assert [row[0] for row in crossed.rows] == ["at random", "by budget"]
    assert f"{100 * (0.701 + control):.1f}" in crossed.rows[0][2]


def test_a_step_is_measured_against_the_step_before_it_or_not_at_all() -> None:
    found = page([one for one in ablated(0.6) if one.cell.variant != "budgets raised"])
    assert [row[2] for row in found.tables[0].rows][:2] == ["–", "–"]
    assert "and levelled" not in found.headline


def test_ablation_has_one_game_behind_all_steps_and_shares_fedpcs_with_the_table() -> None:
    cells = ablation.cells_of(QUICK, 20.0)
    assert {cell.config.game.selection for cell in cells if cell.sampler == "random"} == {"budget-aware"}
    assert {cell.config.sampling.rule for cell in cells if cell.variant == ablation.CONTROL} == {"precision"}
    table = table_cells(QUICK, {(CALIBRATED, "fedpcs"): 20.0})
    assert len({cell.key for cell in cells} & {cell.key for cell in table}) == 2 * len(QUICK.seeds)


@pytest.mark.parametrize(
    ("accuracy", "best", "verdict"), [(0.85, "normalised", "agrees"), (0.6, "precision", "differs")]
)
def test_ablation_names_the_rule_that_comes_nearest(accuracy: float, best: str, verdict: str) -> None:
    found = page(ablated(accuracy))
    assert found.findings[-1].verdict == verdict
    assert f"Of 5 rules of aggregation that were run {best} comes highest" in found.findings[-1].found
    few = [one for one in ablated(accuracy) if not one.cell.variant.startswith("rule ")]
    assert page(few).findings[-1].verdict == "cannot say"
    rules = found.tables[2]
    assert {row[0] for row in rules.rows} == set(ablation.RULES)
    assert rules.rows[0][0] == best
