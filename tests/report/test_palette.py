"""One sampler, one colour and one stroke, in every figure and table of every page."""

import re

import pytest
from pages import contrast, read
from test_study_page import configuration, group_of, write_run

from fedpcs.report import palette, style
from fedpcs.report.figures.study import accuracy, design, draws, epsilon, loss, noise, updates
from fedpcs.report.palette import line_styles
from fedpcs.report.render import as_html
from fedpcs.report.study_page import study_page
from fedpcs.sampling import SAMPLERS
from fedpcs.studies.study import read_study

NAMES = sorted(SAMPLERS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run with every sampler there is, its files written by hand."""
    accuracies = {name: [0.5 + 0.01 * k, 0.51, 0.52] for k, name in enumerate(NAMES)}
    return write_run(tmp_path_factory.mktemp("run"), configuration(f"sampling.samplers={NAMES}"), accuracies)


def looks(axes) -> dict[str, tuple[str, bool]]:
    """Return colour, and whether the stroke is solid, of each labelled line."""
    return {str(line.get_label()): (line.get_color(), line.get_linestyle() == "-") for line in axes.get_lines()}


def look(name: str) -> tuple[str, bool]:
    found = line_styles([name])[name]
    return found.colour, not found.is_hollow


@pytest.mark.parametrize("module", [accuracy, loss, draws, design, noise, updates, epsilon], ids=lambda one: one.TOPIC)
def test_a_study_s_figures_have_the_palette_s_colours(made, module):
    for axes in module.draw(group_of(made)).axes:
        drawn = looks(axes)
        assert {name: drawn.get(name) for name in NAMES} == {name: look(name) for name in NAMES}


def test_tables_mark_samplers_as_figures_draw_them(made):
    html = as_html(study_page(read_study(made.store.folder)))
    marks = re.findall(r'<span class="mark" style="border-top: 3px (\w+) (#\w{6})"></span>([\w-]+)', html)
    assert {name for *_, name in marks} == set(NAMES)
    assert {(name, colour, stroke == "solid") for stroke, colour, name in marks} == {(n, *look(n)) for n in NAMES}
    assert read(html).open == []


def test_nine_samplers_have_nine_looks_and_fedpcs_the_strong_one():
    found = line_styles(SAMPLERS)
    assert len({one.colour for one in found.values()}) == 9
    assert all(found["fedpcs"].width > one.width for name, one in found.items() if name != "fedpcs")
    assert [name for name, one in found.items() if one.colour == style.BLUE] == ["fedpcs"]


def test_letters_are_read_on_white():
    letters = {one.colour for one in line_styles(f"sampler {k}" for k in range(9)).values()}
    letters |= {one.colour for one in line_styles(SAMPLERS).values()} | {style.INK, style.GREY, style.BLUE}
    letters |= {palette.DARK_VERMILION, style.DARK_ORANGE}
    assert min(contrast(colour.lower(), "#ffffff") for colour in letters) >= 4.5


def test_a_sampler_looks_the_same_whoever_stands_beside_it():
    assert line_styles(["delta"])["delta"] == line_styles(["oort", "other", "delta"])["delta"]
    strangers = line_styles([f"stranger {k}" for k in range(13)])
    assert len({(one.colour, one.stroke) for one in strangers.values()}) == 13


def test_names_are_cut_only_where_they_still_differ():
    (one,) = line_styles(["a sampler that has a rather long name indeed"]).values()
    assert one.label == "a sampler that has a rather lon…"
    alike = [f"a sampler that has a rather long name {k}" for k in range(2)]
    assert [one.label for one in line_styles(alike).values()] == alike
