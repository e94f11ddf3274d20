"""Figures as a page needs them: an SVG as a data URI, and a PNG for use elsewhere.

A page shows the SVG on its own ground; on a dark page one CSS filter turns light and dark and keeps the hues.
"""

from __future__ import annotations

import base64
import io
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.figure import Figure

from fedpcs.report import style
from fedpcs.report.page import Drawing, NothingToDraw

# Two stand side by side on a desktop; on a phone's width letters are still read.
_WIDTH_INCHES = 4.6
_NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))


@dataclass(frozen=True)
class Drawn:
    """A figure's place on the page.

    Attributes:
        topic: What it shows.
        place: Under which heading it stands; empty for none.
        slug: Its file's name, without ending.
        source: The drawing as a data URI; empty where it could not be drawn.
        text: Small print, or why there is no drawing.
        png: The whole figure with its title; empty where it could not be drawn, or is not wanted.
    """

    topic: str
    place: str
    slug: str
    source: str
    text: str
    png: bytes = b""


def draw_all(drawings: Sequence[Drawing], *, with_files: bool) -> list[Drawn]:
    """Draw every figure on its own: one that cannot be drawn does not take the others with it."""
    return [_drawn(one, slug, with_files) for one, slug in zip(drawings, slugs(drawings), strict=True)]


def slugs(drawings: Sequence[Drawing]) -> list[str]:
    """Return a file name for every drawing, without ending: its topic and place, numbered where it is not the first.

    Example:
        >>> slugs([Drawing("Accuracy & ε", Figure), Drawing("accuracy, ε", Figure), Drawing("…", Figure)])
        ['accuracy-epsilon', 'accuracy-epsilon-2', 'figure']
    """
    found: list[str] = []
    for drawing in drawings:
        slug, number = _slug(f"{drawing.topic} {drawing.place}"), 1
        name = slug
        while name in found:
            number += 1
            name = f"{slug}-{number}"
        found.append(name)
    return found


def _slug(topic: str) -> str:
    text = topic.lower().replace("ε", "epsilon").replace("ρ", "rho").replace("τ", "tau").replace("φ", "phi")
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "figure"


def _drawn(drawing: Drawing, slug: str, with_files: bool) -> Drawn:
    try:
        figure = drawing.draw()
        png = style.as_png(figure) if with_files else b""  # first: the page takes the texts out
        source, note = _as_source(figure)
        return Drawn(drawing.topic, drawing.place, slug, source, note, png)
    except NothingToDraw as reason:
        return Drawn(drawing.topic, drawing.place, slug, "", str(reason))
    except Exception as error:  # figures are for people; no mistake in one may cost the page
        text = f"This figure could not be drawn ({type(error).__name__}: {error})."
        return Drawn(drawing.topic, drawing.place, slug, "", text)


def _as_source(figure: Figure) -> tuple[str, str]:
    """Return the drawing without its title and note, at the page's width, and the note."""
    texts = figure.get_suptitle(), figure.get_supxlabel()
    for text in [text for text in figure.texts if text.get_text() in texts]:
        text.set_visible(False)
        text.set_in_layout(False)
    figure.set_size_inches(_WIDTH_INCHES, figure.get_size_inches()[1])
    return f"data:image/svg+xml;base64,{base64.b64encode(as_svg(figure)).decode()}", texts[1].replace("\n", " ")


def as_svg(figure: Figure) -> bytes:
    """Return a figure as SVG without a ground, equal figures as equal bytes."""
    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "fedpcs"}):
        figure.savefig(stream, format="svg", facecolor="none", metadata=_NO_METADATA)
    return stream.getvalue()
