"""The accuracy table under the noise the paper must have had: W such that random sampling has the paper's accuracy.

The paper does not print W. It is calibrated once, on random sampling alone, and then frozen for every sampler.
"""

from __future__ import annotations

from dataclasses import replace

from fedpcs.experiments.exhibits.accuracy_cells import CALIBRATED, Run, setting_of, table_cells
from fedpcs.experiments.exhibits.accuracy_table import page_of
from fedpcs.experiments.exhibits.clip_bounds import Calibration, tune_and_calibrate
from fedpcs.experiments.exhibits.paper_numbers import SAMPLERS
from fedpcs.experiments.exhibits.profiles import Profile
from fedpcs.experiments.page import Page, Table
from fedpcs.experiments.paired import mean_and_std
from fedpcs.experiments.sweep_words import spread_words


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W, run the table, and return its page."""
    setting = setting_of(dataset, profile)
    found = tune_and_calibrate(dataset, setting, CALIBRATED, run)
    done = run(table_cells(setting, {(CALIBRATED, name): found.taken for name in SAMPLERS}))
    page = page_of(dataset, profile, done, "calibrated-table", "Accuracy table with W calibrated,")
    return replace(page, tables=(*page.tables, calibration_table(found)))


def calibration_table(found: Calibration) -> Table:
    """Return what random sampling came to with each W that was tried."""
    rows = tuple(
        (f"{bound:g}", spread_words(*mean_and_std(found.accuracy[bound])), "taken" if bound == found.taken else "")
        for bound in sorted(found.accuracy)
    )
    return Table(
        "Values of W that were tried",
        ("W", "random", ""),
        rows,
        note=f"Random sampling, IID, the table's seeds, test records; sought was {spread_words(found.target, None)}.",
    )
