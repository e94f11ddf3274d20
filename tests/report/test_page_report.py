"""What an exhibit's page promises: all it holds and nothing else, readable alone, the same bytes for the same page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pages import VERDICTS, broken_figure, contrast, full_page, read, small_figure

from fedpcs.errors import FedpcsError
from fedpcs.report.drawing import slugs
from fedpcs.report.page import Drawing, NothingToDraw, Page
from fedpcs.report.render import as_html, write_page

SCRIPT = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def html() -> str:
    return as_html(full_page())


def test_every_cell_of_every_table_is_on_the_page_in_its_place(html: str) -> None:
    wanted = [list(row) for table in full_page().tables for row in (table.headings, *table.rows)]
    assert read(html).rows == wanted


def test_bold_cells_are_bold_and_no_other(html: str) -> None:
    assert read(html).bold == ["80.5 %", "2.25"]


def test_cells_carry_their_heading_for_narrow_screens(html: str) -> None:
    headings = [value for tag, name, value in read(html).attributes if (tag, name) == ("td", "data-heading")]
    assert headings == ["accuracy", "ε spent"] * 9 + ["b"]


def test_sections_stand_in_their_order(html: str) -> None:
    assert read(html).headings == [
        "Smaller here than in the paper",
        "What the paper says, and what was found",
        "Accuracy",
        "Second table",
        "Figures",
        "Privacy: what is promised, and what was read in clear",
        "How to run it again",
        "Settings",
        "What it ran on",
    ]


def test_a_page_with_nothing_in_it_has_no_sections() -> None:
    reader = read(as_html(Page("empty", "The title", "The headline", "")))
    assert reader.headings == []
    assert not {"ul", "dl", "table", "figure", "pre", "section", "div"} & set(reader.tags)
    assert "The headline" in reader.text


def test_a_verdict_is_told_in_words_and_not_by_colour_alone(html: str) -> None:
    for verdict, sign in zip(VERDICTS, "✓✗◐?", strict=True):
        assert re.search(
            f'class="verdict {verdict.replace(" ", "-")}"><span aria-hidden="true">{re.escape(sign)}', html
        )
        assert f"{sign} {verdict}" in read(html).text


def test_all_that_a_page_holds_is_escaped() -> None:
    reader = read(as_html(full_page(SCRIPT)))
    assert "script" not in reader.tags
    assert reader.text.count(SCRIPT) == 58  # the page has 57 marked strings, and its title is shown twice
    assert "no <such> trial" in reader.text


def test_no_attribute_ends_where_its_value_says_so() -> None:
    reader = read(as_html(full_page('" onclick="alert(1)')))
    assert not [name for _, name, _ in reader.attributes if name.startswith("on")]


def test_the_page_asks_for_nothing_from_outside_and_runs_nothing(html: str) -> None:
    reader = read(html)
    sources = [value for _, name, value in reader.attributes if name in ("src", "srcset", "href", "data", "action")]
    assert len(sources) == 1
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(reader.tags)
    assert "url(" not in reader.style
    assert "@import" not in reader.style


def colours(style: str) -> dict[str, dict[str, str]]:
    """Return the page's named colours, by day and by night."""
    day, night = style.split("@media (prefers-color-scheme: dark)", 1)
    found = {}
    for name, rules in (("light", day), ("dark", night)):
        pairs = re.findall(r"(--[a-z-]+): #([0-9a-fA-F]{3,6});", rules)
        found[name] = {key: "#" + (value if len(value) == 6 else "".join(2 * v for v in value)) for key, value in pairs}
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_of_the_page_are_read_on_what_is_behind_them(html: str, scheme: str) -> None:
    style = read(html).style
    named = colours(style)[scheme]
    assert set(named) == set(re.findall(r"var\((--[a-z-]+)\)", style)) == set(colours(style)["light"])
    boxes = {"--ink": ("--ground", "--box", "--promise-box", "--warning-box", "--part-box")}
    boxes |= dict.fromkeys(("--soft", "--softer"), ("--ground",))
    boxes |= {word: (f"{word}-box",) for word in ("--agrees", "--differs", "--part", "--unsaid")}
    for word, grounds in boxes.items():
        assert min(contrast(named[word], named[ground]) for ground in grounds) >= 4.5


def test_a_figure_that_cannot_be_drawn_says_why_and_costs_nothing_else(html: str) -> None:
    def nothing() -> Figure:
        raise NothingToDraw("No round has been evaluated yet.")

    text = read(html).text
    assert "A broken one. This figure could not be drawn (ValueError: no <such> trial)." in text
    assert "A topic" in text
    only = read(as_html(full_page(drawings=(Drawing("Empty", nothing),)))).text
    assert "Empty. No round has been evaluated yet." in only


def test_equal_pages_give_equal_bytes(html: str, tmp_path: Path) -> None:
    assert as_html(full_page()) == html
    first, second = (write_page(full_page(), tmp_path / name) for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes() == html.encode()
    figures = [path.parent / "figures" / "a-topic.png" for path in (first, second)]
    assert figures[0].read_bytes() == figures[1].read_bytes()


def test_writing_leaves_the_page_and_the_figures_that_could_be_drawn(tmp_path: Path) -> None:
    report = write_page(full_page(), tmp_path / "deep" / "folder")
    assert report == tmp_path / "deep" / "folder" / "report.html"
    names = sorted(str(path.relative_to(report.parent)) for path in report.parent.rglob("*") if path.is_file())
    assert names == ["figures/a-topic.png", "report.html"]
    assert (report.parent / "figures" / "a-topic.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_that_can_no_longer_be_drawn_leaves_no_old_file(tmp_path: Path) -> None:
    write_page(full_page(), tmp_path)
    write_page(full_page(drawings=(Drawing("A topic", broken_figure),)), tmp_path)
    assert list((tmp_path / "figures").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(FedpcsError, match="cannot be written"):
        write_page(full_page(drawings=()), tmp_path / "taken")


def test_file_names_are_plain_and_differ() -> None:
    drawings = [Drawing(topic, small_figure) for topic in ("Accuracy, ε", "accuracy & ε", "../../etc", "Ω", "été")]
    assert slugs(drawings) == ["accuracy-epsilon", "accuracy-epsilon-2", "etc", "figure", "ete"]
