"""Figures on dark pages are read: contrast by number, nothing left in a light page's colours, nothing half turned."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from pages import contrast, small_figure

from fedpcs.report import palette as colours
from fedpcs.report import style
from fedpcs.report.dark import DARK, GROUND, as_dark
from fedpcs.report.svg import as_svg

LETTERS = ("INK", "GREY", "BLUE", "ORANGE", "DARK_ORANGE", "GREEN", "VERMILION")


def palette() -> dict[str, str]:
    """Return every colour the modules name."""
    named = {**vars(style), **vars(colours)}
    return {name: v.lower() for name, v in named.items() if isinstance(v, str) and re.fullmatch("#[0-9A-Fa-f]{6}", v)}


def test_contrast_is_the_standard_s() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the standard's best-known near miss


def test_every_colour_of_the_house_has_its_like() -> None:
    assert len(palette()) >= 10
    assert {*palette().values(), "#ffffff", "#ececec", "#000000"} == set(DARK)


def test_letters_and_lines_are_read_on_the_dark_ground() -> None:
    letters = {DARK[palette()[name]] for name in (*LETTERS, "DARK_GREEN", "DARK_VERMILION", "PURPLE")}
    assert min(contrast(colour, GROUND) for colour in letters | {DARK["#000000"]}) >= 4.5
    assert contrast(DARK[palette()["PALE"]], GROUND) >= 3.0


def test_letters_are_read_on_white() -> None:
    pens = colours.pens([f"sampler {k}" for k in range(9)])
    assert min(contrast(pen.colour, "#ffffff") for pen in pens.values()) >= 4.5


def test_colours_that_differ_still_differ() -> None:
    same = {frozenset(("#009e73", "#007a59")), frozenset(("#d55e00", "#b84f00")), frozenset(("#222222", "#000000"))}
    for one, other in itertools.combinations(DARK, 2):
        assert (DARK[one] != DARK[other]) or frozenset((one, other)) in same


def styles(svg: bytes) -> list[str]:
    return [element.get("style", "") for element in ElementTree.fromstring(svg).iter()]


def test_only_colours_change() -> None:
    light = as_svg(small_figure())
    dark = as_dark(light)
    unpainted = re.compile(rb"#[0-9a-f]{6}\b")
    root = f' fill="{DARK["#000000"]}"'.encode()
    assert unpainted.sub(b"", dark.replace(root, b"", 1)) == unpainted.sub(b"", light)
    assert styles(dark) != styles(light)
    assert not {colour for one in styles(dark) for colour in re.findall("#[0-9a-f]{6}", one)} - set(DARK.values())


def test_black_letters_are_not_lost() -> None:
    figure = Figure(facecolor="white")
    figure.text(0.5, 0.5, "black", color="black")
    root = ElementTree.fromstring(as_dark(as_svg(figure)))
    assert root.get("fill") == DARK["#000000"]  # matplotlib writes no colour for black letters


@pytest.mark.parametrize("kind", ["another colour", "pixels"])
def test_what_cannot_be_turned_whole_is_left_whole(kind: str) -> None:
    figure = small_figure()
    if kind == "pixels":
        figure.axes[0].imshow(np.eye(3))
    else:
        figure.axes[0].plot([0, 1], [1, 0], color="#123456")
    light = as_svg(figure)
    assert as_dark(light) == light
