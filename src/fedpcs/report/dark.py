"""A figure for dark pages: the colours of `figure_style`, each exchanged for one that is read on a dark ground."""

from __future__ import annotations

import re

GROUND = "#14171a"
# Every colour a figure of ours is drawn with, as matplotlib writes it, and its like on `GROUND`: letters with a
# contrast of at least 4.5, lines of at least 3 (WCAG 2.2, criteria 1.4.3 and 1.4.11); the grid is no information.
DARK: dict[str, str] = {
    "#ffffff": GROUND,
    "#ececec": "#2a2f35",  # grid
    "#c9c9c9": "#666d76",  # PALE
    "#6e6e6e": "#a2a9b1",  # GREY
    "#222222": "#e4e6e8",  # INK
    "#000000": "#e4e6e8",
    "#0072b2": "#56b4e9",  # BLUE
    "#e69f00": "#f0c24a",  # ORANGE
    "#946200": "#c99a5b",  # DARK_ORANGE
    "#009e73": "#35c79a",  # GREEN
    "#007a59": "#35c79a",  # the same, darker for letters
    "#d55e00": "#ff8552",  # VERMILION
    "#b84f00": "#ff8552",  # the same, darker for letters
    "#a3527f": "#e08dbd",  # Okabe and Ito's purple, darker for letters
    "#9b1c31": "#ff6b7d",  # crimson
    "#5a3fc0": "#a99bff",  # violet
}

_COLOUR = re.compile(rb"((?:fill|stroke|stop-color): ?)(#[0-9a-fA-F]{3,8})\b")
_IMAGE = re.compile(rb"<image\b")
_ROOT = re.compile(rb"<svg\b")


def as_dark(svg: bytes) -> bytes:
    """Return a figure's SVG in the colours of a dark page.

    A figure with a colour that `DARK` does not know, or with pixels, comes back as it is: a light picture on a dark
    page is read; one of which only the letters were turned may not be.

    Example:
        >>> as_dark(b'<svg><path style="fill: #ffffff; stroke: #0072b2"/></svg>')
        b'<svg fill="#e4e6e8"><path style="fill: #14171a; stroke: #56b4e9"/></svg>'
        >>> as_dark(b'<svg><path style="fill: #123456"/></svg>')
        b'<svg><path style="fill: #123456"/></svg>'
    """
    used = {match.decode().lower() for _, match in _COLOUR.findall(svg)}
    if _IMAGE.search(svg) or not used <= DARK.keys():
        return svg
    # What is black has no fill of its own in matplotlib's SVG: it takes that of the whole.
    black = DARK["#000000"].encode()
    turned = _COLOUR.sub(lambda found: found[1] + DARK[found[2].decode().lower()].encode(), svg)
    return _ROOT.sub(b'<svg fill="' + black + b'"', turned, count=1)
