"""The figures of an exhibit's page: drawn once, for a light page, a dark one, and as a file of its own."""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from fedpcs.report.dark import as_dark
from fedpcs.report.page import Drawing
from fedpcs.report.svg import NothingToDraw, Picture, as_svg, picture_of

_DOTS_PER_INCH = 150
_NEARLY_ALL = 0.93
_SVG = "data:image/svg+xml;base64,"


@dataclass(frozen=True)
class Drawn:
    """A figure's place on the page.

    Attributes:
        topic: What it is about.
        slug: Its file's name, without ending.
        picture: Its words and its drawing, or None where it could not be drawn.
        dark: Its drawing for a dark page, as a data URI; empty where the light one has to do.
        png: The whole figure, words and all; empty where it could not be drawn.
        instead: Why there is no picture, in a sentence.
    """

    topic: str
    slug: str
    picture: Picture | None = None
    dark: str = ""
    png: bytes = b""
    instead: str = ""


def draw_all(drawings: Sequence[Drawing], *, with_files: bool) -> list[Drawn]:
    """Draw every figure, each on its own: one that cannot be drawn does not take the others with it."""
    return [_drawn(one, slug, with_files) for one, slug in zip(drawings, slugs(drawings), strict=True)]


def slugs(drawings: Sequence[Drawing]) -> list[str]:
    """Return a file name for every drawing, without ending: its topic, numbered where it is not the first of it.

    Example:
        >>> slugs([Drawing("Accuracy & ε", Figure), Drawing("accuracy, ε", Figure), Drawing("…", Figure)])
        ['accuracy-epsilon', 'accuracy-epsilon-2', 'figure']
    """
    found: list[str] = []
    for drawing in drawings:
        slug, number = _slug(drawing.topic), 1
        name = slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.append(name)
    return found


def _slug(topic: str) -> str:
    words = topic.lower().replace("ε", "epsilon").replace("ρ", "rho").replace("τ", "tau").replace("φ", "phi")
    plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "figure"


def _drawn(drawing: Drawing, slug: str, with_files: bool) -> Drawn:
    try:
        figure = drawing.draw()
        png = _as_png(figure) if with_files else b""  # first: the page takes the words out
        picture = _trimmed(picture_of(figure), figure)
        return Drawn(drawing.topic, slug, picture, _dark(picture.source), png)
    except NothingToDraw as reason:
        return Drawn(drawing.topic, slug, instead=f"{reason}")
    except Exception as error:  # figures are for people; no mistake in one may cost the page
        return Drawn(drawing.topic, slug, instead=f"This figure could not be drawn ({type(error).__name__}: {error}).")


def _trimmed(picture: Picture, figure: Figure) -> Picture:
    """Return the picture without the height that square panels, being narrower on a page, leave empty."""
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    if drawn.height > _NEARLY_ALL * height:
        return picture
    figure.set_size_inches(width, drawn.height + 0.2)
    return replace(picture, source=_SVG + base64.b64encode(as_svg(figure)).decode())


def _as_png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH, facecolor="white")
    return stream.getvalue()


def _dark(source: str) -> str:
    light = base64.b64decode(source.removeprefix(_SVG))
    dark = as_dark(light)
    return "" if dark == light else _SVG + base64.b64encode(dark).decode()
