"""The accuracy table once more, with baselines whose clients rewards do not move, as the paper's price of anarchy has.

W is calibrated on random sampling with clients that give the lowest budget, and kept for clients that stay at their
first. FedPCS's clients are paid and rational in both tables.
"""

from __future__ import annotations

from fedpcs.experiments.exhibits.accuracy_cells import SELFISH, UNMOVED, Profile, Run, setting_of, table_cells
from fedpcs.experiments.exhibits.accuracy_table import page_of
from fedpcs.experiments.exhibits.clip_bounds import tune_and_calibrate
from fedpcs.experiments.exhibits.page import Page
from fedpcs.experiments.exhibits.paper_numbers import SAMPLERS


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W, run both tables, and return their page."""
    setting = setting_of(dataset, profile)
    bound = tune_and_calibrate(dataset, setting, SELFISH, run)
    cells = table_cells(setting, {(variant, name): bound for variant in UNMOVED for name in SAMPLERS})
    return page_of(dataset, profile, run(cells), "unmoved-clients", "Clients whom rewards do not move,")
