"""A page as Markdown: every cell in its column, links that match files, and no word read as markup."""

from __future__ import annotations

import re
from pathlib import Path

from pages import VERDICTS, full_page

from fedpcs.report.page import Page, Table
from fedpcs.report.render import as_markdown, write_page

NASTY = r"a|b <b>c</b> [d](http://e) `f` *g* _h_ $i$ ~j~ &amp; \| k_l"


def rows(markdown: str) -> list[list[str]]:
    """Return the cells of every table as GitHub would show them, bold kept as **."""
    found = []
    for line in markdown.splitlines():
        if line.startswith("| ") and not line.startswith("| ---"):
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
            found.append([re.sub(r"\\(\W|_)", r"\1", cell.strip()) for cell in cells])
    return found


def test_every_cell_is_in_its_column_and_bold_ones_are_bold() -> None:
    table = full_page().tables[0]
    wanted = [list(row) for row in (table.headings, *table.rows)]
    wanted[1][1], wanted[3][2] = "**80.5 %**", "**2.25**"
    assert rows(as_markdown(full_page(tables=(table,)))) == wanted


def test_no_cell_breaks_its_table() -> None:
    table = Table("Nasty", ("a", "b"), ((NASTY, "two\nlines"),))
    assert rows(as_markdown(Page("n", "T", "H", "", tables=(table,)))) == [["a", "b"], [NASTY, "two lines"]]


def test_words_are_words_and_not_markup() -> None:
    text = as_markdown(Page("n", NASTY, NASTY, "# no heading", privacy=("- no list", "1. no list", "-3 is a number")))
    assert not re.search(r"(?<!\\)[<>$~`|]", text)
    assert "](" not in text.replace("\\](", "")
    assert "k_l" in text  # an underscore inside a word is left alone
    assert "\n\\# no heading\n" in text
    assert "- \\- no list\n- 1\\. no list\n- -3 is a number\n" in text


def test_findings_and_commands_and_notes_are_told() -> None:
    text = as_markdown(full_page())
    for k, verdict in enumerate(VERDICTS):
        assert f"- **{verdict}**: Claim {k} *Found:* Found {k}\n" in text
    assert "Runs it again\n\n```bash\nfedpcs reproduce everything\n```\n" in text
    for words in ("One cell is missing", "10 rounds where the paper has 500", "Bold: clear of zero", "on test records"):
        assert words in text


def test_an_interval_is_left_as_it_is() -> None:
    assert "between [0.1, 0.2] and [0.3, 0.4]." in as_markdown(
        Page("n", "T", "H", "between [0.1, 0.2] and [0.3, 0.4].")
    )


def test_a_command_cannot_leave_its_fence() -> None:
    text = as_markdown(Page("n", "T", "H", "", commands=(("echo ```", ""),)))
    assert "````bash\necho ```\n````\n" in text


def test_links_lead_to_the_files_that_writing_makes(tmp_path: Path) -> None:
    write_page(full_page(), tmp_path)
    links = re.findall(r"!\[.*?\]\((.*?)\)", as_markdown(full_page()))
    assert links == ["figures/a-topic.png", "figures/a-broken-one.png"]
    assert (tmp_path / links[0]).exists()
    assert "](../img/a-topic.png)" in as_markdown(full_page(), figures="../img")


def test_headings_go_as_deep_as_told_and_empty_sections_vanish() -> None:
    assert as_markdown(Page("n", "T", "H", "F"), level=3) == "### T\n\n**H**\n\nF\n"
    levels = {line.split()[0] for line in as_markdown(full_page()).splitlines() if line.startswith("#")}
    assert levels == {"##", "###"}


def test_equal_pages_give_equal_text() -> None:
    assert as_markdown(full_page()) == as_markdown(full_page())
