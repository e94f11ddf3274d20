"""What accuracy costs: samplers are compared where they cost the same, and lines run along one plan."""

import math

import pytest
from made_cells import made

from fedpcs.errors import InvalidInput
from fedpcs.experiments.exhibits import trade_off, useful_privacy
from fedpcs.experiments.exhibits.paper_numbers import SAMPLERS
from fedpcs.experiments.exhibits.registry import exhibit

QUICK = trade_off.cells_of("quick")


def planned(cell):
    return float(cell.config.game.budget_unit), float(cell.config.game.accuracy_scale)


def page(extra=lambda cell: 0.0, epsilon=lambda cell: 1.0, paid=lambda cell: 1.0, seeds=(0, 1, 2)):
    """Cells on one line, accuracy = 0.6 + 0.05 log ε + 0.02 log paid, and `extra` above it; costs as factors."""
    done = []
    for cell in QUICK:
        unit, worth = planned(cell)
        spent = 100.0 * unit * epsilon(cell) * (1.0 + 0.01 * cell.seed)
        rewards = worth**0.5 * paid(cell)
        accuracy = 0.6 + 0.05 * math.log(spent) + 0.02 * math.log(rewards) + extra(cell) + 0.001 * cell.seed
        if cell.seed in seeds:
            done.append(made(cell, accuracy, epsilon=spent, paid=rewards))
    return trade_off.page_of("quick", done)


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


def test_spending_more_on_the_same_line_is_no_lead():
    """FedPCS spends a fifth more and is more accurate by what that buys anyone."""
    found = page(epsilon=lambda cell: 1.2 if cell.sampler == "fedpcs" else 1.0)
    privacy, _ = found.findings
    assert privacy.verdict == "cannot say"
    assert privacy.found.count("0.0 (") == 2  # of three levels the lowest is below what FedPCS's clients spend
    table = found.tables[0]
    assert [row[1].endswith("out of FedPCS's reach") for row in table.rows] == [True] * 4
    assert [row[0] for row in table.rows] == [name for name in SAMPLERS if name != "fedpcs"]


@pytest.mark.parametrize(("lead", "verdict"), [(0.02, "agrees"), (-0.02, "differs")])
def test_a_lead_at_the_same_cost_is_found(lead, verdict):
    found = page(extra=lambda cell: lead if cell.sampler == "fedpcs" else 0.0)
    assert {finding.verdict for finding in found.findings} == {verdict}
    assert all(finding.found.count(f"{100 * lead:+.1f}".replace("-", "−")) >= 3 for finding in found.findings)


def test_a_lead_at_one_level_alone_is_one_in_part():
    def extra(cell):
        return 0.05 if cell.sampler == "fedpcs" and planned(cell) == (0.02, 10_000.0) else 0.0

    privacy, rewards = page(extra=extra).findings
    assert (privacy.verdict, rewards.verdict) == ("in part", "cannot say")


def test_lines_run_along_one_plan_and_the_title_names_both_ends():
    found = page()
    assert [drawing.topic for drawing in found.drawings] == [
        "accuracy against the median client's ε",
        "accuracy against rewards paid",
    ]
    for drawing in found.drawings:
        assert drawing.draw().axes
    assert "From ε = 0.13 to ε = 2.02" in found.headline  # rounded up


def test_one_seed_and_no_cells_make_a_page_too():
    assert {finding.verdict for finding in page(seeds=(0,)).findings} == {"cannot say"}
    empty = trade_off.page_of("quick", [])
    assert empty.headline == "No cell is done yet."
    assert (empty.findings, empty.drawings) == ((), ())


def test_it_is_shown_on_one_data_set():
    with pytest.raises(InvalidInput, match="trade-off is shown on fashion-mnist, got 'svhn'"):
        exhibit("trade-off").make(type("Wanted", (), {"dataset": "svhn"})())


def test_the_paper_profile_has_every_sampler_a_rule_can_weigh():
    cells = trade_off.cells_of("paper")
    rules = {
        rule: {cell.sampler for cell in cells if cell.config.sampling.rule == rule} for rule in useful_privacy.RULES
    }
    assert rules["precision"] == set(useful_privacy.SAMPLERS)
    assert rules["hajek"] < rules["precision"]
    assert len({cell.seed for cell in cells}) == 5
