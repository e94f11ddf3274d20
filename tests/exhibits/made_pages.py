"""Pages of exhibits of trials, from trials that were made up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from made_cells import made

from fedpcs.exhibits.exhibit import Request, build, declaration
from fedpcs.exhibits.registry import Profile
from fedpcs.exhibits.trials import setting_of, shrunk, trained
from fedpcs.report.page import Page
from fedpcs.studies.grid import Cell
from fedpcs.studies.results import TrialData

QUICK = setting_of("fashion-mnist", "quick")


def page_of_trials(
    name: str,
    done: Sequence[TrialData],
    variants: Sequence[str] = (),
    profile: Profile = "quick",
    dataset: str = "fashion-mnist",
) -> Page:
    """Return an exhibit's page of finished trials."""
    request = Request(name, profile, dataset)
    smaller = shrunk(setting_of(dataset, profile), variants) if variants else ()
    return build(declaration(name), request, trained(request, done, smaller))


def page_by_score(
    name: str, score: Callable[[Cell], float], dataset: str = "fashion-mnist", asked: list[Cell] | None = None
) -> Page:
    """Return an exhibit's page whose trials come to a score, with all it searches for before."""

    def run(cells: Sequence[Cell]) -> list[TrialData]:
        if asked is not None:
            asked.extend(cells)
        return [made(cell, score(cell)) for cell in cells]

    request = Request(name, dataset=dataset, run=run)
    return build(declaration(name), request, declaration(name).gather(request))


def column(page: Page, title: str, heading: str) -> list[str]:
    """Return a column of the table of a title."""
    table = next(table for table in page.tables if table.title == title)
    return [row[table.headings.index(heading)] for row in table.rows]
