"""A figure on a web page: its words as text that any screen can set, its drawing as SVG inside the page."""

from __future__ import annotations

import base64
import io
import textwrap
from dataclasses import dataclass

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedpcs.errors import FedpcsError
from fedpcs.report.style import caption

# Two stand side by side on a desktop; on a phone's width letters are still read.
WIDTH_INCHES = 4.6
_CAPTION_LETTERS = 48


class NothingToDraw(FedpcsError):
    """A run's files hold nothing for a figure; the message says why, in a sentence."""


@dataclass(frozen=True)
class Picture:
    """A figure taken apart.

    Attributes:
        title: What it shows.
        note: Small print.
        source: The drawing, as a data URI.
    """

    title: str
    note: str
    source: str


def picture_of(figure: Figure) -> Picture:
    """Take a figure's words out of its drawing, and the drawing to the page's width."""
    words = figure.get_suptitle(), figure.get_supxlabel()
    title, note = (text.replace("\n", " ") for text in words)
    for text in [text for text in figure.texts if text.get_text() in words]:
        text.set_visible(False)
        text.set_in_layout(False)
    for axes in figure.axes:
        _wrap_caption(axes)
    figure.set_size_inches(WIDTH_INCHES, figure.get_size_inches()[1])
    return Picture(title, note, f"data:image/svg+xml;base64,{base64.b64encode(as_svg(figure)).decode()}")


def _wrap_caption(axes: Axes) -> None:
    """Break the words above a panel so that they fit into its share of the page's width."""
    words, place = axes.get_title(loc="left"), axes.get_subplotspec()
    if words and place is not None:
        width = _CAPTION_LETTERS // place.get_gridspec().ncols
        caption(axes, textwrap.fill(words.replace("\n", " "), width))


def as_svg(figure: Figure) -> bytes:
    """Return a figure as SVG, equal figures as equal bytes: no date, and names that do not change."""
    stream = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "fedpcs"}):
        figure.savefig(stream, format="svg", facecolor="white", metadata={"Date": None})
    return stream.getvalue()
