"""Curves: what rounds, baselines and ratios may say together, and models that ran away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from made_cells import made
from made_pages import QUICK, page_of_trials
from scipy import stats

from fedpcs.exhibits import curves
from fedpcs.exhibits.claims import Judged
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.exhibits.trials import TUNED, table_cells
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import Group, TrialData, group

SETTING = replace(QUICK, ratios=(0.2, 0.8))
CELLS = [
    cell
    for cell in table_cells(SETTING, {(TUNED, name): 1.0 for name in SAMPLERS})
    if cell.config.data.partition == "iid"
]
ROUNDS = CELLS[0].config.rounds


def cells_of(ratio: float, samplers: Sequence[str] = SAMPLERS) -> list[Cell]:
    return [cell for cell in CELLS if cell.point["sampling.sampling_ratio"] == ratio and cell.sampler in samplers]


def flat(cell: Cell, accuracy: Callable[[int], float]) -> TrialData:
    """A trial with an accuracy of its own in every round."""
    done = made(cell, accuracy(ROUNDS - 1))
    rounds = tuple(line.model_copy(update={"accuracy": accuracy(line.round)}) for line in done.rounds)
    return replace(done, rounds=rounds)


def judged(lead: Callable[[str, int, int], float], samplers: Sequence[str] = SAMPLERS) -> Judged:
    """FedPCS at 70 %, and ahead of each by `lead` of its name, the seed and the round."""

    def accuracy(cell: Cell) -> Callable[[int], float]:
        return lambda now: 0.7 if cell.sampler == "fedpcs" else 0.7 - lead(cell.sampler, cell.seed, now)

    (found,) = group([flat(cell, accuracy(cell)) for cell in cells_of(0.2, samplers)])
    return curves.throughout("accuracy")(found)


def spread(mean: float, doubt: float) -> list[float]:
    """Return three leads around a mean whose t-interval just reaches zero where this much doubt is allowed."""
    std = mean * np.sqrt(3.0) / stats.t.ppf(1.0 - 0.5 * doubt, 2)
    return [mean - std, mean, mean + std]


@pytest.mark.parametrize("num_rivals", [1, 4])
@pytest.mark.parametrize(("factor", "ahead"), [(0.9, 1), (1.1, 0)])
def test_the_doubt_is_shared_by_all_rounds_and_baselines(num_rivals: int, factor: float, ahead: int) -> None:
    """One round of ten is ahead by as much as 5 % of doubt over rounds × baselines barely allow."""
    leads = spread(0.02, factor * 0.05 / (num_rivals * ROUNDS))
    level = spread(0.0002, 0.5)

    def lead(_: str, seed: int, now: int) -> float:
        return leads[seed] if now == 3 else level[seed]

    verdict, text = judged(lead, (*SAMPLERS[:num_rivals], "fedpcs"))
    assert f"ahead of every baseline in {ahead} of {ROUNDS} rounds" in text
    assert verdict == ("in part" if ahead else "cannot say")


def test_a_round_counts_only_if_every_baseline_is_behind() -> None:
    verdict, text = judged(lambda name, seed, now: 0.0 if name == "delta" else 0.1)
    assert f"ahead of every baseline in 0 of {ROUNDS} rounds" in text
    assert verdict == "cannot say"
    verdict, text = judged(lambda name, seed, now: -0.1 if name == "delta" else 0.1)
    assert f"behind one in {ROUNDS}." in text
    assert verdict == "differs"


@pytest.mark.parametrize(
    ("mine", "theirs", "sides"),
    [
        ([-0.5, -0.5001, -0.5], [-0.5001, -0.5002, np.nan], (False, False)),
        ([-0.5, -0.5, -0.5], [np.nan, np.nan, np.nan], (True, False)),
        ([np.nan, -0.5, -0.5], [np.nan, np.nan, np.nan], (False, False)),
        ([np.nan, np.nan, np.nan], [-0.5, -0.5, -0.5], (False, True)),
        ([np.nan, np.nan, np.nan], [np.nan, np.nan, np.nan], (False, False)),
        ([-0.5], [np.nan], (False, False)),
    ],
)
def test_models_that_ran_away_say_something_only_if_they_did_with_every_seed(
    mine: list[float], theirs: list[float], sides: tuple[bool, bool]
) -> None:
    found = curves.lead(np.array(mine), np.array(theirs), 0.95, 0.0)
    assert (found.is_above, found.is_below) == sides


def grown(leads: dict[tuple[str, float], Sequence[float]]) -> list[Group]:
    """Baselines at some lead of FedPCS, by sampler and ratio, one for each seed."""
    samplers = dict.fromkeys(name for name, _ in leads)
    return group(
        [
            made(cell, 0.7 if cell.sampler == "fedpcs" else 0.7 - leads[cell.sampler, ratio][cell.seed])
            for ratio in SETTING.ratios
            for cell in cells_of(ratio, (*samplers, "fedpcs"))
        ]
    )


def test_growth_is_of_the_lead_over_the_baseline_that_is_best_at_each_ratio() -> None:
    """Over random the lead falls by 15 points, over AOCS it grows by 20, over the better of both by 10."""
    even = np.array([-0.0001, 0.0, 0.0001])
    leads = {("random", 0.2): 0.3, ("random", 0.8): 0.15, ("aocs", 0.2): 0.05, ("aocs", 0.8): 0.25}
    verdict, text = curves.growth(grown({key: (value + even).tolist() for key, value in leads.items()}))
    assert "by +10.0 points on average" in text
    assert verdict == "agrees"
    turned = {(name, {0.2: 0.8, 0.8: 0.2}[ratio]): (value + even).tolist() for (name, ratio), value in leads.items()}
    assert curves.growth(grown(turned))[0] == "differs"


@pytest.mark.parametrize(("factor", "verdict"), [(0.9, "in part"), (1.1, "cannot say")])
def test_settings_share_the_doubt_of_growth(factor: float, verdict: str) -> None:
    """Two settings, of which one grows by as much as half of 5 % of doubt barely allows."""
    growing = grown({("random", 0.2): (0.0, 0.0, 0.0), ("random", 0.8): spread(0.02, factor * 0.025)})
    resting = grown({("random", 0.2): (0.0, 0.0, 0.0), ("random", 0.8): (-0.1, 0.0, 0.1)})
    others = [replace(one, variant="another") for one in resting]
    assert curves.growth([*growing, *others])[0] == verdict


@pytest.mark.parametrize(("lead", "verdict"), [(0.1, "agrees"), (-0.1, "differs")])
def test_the_page_has_both_curves_and_growth_needs_two_ratios(lead: float, verdict: str) -> None:
    done = [made(cell, 0.7 + lead * (cell.sampler == "fedpcs")) for cell in cells_of(0.2)]
    accuracy, loss, growing = page_of_trials("curves", done).findings
    assert "accuracy" in accuracy.claim
    assert "loss" in loss.claim
    assert (accuracy.verdict, loss.verdict, growing.verdict) == (verdict, verdict, "cannot say")
