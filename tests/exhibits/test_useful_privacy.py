"""Accuracy beside what it costs: goals, bargains, and lines along one way of planning."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from made_cells import made
from made_pages import page_of_trials

from fedpcs.exhibits import useful_cells
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.report.page import Page
from fedpcs.studies.grid import Cell

USEFUL, PLANNED = useful_cells.useful_cells("quick"), useful_cells.planned_cells("quick")


def useful_page(accuracy: Callable[[Cell], float], epsilon: Callable[[Cell], float] = lambda cell: 5.0) -> Page:
    return page_of_trials("useful-privacy", [made(cell, accuracy(cell), epsilon=epsilon(cell)) for cell in USEFUL])


@pytest.mark.parametrize(
    ("accuracy", "epsilon", "verdicts"),
    [
        (0.85, 7.9, ["agrees", "agrees", "agrees"]),
        (0.81, 7.9, ["agrees", "differs", "agrees"]),
        (0.85, 8.1, ["differs", "differs", "differs"]),
    ],
)
def test_accuracy_and_epsilon_are_held_to_their_goals(accuracy: float, epsilon: float, verdicts: list[str]) -> None:
    page = useful_page(lambda cell: accuracy, lambda cell: epsilon)
    *goals, dearer = page.findings
    assert [finding.verdict for finding in goals] == verdicts
    assert "tanh-cnn" in goals[2].found
    assert page.headline == "No sure difference between fedpcs and 7 others: accuracy, ε and pay are equal."
    assert dearer.verdict == "cannot say"  # all samplers come to the same
    assert {record["mode"] for record in page.records} == {"record"}


@pytest.mark.parametrize(
    ("gained", "extra", "verdict"),
    [
        ((0.02, 0.021, 0.019), 0.0, "agrees"),
        ((0.02, 0.021, 0.019), 0.5, "in part"),
        ((0.0, 0.0, 0.0), -0.5, "cannot say"),  # three equal counts of records are not known to be equal
        ((-0.02, -0.021, -0.019), 0.5, "differs"),
        ((0.08, -0.02, 0.03), 0.0, "cannot say"),
    ],
)
def test_what_is_gained_is_weighed_against_what_is_spent(gained: Sequence[float], extra: float, verdict: str) -> None:
    page = useful_page(
        lambda cell: 0.8 + gained[cell.seed] * (cell.sampler == "fedpcs"),
        lambda cell: 7.0 + extra * (cell.sampler == "fedpcs"),
    )
    assert page.findings[-1].verdict == verdict


def test_one_seed_whose_median_client_spends_more_than_the_goal_misses_it() -> None:
    goal = useful_page(lambda cell: 0.85, lambda cell: 8.1 if cell.seed == 1 else 5.0).findings[0]
    assert goal.verdict == "differs"
    assert "ε at most 8.10 in every seed" in goal.found


@pytest.mark.parametrize(("spread", "verdict"), [(0.0, "agrees"), (0.05, "cannot say")])
def test_a_goal_is_met_only_where_seeds_are_sure_of_it(spread: float, verdict: str) -> None:
    goal = useful_page(lambda cell: 0.83 + spread * (cell.seed - 1)).findings[0]
    assert (goal.claim[:19], goal.verdict) == ("Goal: at least 80.0", verdict)


def planned(cell: Cell) -> tuple[float, float]:
    return float(cell.config.game.budget_unit), float(cell.config.game.accuracy_scale)


def one(_: Cell) -> float:
    return 1.0


def of_fedpcs(value: float, other: float) -> Callable[[Cell], float]:
    return lambda cell: value if cell.sampler == "fedpcs" else other


def planned_page(
    extra: Callable[[Cell], float] = lambda cell: 0.0,
    epsilon: Callable[[Cell], float] = one,
    paid: Callable[[Cell], float] = one,
    kept: Callable[[Cell], bool] = lambda cell: True,
) -> Page:
    """Trials whose accuracy, ε and rewards rise with what they were planned for; changed by these."""
    done = []
    for cell in filter(kept, PLANNED):
        unit, worth = planned(cell)
        spent = 100.0 * unit * epsilon(cell) * (1.0 + 0.01 * cell.seed)
        rewards = worth**0.5 * paid(cell) + cell.seed
        accuracy = 0.6 + 0.05 * math.log(100.0 * unit) + 0.02 * math.log(worth) + extra(cell) + 0.001 * cell.seed
        done.append(made(cell, accuracy, epsilon=spent, paid=rewards))
    return page_of_trials("trade-off", done)


def test_every_sampler_of_the_paper_is_planned_at_three_levels_of_both_costs() -> None:
    levels: dict[tuple[str, int], set[tuple[float, float]]] = {}
    for cell in PLANNED:
        levels.setdefault((cell.sampler, cell.seed), set()).add(planned(cell))
    assert set(levels) == {(name, seed) for name in SAMPLERS for seed in (0, 1, 2)}
    for found in levels.values():
        assert {unit for unit, worth in found if worth == 10_000.0} == {0.00125, 0.005, 0.02}
        assert {worth for unit, worth in found if unit == 0.005} == {1_000.0, 10_000.0, 100_000.0}
        assert len(found) == 5
    assert len({cell.key for cell in PLANNED}) == len(PLANNED)
    there = {cell.key for cell in USEFUL}  # the level both share is not run twice
    assert sum(cell.key in there for cell in PLANNED) == 3 * len(SAMPLERS)


@pytest.mark.parametrize(
    ("gained", "dearer", "verdict"), [(0.02, 1.2, "in part"), (0.02, 0.8, "agrees"), (-0.02, 1.2, "differs")]
)
def test_what_is_gained_is_weighed_against_each_cost(gained: float, dearer: float, verdict: str) -> None:
    """One seed is a little off, so that no difference is without spread."""
    lead, cost = of_fedpcs(gained, 0.0), of_fedpcs(dearer, 1.0)
    found = planned_page(lambda cell: lead(cell) + 0.0005 * (cell.seed == 2), epsilon=cost, paid=cost)
    assert [finding.verdict for finding in found.findings] == [verdict] * 6
    first, last = found.findings[0].found, found.findings[-1].found
    assert first.startswith("Precision: unit ρ = 0.00125, accuracy worth 10,000: ")
    assert last.startswith("Precision: unit ρ = 0.005, accuracy worth 100,000: ")
    assert f"rewards of {round(316.2 * dearer + 1)} against 317" in last


def test_one_cost_being_level_says_nothing_of_the_other() -> None:
    found = planned_page(of_fedpcs(0.02, 0.0), epsilon=of_fedpcs(1.2, 1.0))
    assert [finding.verdict for finding in found.findings] == ["in part"] * 3 + ["agrees"] * 3


def test_intervals_of_one_cost_hold_together() -> None:
    """Three seeds 1.0, 2.5 and 4.0 points ahead, the standard error 0.87: t at 95 % is 4.30, and of three 7.65."""
    found = planned_page(lambda cell: 0.01 + 0.015 * cell.seed if cell.sampler == "fedpcs" else 0.0)
    assert all("+2.5 (−4.1 to +9.1)" in finding.found for finding in found.findings)


def test_lines_run_through_the_plans_of_one_cost_in_their_order() -> None:
    drawn = {drawing.topic: drawing.draw() for drawing in planned_page().drawings}
    wanted = {
        "accuracy against the median client's ε": [0.12625, 0.505, 2.02],
        "accuracy against rewards paid": [1_000.0**0.5 + 1.0, 101.0, 100_000.0**0.5 + 1.0],
    }
    assert list(drawn) == list(wanted)
    for topic, figure in drawn.items():
        lines = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 3]
        assert len(lines) == len(SAMPLERS)  # one for each, though three points share it
        assert all(np.asarray(line.get_xdata()) == pytest.approx(wanted[topic]) for line in lines)
        assert all(np.all(np.diff(np.asarray(line.get_ydata())) > 0.0) for line in lines)


def test_what_is_not_done_is_left_out() -> None:
    found = planned_page(kept=lambda cell: not (cell.sampler == "random" and planned(cell)[0] == 0.00125))
    assert len(found.findings) == 5
    assert "unit ρ = 0.005" in found.findings[0].found
    alone = planned_page(kept=lambda cell: cell.seed == 0)
    assert {finding.verdict for finding in alone.findings} == {"cannot say"}
    assert "(one seed)" in alone.findings[0].found
    free = planned_page(paid=lambda cell: 0.0, kept=lambda cell: cell.seed == 0)  # nobody was paid
    assert all(drawing.draw() for drawing in free.drawings)


def test_the_paper_profile_has_every_sampler_a_rule_can_weigh() -> None:
    cells = useful_cells.planned_cells("paper")
    rules = {rule: {cell.sampler for cell in cells if cell.config.sampling.rule == rule} for rule in useful_cells.RULES}
    assert rules["precision"] == set(useful_cells.SAMPLERS)
    assert rules["hajek"] < rules["precision"]
    assert len({cell.seed for cell in cells}) == 5
    full = page_of_trials("trade-off", [made(cell, 0.8) for cell in cells if cell.seed < 2], profile="paper")
    assert len(full.findings) == 6  # of the main rule alone
