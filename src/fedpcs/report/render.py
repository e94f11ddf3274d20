"""A page as HTML and as Markdown. Equal pages give equal bytes; all that a page holds is escaped.

The HTML needs nothing else to be read: its policy lets a browser run no script and fetch nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fedpcs._files import disk_errors, write_text, write_whole
from fedpcs.report.drawing import Drawn, draw_all, slugs
from fedpcs.report.page import Page
from fedpcs.report.palette import line_styles

REPORT, FIGURES = "report.html", "figures"
# A verdict is told by its word; sign and colour repeat it.
_SIGNS = {"agrees": "✓", "differs": "✗", "in part": "◐", "cannot say": "?"}
# Characters that would be read as markup; _ only where it does not stand inside a word, as in num_clients, and ] only
# where a link would follow it: an interval [0.1, 0.2] stays as it is.
_MARKUP = re.compile(r"([\\`*<>|~$&]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_]))")
# Openings of a line that would make it a heading, a list or a rule.
_OPENING = re.compile(r"^(\d*)([#+=.)-])(?=\s|[#+=-]|$)")


def write_page(page: Page, folder: Path, *, with_files: bool = True) -> Path:
    """Write a page as report.html, whole or as it was before, and its figures as figures/SLUG.png for use elsewhere.

    Args:
        page: What to write.
        folder: Where to.
        with_files: Leave the folder of figures as it is if false.

    Raises:
        FedpcsError: A file cannot be written.
    """
    drawn = draw_all(page.drawings, with_files=with_files)
    figures, report = folder / FIGURES, folder / REPORT
    with disk_errors(folder):
        files = {f"{one.slug}.png": one.png for one in drawn if one.png}
        (figures if files else folder).mkdir(parents=True, exist_ok=True)
        for name, png in files.items():
            write_whole(figures / name, png)
        for path in figures.glob("*.png") if with_files else ():  # an earlier page's figures are not this one's
            if path.name not in files:
                path.unlink(missing_ok=True)
    write_text(report, _as_html(page, drawn))
    return report


def as_html(page: Page) -> str:
    """Return the page as HTML."""
    return _as_html(page, draw_all(page.drawings, with_files=False))


def as_markdown(page: Page, *, figures: str = FIGURES, level: int = 2) -> str:
    """Return a page as Markdown; nothing is drawn, and figures are links to what `write_page` wrote.

    Args:
        page: What to show.
        figures: The figures' folder, as seen from where the text will be.
        level: How many # its title has.
    """
    environment = _environment(autoescape=False)
    environment.filters |= {"line": _line, "block": _block, "fenced": _fenced}
    links = [(one, f"{figures}/{slug}.png") for one, slug in zip(page.drawings, slugs(page.drawings), strict=True)]
    text = environment.get_template("page.md.j2").render(page=page, links=links, title="#" * level)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _as_html(page: Page, drawn: Sequence[Drawn]) -> str:
    samplers = [row[k] for table in page.tables for row in table.rows for k in table.sampler_columns]
    styles = line_styles(samplers)
    template = _environment(autoescape=True).get_template("page.html.j2")
    return template.render(page=page, figures=drawn, signs=_SIGNS, styles=styles)


def _environment(*, autoescape: bool) -> Environment:
    return Environment(
        loader=PackageLoader("fedpcs.report", "templates"),
        autoescape=autoescape,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _line(text: str) -> str:
    """Return text on one line, nothing in it read as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _block(text: str) -> str:
    """Return text as a paragraph, its beginning not read as a heading or a list either."""
    return _OPENING.sub(r"\1\\\2", _line(text))


def _fenced(command: str) -> str:
    """Return a command as a block of code that nothing in it ends."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", command)), default=0))
    return f"{fence}bash\n{command}\n{fence}"
