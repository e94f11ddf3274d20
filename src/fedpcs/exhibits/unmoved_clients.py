"""The accuracy table once more, with baselines whose clients rewards do not move.

In one table they are selfish and give the lowest budget, as the paper's section on the price of anarchy assumes of
random sampling; W is calibrated on random sampling with such clients. In the other, which the paper has not, they are
static and stay at their first budget, under the same W. FedPCS's clients are paid and rational in both.
"""

from __future__ import annotations

from fedpcs.exhibits.accuracy_cells import (
    SELFISH,
    STATIC,
    STATIC_SAMPLERS,
    UNMOVED,
    Run,
    setting_of,
    table_cells,
)
from fedpcs.exhibits.accuracy_table import page_of
from fedpcs.exhibits.calibrated_table import with_calibration
from fedpcs.exhibits.clip_bounds import tune_and_calibrate
from fedpcs.exhibits.paper_numbers import SAMPLERS
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.page import Page


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W, run both tables, and return their page."""
    setting = setting_of(dataset, profile)
    found = tune_and_calibrate(dataset, setting, SELFISH, run)
    tables = {SELFISH: SAMPLERS, STATIC: STATIC_SAMPLERS if profile == "quick" else SAMPLERS}
    cells = table_cells(setting, {(variant, name): found.taken for variant, names in tables.items() for name in names})
    page = page_of(dataset, profile, run(cells), "unmoved-clients", "Clients whom rewards do not move,", UNMOVED)
    return with_calibration(page, dataset, found)
