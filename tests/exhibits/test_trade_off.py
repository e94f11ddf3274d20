"""What accuracy costs: lines run along one way of planning, and what is gained is weighed against what it costs."""

import math

import numpy as np
import pytest
from made_cells import made

from fedpcs.errors import InvalidInput
from fedpcs.exhibits import trade_off, useful_privacy
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.exhibits.registry import Wanted, exhibit

QUICK = trade_off.cells_of("quick")


def planned(cell):
    return float(cell.config.game.budget_unit), float(cell.config.game.accuracy_scale)


def page(extra=lambda cell: 0.0, epsilon=lambda cell: 1.0, paid=lambda cell: 1.0, kept=lambda cell: True):
    """Cells whose accuracy, ε and rewards rise with what they were planned for; changed by these."""
    done = []
    for cell in filter(kept, QUICK):
        unit, worth = planned(cell)
        spent = 100.0 * unit * epsilon(cell) * (1.0 + 0.01 * cell.seed)
        rewards = worth**0.5 * paid(cell) + cell.seed
        accuracy = 0.6 + 0.05 * math.log(100.0 * unit) + 0.02 * math.log(worth) + extra(cell) + 0.001 * cell.seed
        done.append(made(cell, accuracy, epsilon=spent, paid=rewards))
    return trade_off.page_of("quick", done)


def of_fedpcs(value, other):
    return lambda cell: value if cell.sampler == "fedpcs" else other


def test_every_sampler_of_the_paper_is_planned_at_three_levels_of_both_costs():
    levels = {}
    for cell in QUICK:
        levels.setdefault((cell.sampler, cell.seed), set()).add(planned(cell))
    assert set(levels) == {(name, seed) for name in SAMPLERS for seed in (0, 1, 2)}
    for found in levels.values():
        assert {unit for unit, worth in found if worth == 10_000.0} == {0.00125, 0.005, 0.02}
        assert {worth for unit, worth in found if unit == 0.005} == {1_000.0, 10_000.0, 100_000.0}
        assert len(found) == 5
    assert len({cell.key for cell in QUICK}) == len(QUICK)


def test_the_level_of_useful_privacy_is_not_run_twice():
    there = {cell.key for cell in useful_privacy.cells_of("quick")}
    assert sum(cell.key in there for cell in QUICK) == 3 * len(SAMPLERS)


@pytest.mark.parametrize(
    ("gained", "dearer", "verdict"),
    [(0.02, 1.2, "in part"), (0.02, 0.8, "agrees"), (-0.02, 1.2, "differs"), (-0.02, 0.8, "in part")],
)
def test_what_is_gained_is_weighed_against_each_cost(gained, dearer, verdict):
    """One seed is a little off, so that no difference is without spread."""
    lead = of_fedpcs(gained, 0.0)
    cost = of_fedpcs(dearer, 1.0)
    found = page(lambda cell: lead(cell) + 0.0005 * (cell.seed == 2), epsilon=cost, paid=cost)
    assert [finding.verdict for finding in found.findings] == [verdict] * 6
    assert all(finding.found.count(f"{100 * gained:+.1f} (".replace("-", "−")) == 1 for finding in found.findings)
    first, last = found.findings[0].found, found.findings[-1].found
    assert first.startswith("Precision: unit ρ = 0.00125, accuracy worth 10,000: ")
    assert "a median ε of" in first
    assert last.startswith("Precision: unit ρ = 0.005, accuracy worth 100,000: ")
    assert f"rewards of {round(316.2 * dearer + 1)} against 317" in last


def test_one_cost_being_level_says_nothing_of_the_other():
    found = page(of_fedpcs(0.02, 0.0), epsilon=of_fedpcs(1.2, 1.0))
    assert [finding.verdict for finding in found.findings] == ["in part"] * 3 + ["agrees"] * 3


def test_intervals_of_one_cost_hold_together():
    """Three seeds 1.0, 2.5 and 4.0 points ahead, the standard error 0.87: t at 95 % is 4.30, and of three 7.65."""
    found = page(lambda cell: 0.01 + 0.015 * cell.seed if cell.sampler == "fedpcs" else 0.0)
    assert all("+2.5 (−4.1 to +9.1)" in finding.found for finding in found.findings)


