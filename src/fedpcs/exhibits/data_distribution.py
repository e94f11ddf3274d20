"""Who holds which classes under an IID and a Dirichlet split (paper, Fig. 2).

The heterogeneity of a split is told by how far clients' label mixes lie from the whole data set's: the total variation
distance ½ Σ_c |p_i(c) − p(c)|, between 0 (the same mix) and nearly 1 (a class or two only). Splits are the ones runs
use: the same seed gives the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from fedpcs import _format, _random
from fedpcs._validate import FloatArray
from fedpcs.exhibits import solved_games as shared
from fedpcs.exhibits import verdicts
from fedpcs.exhibits.profiles import Profile
from fedpcs.game.rules import cohort_from_ratio
from fedpcs.learning.datasets import Dataset
from fedpcs.learning.partition import IntArray, label_counts, partition
from fedpcs.report import style
from fedpcs.report.figures.partition import partition_figure
from fedpcs.report.page import Drawing, Finding, Page, Table
from fedpcs.studies.paired import paired_difference

IID = "IID"
# The paper's figure is of CIFAR-10 and τ = 0.2: as many clients as one cohort holds.
_PAPER_DATASET = "cifar-10"
_SHOWN_RATIO = 0.2
# Beyond this share of the scale cells are too dark for dark numbers.
_DARK = 0.55

Counts = Mapping[str, Sequence[IntArray]]


def make_page(profile: Profile, dataset: Dataset, *, num_clients: int = 100, alpha: float = 0.5) -> Page:
    """Split a loaded data set among clients both ways, for several seeds, and compare the splits.

    Args:
        profile: How many seeds.
        dataset: Already loaded; only its training labels are used.
        num_clients: N.
        alpha: Of the Dirichlet split; the paper's is 0.5.

    Raises:
        InvalidInput: More clients than records, or an alpha out of range.
    """
    targets = dataset.train_targets.numpy()
    page = make_page_of_targets(
        profile, dataset.name, targets, dataset.num_classes, num_clients=num_clients, alpha=alpha
    )
    return replace(page, provenance={"data set, SHA-256": dataset.checksum})


def make_page_of_targets(
    profile: Profile, name: str, targets: ArrayLike, num_classes: int, *, num_clients: int = 100, alpha: float = 0.5
) -> Page:
    """Make the page of (records,) labels counted from zero."""
    counts = split_counts(range(shared.NUM_SEEDS[profile]), targets, num_classes, num_clients, alpha)
    return page_of(counts, name, profile, alpha=alpha)


def split_counts(
    seeds: Sequence[int], targets: ArrayLike, num_classes: int, num_clients: int, alpha: float
) -> dict[str, list[IntArray]]:
    """Return (clients, classes) counts of both splits for every seed, from the streams a run would use."""

    def counts(kind: str, seed: int) -> IntArray:
        parts = partition(kind, targets, num_clients, _random.generator(seed, "partition"), alpha=alpha)
        return label_counts(parts, targets, num_classes)

    return {
        IID: [counts("iid", seed) for seed in seeds],
        f"Dirichlet({alpha:g})": [counts("dirichlet", seed) for seed in seeds],
    }


def skew(counts: IntArray) -> FloatArray:
    """Return each client's total variation distance from the whole's label mix: (clients,).

    Example:
        >>> skew(np.array([[2, 0], [0, 2]])).tolist()
        [0.5, 0.5]
    """
    own = counts / counts.sum(axis=1, keepdims=True)
    whole = counts.sum(axis=0) / counts.sum()
    return np.asarray(0.5 * np.abs(own - whole).sum(axis=1))


def page_of(counts: Counts, name: str, profile: Profile, *, alpha: float) -> Page:
    """Make the page of (clients, classes) counts: two splits, one table for each seed."""
    alike, mixed = counts
    seeds = range(len(counts[alike]))
    num_clients, num_classes = counts[alike][0].shape
    skews = {split: [float(skew(table).mean()) for table in tables] for split, tables in counts.items()}
    return Page(
        name="data-distribution",
        title=f"Which client holds which classes, on {name}",
        headline=(
            f"Under the IID split a client's label mix is {_format.share(float(np.mean(skews[alike])))} away from the "
            f"whole's on average; under {mixed}, {_format.share(float(np.mean(skews[mixed])))}."
        ),
        facts=f"{name}, {counts[alike][0].sum():,} training records, {num_clients} clients, {num_classes} classes, "
        f"{len(seeds)} seeds",
        shrunk=_shrunk(profile, name),
        findings=_findings(counts, skews),
        tables=(_table(counts, skews),),
        drawings=_drawings(counts, name),
        settings={"split": {"num_clients": str(num_clients), "alpha": f"{alpha:g}", "kinds": ", ".join(counts)}},
        commands=shared.commands("data-distribution", profile, f"--dataset {name}"),
        records=tuple(
            {"split": split, "seed": seed, "client": client, "class": label, "records": int(number)}
            for split, tables in counts.items()
            for seed, table in zip(seeds, tables, strict=True)
            for (client, label), number in np.ndenumerate(table)
        ),
    )


def _shrunk(profile: Profile, name: str) -> tuple[str, ...]:
    """Return what is smaller here than in the paper, or other, one sentence each."""
    few, many = shared.NUM_SEEDS["quick"], shared.NUM_SEEDS["paper"]
    seeds = f"Splits are drawn with {few} seeds; the paper profile draws {many}. The paper shows one."
    other = f"The paper's figure is of {_PAPER_DATASET}; this page is of {name}."
    return (*((seeds,) if profile == "quick" else ()), *((other,) if name != _PAPER_DATASET else ()))


def _cells(table: IntArray) -> float:
    """Return the range of numbers in a heat map's cells, over the number a cell would hold if all were alike."""
    return float(np.ptp(table) / table.mean())


