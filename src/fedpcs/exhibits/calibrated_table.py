"""The accuracy table with W calibrated once, on random sampling alone, and then frozen for every sampler.

The paper does not print W. With this one random sampling has the accuracy that the paper prints for it, so that what
others have can be held against the paper's comparison.
"""

from __future__ import annotations

from dataclasses import replace

from fedpcs import _format
from fedpcs.exhibits.accuracy_cells import CALIBRATED, Run, setting_of, table_cells
from fedpcs.exhibits.accuracy_table import page_of
from fedpcs.exhibits.clip_bounds import Calibration, tune_and_calibrate
from fedpcs.exhibits.paper_numbers import SAMPLERS, printed_accuracy
from fedpcs.exhibits.profiles import Profile
from fedpcs.report.page import Page, Table
from fedpcs.studies.paired import mean_and_std


def make_page(dataset: str, profile: Profile, run: Run) -> Page:
    """Calibrate W, run the table, and return its page."""
    setting = setting_of(dataset, profile)
    found = tune_and_calibrate(dataset, setting, CALIBRATED, run)
    done = run(table_cells(setting, {(CALIBRATED, name): found.taken for name in SAMPLERS}))
    title = "Accuracy table with W calibrated,"
    return with_calibration(page_of(dataset, profile, done, "calibrated-table", title, (CALIBRATED,)), dataset, found)


def with_calibration(page: Page, dataset: str, found: Calibration) -> Page:
    """Return a page that also shows how its W was come by, and says so where that is not as the paper has it."""
    return replace(
        page,
        warnings=(*page.warnings, *_missed(dataset, found)),
        tables=(*page.tables, _tried_table(found)),
    )


def _missed(dataset: str, found: Calibration) -> list[str]:
    printed = printed_accuracy(dataset, 0.2, "iid", "random")
    mean, std = mean_and_std(found.accuracy[found.taken])
    words = []
    if printed is not None and found.target < printed.mean / 100.0:
        words.append(
            f"So short a training does not come to the {printed.mean} % the paper prints for random sampling: W was "
            f"sought for {_format.share(found.target)}, and is not the paper's."
        )
    if not found.is_near:
        words.append(
            f"Random sampling has {_format.share_and_spread(mean, std)} where {_format.share(found.target)} were "
            "sought; no W that was tried brought it nearer. What this page says, it says of another noise."
        )
    return words


def _tried_table(found: Calibration) -> Table:
    """Return what random sampling came to with each W that was tried."""
    rows = tuple(
        (
            f"{bound:g}",
            _format.share_and_spread(*mean_and_std(found.accuracy[bound])),
            "taken" if bound == found.taken else "",
        )
        for bound in sorted(found.accuracy)
    )
    return Table(
        "Values of W that were tried",
        ("W", "random", ""),
        rows,
        note=f"Random sampling, IID, the table's seeds, test records; sought was {_format.share(found.target)}.",
    )
