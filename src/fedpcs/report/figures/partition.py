"""Who holds what: a heat map of records by client and class (paper, Fig. 2)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from fedpcs._validate import FloatArray
from fedpcs.errors import InvalidInput
from fedpcs.learning.partition import IntArray
from fedpcs.report import style

# From one record up; cells of none stay white, so that what a client lacks is seen at once.
_COLOURS = LinearSegmentedColormap.from_list("records", ["#DCEBF6", "#8FC3E4", style.BLUE, "#06223A"])
# As many clients as the panel has dots; of more, evenly spaced ones are shown.
_MOST_SHOWN_CLIENTS = 1_000
# Characters that fit side by side in the panel, and classes that fit above one another as numbers.
_MOST_CHARACTERS, _MOST_WRITTEN_CLASSES = 100, 20
_ROOMY_CHARACTERS = 45  # with more of them in a row, type is smaller
_INCHES_PER_CLASS, _LEAST_INCHES, _MOST_INCHES = 0.22, 2.0, 5.4
_ROOM_AROUND_INCHES, _SCALE_INCHES = 1.7, 0.17


def draw_partition(counts: IntArray, words: str, path: Path) -> Path:
    """Draw how many records of each class each client holds, and write it as PNG.

    Args:
        counts: (clients, classes) numbers of records, as from `fedpcs.learning.partition.label_counts`.
        words: What was split and how, such as "Fashion-MNIST, Dirichlet(0.5)".
        path: The file to write.

    Returns:
        `path`.

    Raises:
        InvalidInput: `counts` is no table of counts, or the file cannot be written.
    """
    style.save(partition_figure(counts, words), path)
    return path


def partition_figure(counts: IntArray, words: str) -> Figure:
    """Return the heat map: clients from left to right, classes from bottom to top."""
    table = _checked(counts)
    panel_inches = min(max(_INCHES_PER_CLASS * table.shape[1], _LEAST_INCHES), _MOST_INCHES)
    height = panel_inches + _ROOM_AROUND_INCHES
    note = (
        "White: no records. Colour follows the square root of the number, so that small numbers show beside large ones."
    )
    figure, (axes,) = style.new_figure(finding(table), note=note, height_inches=height)
    step = math.ceil(len(table) / _MOST_SHOWN_CLIENTS)
    image = _draw_cells(axes, table[::step], num_clients=len(table))
    shown = "" if step == 1 else f", one shown of every {step}"
    _label_axis(axes.xaxis, f"client{shown}", len(table))
    _label_axis(axes.yaxis, "class", table.shape[1])
    _draw_scale(figure, axes, image, panel_inches)
    style.caption(axes, words)
    return figure


def finding(table: FloatArray) -> str:
    """Return the title: how few classes make up half of a client's records, and how clients differ in size.

    Example:
        >>> finding(np.array([[9.0, 1.0, 0.0], [4.0, 4.0, 4.0]]))
        "1 of 3 classes makes up half of a typical client's records; clients hold 10 to 12 each"
    """
    size = table.sum(axis=1)
    largest_first = -np.sort(-table, axis=1)
    num_classes = 1 + (np.cumsum(largest_first, axis=1) < 0.5 * size[:, None]).sum(axis=1)
    middle = int(np.quantile(num_classes, 0.5, method="inverted_cdf"))
    verb = "makes" if middle == 1 else "make"
    each = f"{size.min():,.0f} to {size.max():,.0f} each" if np.ptp(size) else f"{size[0]:,.0f} each"
    return f"{middle} of {table.shape[1]} classes {verb} up half of a typical client's records; clients hold {each}"


def _checked(counts: IntArray) -> FloatArray:
    table = np.asarray(counts)
    is_counts = table.ndim == 2 and table.size > 0 and np.issubdtype(table.dtype, np.integer)
    if not (is_counts and table.min() >= 0 and table.max() > 0):
        raise InvalidInput(
            "counts must be a table of clients by classes, whole numbers with some above zero, got shape "
            f"{table.shape} of {table.dtype}. Make it with fedpcs.learning.partition.label_counts."
        )
    return table.astype(np.float64)


def _draw_cells(axes: Axes, table: FloatArray, *, num_clients: int) -> AxesImage:
    num_classes, most = table.shape[1], float(table.max())
    norm = PowerNorm(0.5, vmin=1.0 if most > 1.0 else 0.0, vmax=most)
    image = axes.imshow(
        np.ma.masked_equal(table.T, 0.0),
        cmap=_COLOURS,
        norm=norm,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(-0.5, num_clients - 0.5, -0.5, num_classes - 0.5),
    )
    axes.grid(visible=False)
    if num_clients * len(f"{most:,.0f}") <= _MOST_CHARACTERS and num_classes <= _MOST_WRITTEN_CLASSES:
        _write_numbers(axes, table, norm)
    return image


def _write_numbers(axes: Axes, table: FloatArray, norm: PowerNorm) -> None:
    size = 6.5 if len(table) * len(f"{table.max():,.0f}") <= _ROOMY_CHARACTERS else 5.0
    for (client, label), count in np.ndenumerate(table):
        colour = style.PALE if count == 0.0 else "white" if norm(count) > 0.55 else style.INK
        axes.text(client, label, f"{count:,.0f}", ha="center", va="center", fontsize=size, color=colour)


def _label_axis(axis: Axis, words: str, num_cells: int) -> None:
    most_ticks = 20 if num_cells <= 20 else 10
    axis.set_major_locator(MaxNLocator(nbins=most_ticks, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    style.plain_ticks(axis)
    axis.set_label_text(words, color=style.INK)


def _draw_scale(figure: Figure, axes: Axes, image: AxesImage, panel_inches: float) -> None:
    scale = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.05, aspect=panel_inches / _SCALE_INCHES)
    low, high = image.get_clim()
    ticks = MaxNLocator(nbins=6, integer=True).tick_values(low, high)
    scale.set_ticks([low, *(tick for tick in ticks if low < tick <= high)])
    style.plain_ticks(scale.ax.yaxis)
    scale.outline.set_visible(False)
    scale.ax.tick_params(colors=style.INK, labelsize=9)
    scale.set_label("records", color=style.INK)
