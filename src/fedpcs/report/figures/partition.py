"""Who holds what: a heat map of records by client and class (paper, Fig. 2)."""

from __future__ import annotations

import math

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
from fedpcs.trial.config import DataConfig

# From one record up; cells of none stay empty, so that what a client lacks is seen at once.
_COLOURS = LinearSegmentedColormap.from_list("records", ["#DCEBF6", "#8FC3E4", style.BLUE, "#06223A"])
# As many clients as the panel has dots; of more, evenly spaced ones are shown.
_MOST_SHOWN_CLIENTS = 1_000
# Characters that fit side by side in the panel, and classes that fit above one another as numbers.
_MOST_CHARACTERS, _MOST_WRITTEN_CLASSES = 45, 20
_INCHES_PER_CLASS, _LEAST_INCHES, _MOST_INCHES, _ROOM_AROUND_INCHES = 0.22, 2.0, 5.4, 1.7


def partition_figure(counts: IntArray, text: str, *, with_numbers: bool = True) -> Figure:
    """Draw how many records of each class each client holds: clients from left to right, classes from bottom to top.

    Args:
        counts: (clients, classes) numbers of records, as from `fedpcs.learning.partition.label_counts`.
        text: What was split and how, such as "Fashion-MNIST, Dirichlet(0.5)".
        with_numbers: Write them into the cells where there is room.

    Raises:
        InvalidInput: `counts` is no table of counts.
    """
    table = _checked(counts)
    panel_inches = min(max(_INCHES_PER_CLASS * table.shape[1], _LEAST_INCHES), _MOST_INCHES)
    note = "Empty: no records. Colour follows the square root of the number."
    figure, (axes,) = style.new_figure(
        f"Records by client and class: {text}", note=note, height_inches=panel_inches + _ROOM_AROUND_INCHES
    )
    step = math.ceil(len(table) / _MOST_SHOWN_CLIENTS)
    image = _draw_cells(axes, table[::step], num_clients=len(table), with_numbers=with_numbers)
    _label_axis(axes.xaxis, "client" if step == 1 else f"client, one shown of every {step}", len(table))
    _label_axis(axes.yaxis, "class", table.shape[1])
    scale = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.05)
    scale.locator = MaxNLocator(nbins=6, integer=True)
    scale.update_ticks()
    style.plain_ticks(scale.ax.yaxis)
    scale.outline.set_visible(False)
    scale.ax.tick_params(colors=style.INK, labelsize=9)
    scale.set_label("records", color=style.INK)
    style.caption(axes, text)
    return figure


def split_text(data: DataConfig) -> str:
    """Return what was split and how."""
    how = {
        "iid": "IID",
        "dirichlet": f"Dirichlet({data.alpha:g})",
        "shards": f"{data.shards_per_client} shards each",
        "quantity": f"sizes Dirichlet({data.alpha:g})",
    }[data.partition]
    return f"{data.name} {how}"


def _checked(counts: IntArray) -> FloatArray:
    table = np.asarray(counts)
    is_counts = table.ndim == 2 and table.size > 0 and np.issubdtype(table.dtype, np.integer)
    if not (is_counts and table.min() >= 0 and table.max() > 0):
        raise InvalidInput(
            "counts must be a table of clients by classes, whole numbers with some above zero, got shape "
            f"{table.shape} of {table.dtype}. Make it with fedpcs.learning.partition.label_counts."
        )
    return table.astype(np.float64)


def _draw_cells(axes: Axes, table: FloatArray, *, num_clients: int, with_numbers: bool) -> AxesImage:
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
    fits = num_clients * len(f"{most:,.0f}") <= _MOST_CHARACTERS and num_classes <= _MOST_WRITTEN_CLASSES
    for (client, label), count in np.ndenumerate(table) if with_numbers and fits else ():
        colour = style.PALE if count == 0.0 else "white" if norm(count) > 0.55 else style.INK
        axes.text(client, label, f"{count:,.0f}", ha="center", va="center", fontsize=6.5, color=colour)
    return image


def _label_axis(axis: Axis, label: str, num_cells: int) -> None:
    most_ticks = 20 if num_cells <= 20 else 10
    axis.set_major_locator(MaxNLocator(nbins=most_ticks, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    style.plain_ticks(axis)
    axis.set_label_text(label, color=style.INK)
