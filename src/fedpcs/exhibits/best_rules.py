"""The table with W calibrated once more, every sampler under the aggregation rule that suits it best at that noise.

Weights that undo the draw give the noisiest clients the most say (docs/fidelity.md, 11), so a sampler is not judged by
them alone. The rule is a choice of the server's like any other, and is tuned for each sampler on validation records.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fedpcs import _format
from fedpcs.errors import Unfinished
from fedpcs.exhibits.accuracy_cells import CALIBRATED, RULED, Run, Setting, setting_of, table_cells
from fedpcs.exhibits.accuracy_table import page_of as table_page_of
from fedpcs.exhibits.calibrated_table import with_calibration
from fedpcs.exhibits.clip_bounds import TUNING_SEEDS, VALIDATION_SHARE, tune_and_calibrate, validation_cells
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.page import Page, Table
from fedpcs.studies.cell_store import Done
from fedpcs.studies.grid import hajek_or_own
from fedpcs.studies.paired import mean_and_std

# The rule that undoes its draw first: of rules that do equally well the first is taken.
UNDOES = "undoes the draw"
TRIED = (UNDOES, "normalised", "precision")


@dataclass(frozen=True)
class TriedRules:
    """What each rule came to for one sampler.

    Attributes:
        accuracy: On validation records by rule of `TRIED`, one for each seed.
        undoing: What the rule is called that undoes the sampler's draw.
    """

    accuracy: Mapping[str, tuple[float, ...]]
    undoing: str

    @property
    def best(self) -> str:
        """The rule of the highest mean accuracy."""
        best = max(self.accuracy, key=lambda rule: statistics.fmean(self.accuracy[rule]))
        return self.undoing if best == UNDOES else best


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W, tune every sampler's rule under it, run the table, and return its page."""
    setting = setting_of(dataset, profile)
    found = tune_and_calibrate(dataset, setting, CALIBRATED, run)
    tried = tune_rules(setting, found.taken, run)
    rules = {name: one.best for name, one in tried.items()}
    done = run(table_cells(setting, {(RULED, name): found.taken for name in SAMPLERS}, rules))
    return with_calibration(page_of(dataset, profile, done, tried), dataset, found)


def tune_rules(setting: Setting, bound: float, run: Run) -> dict[str, TriedRules]:
    """Return what each rule came to for each sampler on validation records of an IID split; no test record is read.

    Clients train on fewer records while some are held out, and noise is W over their number: W is lowered by as much,
    so that rules are tried under the noise of the table.
    """
    lowered = bound * (1.0 - VALIDATION_SHARE)
    cells = {
        (name, rule): validation_cells(setting, name, [lowered], {} if rule == UNDOES else {"sampling.rule": rule})
        for name in SAMPLERS
        for rule in TRIED
    }
    wanted = [cell for some in cells.values() for cell in some]
    done = {one.cell.key: one for one in run(wanted)}
    if missing := sum(cell.key not in done for cell in wanted):
        raise Unfinished(f"{missing} of the {len(wanted)} trainings by which rules are tuned are not done.")
    found = {place: [done[cell.key] for cell in some] for place, some in cells.items()}
    return {
        name: TriedRules(
            {rule: tuple(one.outcome["accuracy"] for one in found[name, rule]) for rule in TRIED},
            hajek_or_own(name),
        )
        for name in SAMPLERS
    }


def page_of(dataset: str, profile: Profile, done: Sequence[Done], tried: Mapping[str, TriedRules]) -> Page:
    """Return the page of finished cells and of what was tried before."""
    title = "Every sampler under its best rule of aggregation,"
    page = table_page_of(dataset, profile, done, "best-rules", title, (RULED,))
    return replace(page, tables=(*page.tables, _tried_table(tried)))


def _tried_table(tried: Mapping[str, TriedRules]) -> Table:
    rows = tuple(
        (name, one.undoing, *(_format.share_and_spread(*mean_and_std(one.accuracy[rule])) for rule in TRIED), one.best)
        for name, one in tried.items()
    )
    return Table(
        "What was tried, on validation records",
        ("sampler", "rule that undoes its draw", *TRIED, "taken"),
        rows,
        note=f"{len(TUNING_SEEDS)} trainings each, IID, seeds that no table has, W lowered with clients' records so "
        "that noise is the table's; no test record was read.",
    )
