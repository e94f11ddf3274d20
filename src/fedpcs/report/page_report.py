"""An exhibit or a sweep as one page: report.html, which needs nothing else to be read, by day or by night.

Equal pages give equal bytes. All that a page holds is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedpcs._files import disk_errors, write_text, write_whole
from fedpcs.report.dark import GROUND
from fedpcs.report.page import Page
from fedpcs.report.page_figures import Drawn, draw_all
from fedpcs.report.templates import template

REPORT = "report.html"
FIGURES = "figures"
# A verdict is told by its word; sign and colour repeat it.
_SIGNS = {"agrees": "✓", "differs": "✗", "in part": "◐", "cannot say": "?"}


def write_page(page: Page, folder: Path) -> Path:
    """Write a page, and its figures as figures/<slug>.png for use elsewhere.

    Returns:
        Where the page is: report.html in `folder`, whole or as it was before.

    Raises:
        FedpcsError: A file cannot be written.
    """
    drawn = draw_all(page.drawings, with_files=True)
    figures, report = folder / FIGURES, folder / REPORT
    with disk_errors(folder):
        (figures if any(one.png for one in drawn) else folder).mkdir(parents=True, exist_ok=True)
        mine = {f"{one.slug}.png": one.png for one in drawn if one.png}
        for name, png in mine.items():
            write_whole(figures / name, png)
        for path in figures.glob("*.png"):  # what an earlier page left there is not this page's figure
            if path.name not in mine:
                path.unlink(missing_ok=True)
    write_text(report, _rendered(page, drawn))
    return report


def render(page: Page) -> str:
    """Return the page as HTML."""
    return _rendered(page, draw_all(page.drawings, with_files=False))


def _rendered(page: Page, figures: Sequence[Drawn]) -> str:
    return template("page.html.j2").render(page=page, figures=figures, signs=_SIGNS, ground=GROUND)
