"""Who holds which classes, as a heat map of clients and classes."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedpcs.errors import InvalidInput
from fedpcs.learning.partition import IntArray
from fedpcs.report import style
from fedpcs.trial.config import DataConfig

# From one record up; cells of none stay empty, so that what a client lacks is seen at once.
_COLOURS = LinearSegmentedColormap.from_list("records", ["#DCEBF6", "#8FC3E4", style.BLUE, "#06223A"])


def partition_figure(counts: IntArray, text: str, *, most: int | None = None) -> Figure:
    """Draw how many records of each class each client holds: clients from left to right, classes from bottom to top.

    Args:
        counts: (clients, classes) numbers of records, as from `fedpcs.learning.partition.label_counts`.
        text: What was split and how, such as "Fashion-MNIST, Dirichlet(0.5)".
        most: Where the colours end; the greatest count if absent.

    Raises:
        InvalidInput: `counts` is no table of counts.
    """
    table = np.asarray(counts)
    is_counts = table.ndim == 2 and table.size > 0 and np.issubdtype(table.dtype, np.integer)
    if not (is_counts and table.min() >= 0 and table.max() > 0):
        raise InvalidInput(
            "counts must be a table of clients by classes, whole numbers with some above zero, got shape "
            f"{table.shape} of {table.dtype}. Make it with fedpcs.learning.partition.label_counts."
        )
    note = "Empty: no records. Colour follows the square root of the number."
    figure, (axes,) = style.new_figure(f"Records by client and class: {text}", note=note, height_inches=3.5)
    norm = PowerNorm(0.5, vmin=1.0 if table.max() > 1 else 0.0, vmax=float(most or table.max()))
    cells = np.ma.masked_equal(table.T.astype(np.float64), 0.0)
    image = axes.imshow(cells, cmap=_COLOURS, norm=norm, aspect="auto", origin="lower", interpolation="nearest")
    axes.grid(visible=False)
    axes.set_xlabel("client")
    axes.set_ylabel("class")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    scale = figure.colorbar(image, ax=axes, pad=0.015, fraction=0.05, ticks=MaxNLocator(nbins=6, integer=True))
    style.plain_ticks(scale.ax.yaxis)
    scale.outline.set_visible(False)
    scale.set_label("records")
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