def test_lines_run_through_the_plans_of_one_cost_in_their_order():
    found = page()
    drawn = {drawing.topic: drawing.draw() for drawing in found.drawings}
    assert list(drawn) == ["accuracy against the median client's ε", "accuracy against rewards paid"]
    wanted = {
        "accuracy against the median client's ε": [0.12625, 0.505, 2.02],
        "accuracy against rewards paid": [1_000.0**0.5 + 1.0, 101.0, 100_000.0**0.5 + 1.0],
    }
    for topic, figure in drawn.items():
        overview = figure.axes[0]
        assert overview.get_xlabel().startswith("ε" if "ε" in topic else "rewards")
        lines = [np.asarray(line.get_xdata()) for line in overview.get_lines() if len(line.get_xdata()) == 3]
        assert len(lines) == len(SAMPLERS)  # one for each, though three points share it
        assert all(line == pytest.approx(wanted[topic]) for line in lines)
        heights = [np.asarray(line.get_ydata()) for line in overview.get_lines() if len(line.get_xdata()) == 3]
        assert all(np.all(np.diff(one) > 0.0) for one in heights)
        low, high = figure.axes[1].get_ylim()  # of three crowds the most accurate is enlarged
        assert low < max(one[-1] for one in heights) < high


def test_the_figures_title_names_both_ends_and_how_far_samplers_are_apart():
    drawing = page(of_fedpcs(0.013, 0.0)).drawings[0].draw()
    title = drawing.get_suptitle().replace("\N{NO-BREAK SPACE}", " ").replace("\n", " ")
    assert "From a median ε of 0.127 to 2.02 accuracy goes from 68.1 % to 83.3 %" in title  # ε is rounded up
    assert title.endswith("samplers are within 1.3 points")


def test_the_headline_counts_in_how_many_comparisons_something_is_sure():
    """Everyone is paid the same and spends the same; FedPCS is 1.3 points ahead of four others under five plans."""
    found = page(of_fedpcs(0.013, 0.0))
    assert found.headline == "fedpcs is more accurate in all 20 comparisons; ε and pay are equal."
    assert len(found.tables[0].rows) == 20


def test_what_is_not_done_is_left_out():
    def without_the_first(cell):
        return not (cell.sampler == "random" and planned(cell)[0] == 0.00125)

    found = page(kept=without_the_first)
    assert len(found.findings) == 5
    assert "unit ρ = 0.005" in found.findings[0].found
    assert {finding.verdict for finding in page(kept=lambda cell: cell.seed == 0).findings} == {"cannot say"}
    assert "(one seed)" in page(kept=lambda cell: cell.seed == 0).findings[0].found
    free = page(paid=lambda cell: 0.0, kept=lambda cell: cell.seed == 0)  # nobody was paid
    assert all(drawing.draw() for drawing in free.drawings)
    empty = trade_off.page_of("quick", [])
    assert empty.headline == "No cell is done yet."
    assert (empty.findings, empty.drawings) == ((), ())


def test_it_is_shown_on_one_data_set():
    wanted = Wanted("svhn", "quick", None, lambda cells: [], lambda words: None)
    with pytest.raises(InvalidInput, match="trade-off is shown on fashion-mnist alone, got 'svhn'"):
        exhibit("trade-off").make(wanted)


def test_the_paper_profile_has_every_sampler_a_rule_can_weigh_and_says_which_it_cannot():
    cells = trade_off.cells_of("paper")
    rules = {
        rule: {cell.sampler for cell in cells if cell.config.sampling.rule == rule} for rule in useful_privacy.RULES
    }
    assert rules["precision"] == set(useful_privacy.SAMPLERS)
    assert rules["hajek"] < rules["precision"]
    assert len({cell.seed for cell in cells}) == 5
    done = [made(cell, 0.8) for cell in cells if cell.seed < 2]
    full = trade_off.page_of("paper", done)
    assert any("no inclusion probabilities" in words for words in full.warnings)
    assert len(full.findings) == 6  # of the main rule alone
    assert full.shrunk == ()
