"""One sampler, one colour and one stroke, in every figure and table of every page; told apart and read by all eyes."""

import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex
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
GROUND = "#14171a"  # of the dark page
# What eyes without red or green cones make of linear RGB: Machado, Oliveira and Fernandes 2009, severity 1.
BLINDNESS = (
    np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
    np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]),
)
# invert(1) hue-rotate(180deg), as CSS has it (Filter Effects Module 1): what a dark page makes of a figure.
TURNED = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])


def by_night(colour: str) -> str:
    share = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    return str(to_hex((TURNED @ (1.0 - share)).clip(0.0, 1.0)))


def seen_as(colour: str, blindness: np.ndarray | None = None) -> np.ndarray:
    """A colour's place in CIELAB (D65), where distances are what eyes make of them."""
    share = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    if blindness is not None:
        linear = (blindness @ linear).clip(0.0, 1.0)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in to_xyz @ linear / [0.9505, 1.0, 1.0888])
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


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


@pytest.mark.parametrize("turned", [str, by_night], ids=["light", "dark"])
def test_samplers_are_told_apart_by_eyes_blind_to_red_or_green_too(turned):
    found = [(turned(one.colour), one.is_hollow) for one in line_styles(SAMPLERS).values()]
    for (one, is_ring), (other, is_other_ring) in itertools.combinations(found, 2):
        assert np.linalg.norm(seen_as(one) - seen_as(other)) > 15.0
        if is_ring == is_other_ring:
            for blindness in BLINDNESS:
                assert np.linalg.norm(seen_as(one, blindness) - seen_as(other, blindness)) > 9.0


def test_letters_are_read_by_day_and_by_night():
    letters = {one.colour for one in line_styles(f"sampler {k}" for k in range(9)).values()}
    letters |= {one.colour for one in line_styles(SAMPLERS).values()} | {style.INK, style.GREY, style.BLUE}
    letters |= {palette.DARK_VERMILION, style.DARK_ORANGE}
    assert min(contrast(colour.lower(), "#ffffff") for colour in letters) >= 4.5
    assert min(contrast(by_night(colour), GROUND) for colour in letters) >= 4.5


def test_a_sampler_looks_the_same_whoever_stands_beside_it():
    assert line_styles(["delta"])["delta"] == line_styles(["oort", "other", "delta"])["delta"]
    strangers = line_styles([f"stranger {k}" for k in range(13)])
    assert len({(one.colour, one.stroke) for one in strangers.values()}) == 13


def test_names_are_cut_only_where_they_still_differ():
    (one,) = line_styles(["a sampler that has a rather long name indeed"]).values()
    assert one.label == "a sampler that has a rather lon…"
    alike = [f"a sampler that has a rather long name {k}" for k in range(2)]
    assert [one.label for one in line_styles(alike).values()] == alike