def _findings(counts: Counts, skews: Mapping[str, Sequence[float]]) -> tuple[Finding, ...]:
    alike, mixed = counts
    cells = {split: [_cells(table) for table in tables] for split, tables in counts.items()}
    wider = paired_difference(cells[mixed], cells[alike])
    farther = paired_difference(skews[mixed], skews[alike])
    return (
        Finding(
            "Under IID the numbers of records by class lie in a close range; under the Dirichlet split in a wider one.",
            f"Largest less smallest cell, in units of the mean cell: {_format.amount_and_spread(cells[alike])} "
            f"under IID, {_format.amount_and_spread(cells[mixed])} under {mixed}; difference "
            f"{shared.difference(wider)}.",
            verdicts.on_sign(wider),
        ),
        Finding(
            "The Dirichlet split is the more heterogeneous one.",
            f"A client's label mix lies {_format.mean_and_spread(skews[alike])} from the whole's under IID and "
            f"{_format.mean_and_spread(skews[mixed])} under {mixed}; difference "
            f"{shared.points(farther)}.",
            verdicts.on_sign(farther),
        ),
    )


def _table(counts: Counts, skews: Mapping[str, Sequence[float]]) -> Table:
    rows = []
    for split, tables in counts.items():
        sizes = np.array([table.sum(axis=1) for table in tables])
        missing = [float((table == 0).sum(axis=1).mean()) for table in tables]
        rows.append(
            (
                split,
                _format.mean_and_spread(skews[split]),
                _format.amount_and_spread(missing),
                f"{sizes.min():,} to {sizes.max():,}" if np.ptp(sizes) else f"{sizes.min():,} each",
                f"{min(int(t.min()) for t in tables):,} to {max(int(t.max()) for t in tables):,}",
            )
        )
    return Table(
        "The two splits, mean ± standard deviation over seeds",
        (
            "split",
            "distance from the whole's mix",
            "classes a client lacks",
            "records a client holds",
            "records in a cell",
        ),
        tuple(rows),
        {"distance from the whole's mix": "total variation distance of label shares, mean over clients"},
    )


def _drawings(counts: Counts, name: str) -> tuple[Drawing, ...]:
    num_clients = len(next(iter(counts.values()))[0])
    few = cohort_from_ratio(_SHOWN_RATIO, num_clients)
    most = max(int(tables[0].max()) for tables in counts.values())
    drawings = []
    for split, tables in counts.items():
        drawings.append(Drawing(f"{name}, {split}", _heat_map(tables[0], f"{name}, {split}, seed 0", most)))
        words = f"{split}, seed 0: the first {few} of {num_clients} clients"
        if 1 < few < num_clients:
            drawings.append(Drawing(f"{name}, {split}, {few} clients", _heat_map(tables[0][:few], words, most)))
    return tuple(drawings)


def _heat_map(table: IntArray, words: str, most: int) -> Callable[[], Figure]:
    return lambda: _on_scale(partition_figure(table, words), most)


def _on_scale(figure: Figure, most: int) -> Figure:
    """Return a heat map with its colours going up to `most`, so that both splits can be compared by eye."""
    if most <= 1:
        return figure
    axes = figure.axes[0]
    image = axes.images[0]
    image.set_clim(1.0, float(most))
    if image.colorbar is not None:
        ticks = MaxNLocator(nbins=6, integer=True).tick_values(1.0, float(most))
        image.colorbar.set_ticks([1.0, *(tick for tick in ticks if 1.0 < tick <= most)])
    for cell in axes.texts:  # dark colours need white numbers
        number = np.array([float(cell.get_text().replace(",", ""))])
        is_dark = bool(np.asarray(image.norm(number))[0] > _DARK)
        cell.set_color(style.PALE if number[0] == 0.0 else "white" if is_dark else style.INK)
    return figure
