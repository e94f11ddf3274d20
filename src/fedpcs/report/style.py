"""How fedpcs figures look: colour-blind-safe, legends beside the panel, no pyplot and none of its global state.

So drawing is safe in a server, a thread or someone else's notebook.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput

# Okabe and Ito's palette: told apart with any common colour blindness.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
DARK_ORANGE = "#946200"
INK, GREY, PALE = "#222222", "#6E6E6E", "#C9C9C9"
GRID = "#DFDFDF"
DASHES, DOTS = (0, (5, 2)), (0, (1, 1.4))

_DOTS_PER_INCH = 150
_WIDTH_INCHES = 8.0
_FEW_ROUNDS = 12
# Letters that fit above a figure, below it, and above a panel on a page.
_TITLE_LETTERS, _NOTE_LETTERS, _CAPTION_LETTERS = 76, 118, 48
_SHORT_NAME = 22  # letters, of which two names stand side by side on a page


def new_figure(
    title: str, *, note: str = "", height_inches: float = 4.8, num_rows: int = 1, num_columns: int = 1
) -> tuple[Figure, list[Axes]]:
    """Return an empty figure and its panels: what it shows as its title, small print below."""
    figure = Figure(figsize=(_WIDTH_INCHES, height_inches), dpi=_DOTS_PER_INCH, layout="constrained")
    heading = textwrap.fill(_as_written(title), _TITLE_LETTERS)
    figure.suptitle(heading, x=0.012, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    if note:
        text = textwrap.fill(_as_written(note), _NOTE_LETTERS, break_long_words=False, break_on_hyphens=False)
        figure.supxlabel(text, x=0.012, ha="left", fontsize=8.5, color=GREY)
    axes = list(figure.subplots(num_rows, num_columns, squeeze=False).ravel())
    for panel in axes:
        _tidy(panel)
    return figure, axes


def _as_written(text: str) -> str:
    """Return text that Matplotlib takes for text: a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def _tidy(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GREY)
    axes.tick_params(colors=INK, labelsize=9)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def caption(axes: Axes, text: str) -> None:
    """Write what a panel shows above it, lighter than the figure's title."""
    place = axes.get_subplotspec()
    width = _CAPTION_LETTERS // (1 if place is None else place.get_gridspec().ncols)
    axes.set_title(textwrap.fill(text, width), loc="left", fontsize=9.5, color=GREY)


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


def percent_ticks(axis: Axis) -> None:
    """Write an axis's shares in per cent."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.6g}\N{NO-BREAK SPACE}%"))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Mark a log scale's axis from `low` to `high` by numbers in full: as many of them as have room."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 500.0 else (1.0,)))
    axis.set_minor_formatter(NullFormatter())
    plain_ticks(axis)


def legend(axes: Axes, handles: Sequence[Line2D] | None = None) -> None:
    """Name a panel's lines below it, those with a label, the highest at its end first."""
    shown = list(axes.get_lines() if handles is None else handles)
    named = {str(line.get_label()): line for line in shown if not str(line.get_label()).startswith("_")}
    if handles is None:
        named = dict(sorted(named.items(), key=lambda item: -_last(item[1])))
    axes.legend(
        list(named.values()),
        list(named),
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=2 if max(map(len, named), default=0) <= _SHORT_NAME else 1,
        frameon=False,
        fontsize=8.5,
        labelcolor="linecolor",
        borderaxespad=4.5,  # in letters: below the ticks and what they are
    )


def _last(line: Line2D) -> float:
    values = np.asarray(line.get_ydata(), dtype=float)
    known = values[np.isfinite(values)]
    return float(known[-1]) if known.size else float("-inf")


def as_png(figure: Figure) -> bytes:
    """Return a figure as PNG on white."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH, facecolor="white")
    return stream.getvalue()


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG.

    Raises:
        InvalidInput: The folder cannot be written to.
    """
    try:
        path.write_bytes(as_png(figure))
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be written: {error.strerror}. Give another folder.") from None
