"""A page as Markdown, for docs: its tables, findings and commands as GitHub shows them, its figures as links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from fedpcs.report.page import Page, Table
from fedpcs.report.page_figures import slugs

# Characters that would be read as markup; _ only where it does not stand inside a word, as in num_clients, and ] only
# where a link would follow it: an interval [0.1, 0.2] stays as it is.
_MARKUP = re.compile(r"([\\`*<>|~$&]|\](?=[(\[:])|(?<![^\W_])_|_(?![^\W_]))")
# Openings of a line that would make it a heading, a list or a rule.
_OPENING = re.compile(r"^(\d*)([#+=.)-])(?=\s|[#+=-]|$)")


def as_markdown(page: Page, *, figures: str = "figures", level: int = 2) -> str:
    """Return a page as Markdown; nothing is drawn, and figures are links to what `write_page` wrote.

    Args:
        page: What to show.
        figures: The figures' folder, as seen from where the text will be.
        level: How many # its title has.
    """
    deeper = "#" * (level + 1)
    blocks = [f"{'#' * level} {_line(page.title)}", f"**{_line(page.headline)}**", _block(page.facts)]
    blocks += [f"> **Note:** {_line(words)}" for words in page.warnings]
    blocks += _section(f"{deeper} {_line(page.shrunk_heading)}", _list(page.shrunk))
    findings = [f"**{one.verdict}**: {_line(one.claim)} *Found:* {_line(one.found)}" for one in page.findings]
    blocks += _section(f"{deeper} {_line(page.claims_heading)}", _items(findings))
    for table in page.tables:
        blocks += [f"{deeper} {_line(table.title)}", _table(table), _meanings(table), _block(table.note)]
    links = [
        f"![{_line(drawing.topic)}]({figures}/{slug}.png)"
        for drawing, slug in zip(page.drawings, slugs(page.drawings), strict=True)
    ]
    blocks += _section(f"{deeper} Figures", "\n\n".join(links))
    blocks += _section(f"{deeper} Privacy", _list(page.privacy))
    blocks += _section(f"{deeper} How to run it again", "\n\n".join(_commands(page)))
    made = ", ".join(f"{_line(name)} {_line(value)}" for name, value in page.provenance.items())
    blocks += _section(f"{deeper} Made with", made)
    return "\n\n".join(block for block in blocks if block) + "\n"


def _section(heading: str, body: str) -> list[str]:
    return [heading, body] if body else []


def _line(words: str) -> str:
    """Return words on one line, nothing in them read as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(words.split()))


def _block(words: str) -> str:
    """Return words as a paragraph, its beginning not read as a heading or a list either."""
    return _OPENING.sub(r"\1\\\2", _line(words))


def _list(sentences: Iterable[str]) -> str:
    return _items(map(_block, sentences))


def _items(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _table(table: Table) -> str:
    rows = [
        [f"**{_line(cell)}**" if (i, k) in table.bold and cell.strip() else _line(cell) for k, cell in enumerate(row)]
        for i, row in enumerate(table.rows)
    ]
    lines = [[_line(heading) for heading in table.headings], ["---"] * len(table.headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _meanings(table: Table) -> str:
    return _items(f"*{_line(heading)}*: {_line(meaning)}" for heading, meaning in table.meanings.items())


def _commands(page: Page) -> Iterator[str]:
    for command, meaning in page.commands:
        longest = max((len(run) for run in re.findall("`+", command)), default=0)
        fence = "`" * max(3, longest + 1)
        yield "\n\n".join(filter(None, (_block(meaning), f"{fence}bash\n{command}\n{fence}")))
