"""How fedpcs figures look: white, colour-blind-safe, lines labelled where they end, findings as titles.

Figures are built with matplotlib's objects alone. Nothing here touches pyplot or its global state, so drawing
is safe in a server, a thread or someone else's notebook.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

# Okabe and Ito's palette: told apart with any common colour blindness.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
DARK_ORANGE = "#946200"
INK, GREY, PALE = "#222222", "#6E6E6E", "#C9C9C9"
DASHES = (0, (4, 3))

_DOTS_PER_INCH = 150
_WIDTH_INCHES = 8.0
_LABEL_INCHES = 0.19
# Where labels of lines begin, as a share of the panel's width: their ties must be seen.
_BESIDE = 1.04
_FEW_ROUNDS = 12


@dataclass(frozen=True)
class EndLabel:
    """Words for a line, written where it ends.

    Attributes:
        text: Words; as many lines as they have are kept free.
        height: The line's last value, in data units.
        colour: The line's colour.
    """

    text: str
    height: float
    colour: str


def new_figure(
    title: str,
    *,
    note: str = "",
    height_inches: float = 4.8,
    num_rows: int = 1,
    num_columns: int = 1,
    row_heights: Sequence[float] = (),
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its panels: a finding as its title, small print below.

    Rows are of one height, unless `row_heights` says how high each is in proportion.
    """
    size = (_WIDTH_INCHES, height_inches)
    figure = Figure(figsize=size, dpi=_DOTS_PER_INCH, facecolor="white", layout="constrained")
    figure.suptitle(_as_written(wrapped(title, 76)), x=0.012, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    if note:
        figure.supxlabel(_as_written(wrapped(note, 118)), x=0.012, ha="left", fontsize=8.5, color=GREY)
    heights = list(row_heights) or [1.0] * num_rows
    panels = figure.subplots(len(heights), num_columns, squeeze=False, height_ratios=heights)
    axes = [panel for row in panels for panel in row]
    for panel in axes:
        _tidy(panel)
    return figure, axes


def _as_written(words: str) -> str:
    """Return words that Matplotlib takes for words: a dollar sign begins no formula."""
    return words.replace("$", r"\$")


def wrapped(words: str, width: int) -> str:
    """Break words into as few lines as `width` allows, of like length, so that none holds a single word.

    Example:
        >>> wrapped("one two three four", 15).splitlines()
        ['one two', 'three four']
    """
    num_lines = len(textwrap.wrap(words, width))
    while width > 1 and len(textwrap.wrap(words, width - 1, break_long_words=False)) <= num_lines:
        width -= 1
    return textwrap.fill(words, width, break_long_words=False)


def _tidy(axes: Axes) -> None:
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    axes.grid(axis="y", color="#ECECEC", linewidth=0.8)
    axes.set_axisbelow(True)


def caption(axes: Axes, words: str) -> None:
    """Write what a panel shows above it, lighter than the figure's title."""
    axes.set_title(words, loc="left", fontsize=9.5, color=GREY)


def round_axis(axes: Axes, num_rounds: int, *, words: str = "round") -> None:
    """Make x the rounds 0…T, whole numbers only."""
    axes.set_xlim(-0.02 * num_rounds, (num_rounds - 1) + 0.02 * num_rounds)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axes.set_xlabel(words, color=INK)


def marker(num_rounds: int) -> str:
    """Return the marker of a path: dots where a handful of rounds would leave a bare stroke."""
    return "o" if num_rounds <= _FEW_ROUNDS else ""


def span(axes: Axes, values: FloatArray, *, from_zero: bool = False) -> None:
    """Fit y to `values`, never so tight that rounding errors look like movement."""
    low, high = float(values.min()), float(values.max())
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = max(0.06 * (high - low), 0.01 * max(abs(low), abs(high)), 1e-6)
    if from_zero and high == 0.0:
        high = 1.0
    axes.set_ylim(low if from_zero and low == 0.0 else low - room, high + room)
    plain_ticks(axes.yaxis)


def plain_ticks(axis: Axis) -> None:
    """Write an axis's numbers in full, large ones in millions: no offsets, no 1e+08."""

    def written(value: float, _: int) -> str:
        is_large = abs(value) >= 10_000_000.0
        number = f"{value / 1e6:,.6g} million" if is_large else f"{round(value, 9):,.7g}"
        return number.replace("-", "−")

    axis.set_major_formatter(FuncFormatter(written))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Mark a log scale's axis from `low` to `high` by numbers in full: as many of them as have room."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 500.0 else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
    plain_ticks(axis)


def label_ends(axes: Axes, labels: Sequence[EndLabel], *, panel_inches: float = 3.4) -> None:
    """Write labels right of the panel, each as near its line's end as its neighbours allow, and tied to it."""
    low, high = axes.get_ylim()
    num_lines = max((label.text.count("\n") + 1 for label in labels), default=1)
    gap = (high - low) * num_lines * _LABEL_INCHES / panel_inches
    ordered = sorted(labels, key=lambda label: label.height)
    heights = spread_out(np.array([label.height for label in ordered]), gap, low, high)
    end = min(float(axes.dataLim.x1), axes.get_xlim()[1])
    for label, height in zip(ordered, heights, strict=True):
        axes.annotate(
            label.text,
            (end, min(max(label.height, low), high)),  # nowhere off the panel: the layout would make room for it
            (_BESIDE, float(height)),
            textcoords=axes.get_yaxis_transform(),
            va="center",
            fontsize=9,
            color=label.colour,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": label.colour,
                "linewidth": 0.7,
                "shrinkA": 1.0,
                "shrinkB": 2.0,
                "relpos": (0.0, 0.5),
            },
        )


def spread_out(heights: FloatArray, gap: float, low: float, high: float) -> FloatArray:
    """Return rising heights at least `gap` apart, moved as little as can be: least squares, within low and high.

    Where there is no room for all, the lowest fall below `low`.

    Example:
        >>> spread_out(np.array([1.0, 1.0, 5.0]), 1.0, 0.0, 5.0).tolist()
        [0.5, 1.5, 5.0]
    """
    # Less k gaps, heights `gap` apart are heights that rise: isotonic regression, by its max-min formula.
    steps = gap * np.arange(heights.size)
    wanted = heights - steps
    each = range(heights.size)
    rising = [max(min(wanted[i : j + 1].mean() for j in each[k:]) for i in each[: k + 1]) for k in each]
    return np.asarray(np.minimum(np.maximum(rising, low), high - gap * (heights.size - 1)) + steps)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG.

    Raises:
        InvalidInput: The folder cannot be written to.
    """
    try:
        figure.savefig(path, format="png", dpi=_DOTS_PER_INCH, facecolor="white")
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}. Give another folder.") from None
