"""Who holds which classes under an IID and a Dirichlet split (paper, Fig. 2).

The heterogeneity of a split is told by how far clients' label mixes lie from the whole data set's: the total variation
distance ½ Σ_c |p_i(c) − p(c)|, between 0 (the same mix) and nearly 1 (a class or two only). Splits are the ones runs
use: the same seed gives the same parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from fedpcs import _format, _random
from fedpcs._validate import FloatArray
from fedpcs.exhibits.claims import Claim, Judged, interval, on_sign, points
from fedpcs.exhibits.exhibit import Exhibit, Gathered, Request
from fedpcs.exhibits.games import NUM_SEEDS, seeds_of
from fedpcs.game.rules import cohort_from_ratio
from fedpcs.learning.datasets import Dataset, load_dataset
from fedpcs.learning.partition import IntArray, label_counts, partition
from fedpcs.report.figures.partition import partition_figure
from fedpcs.report.page import Drawing, Page, Table
from fedpcs.studies.paired import paired_difference

IID, MIXED = "IID", "Dirichlet(0.5)"
_ALPHA, _NUM_CLIENTS = 0.5, 100
# The paper's figure is of CIFAR-10 and τ = 0.2: as many clients as one cohort holds.
_PAPER_DATASET = "cifar-10"
_SHOWN_RATIO = 0.2


@dataclass(frozen=True)
class Splits:
    """A data set split among clients: (clients, classes) numbers of records by split, one table for each seed."""

    name: str
    counts: Mapping[str, Sequence[IntArray]]

    @cached_property
    def skews(self) -> dict[str, list[float]]:
        """Clients' mean distance from the whole's label mix by split, one for each seed."""
        return {split: [float(skew(table).mean()) for table in tables] for split, tables in self.counts.items()}


def split_counts(
    seeds: Sequence[int], targets: ArrayLike, num_classes: int, num_clients: int = _NUM_CLIENTS
) -> dict[str, list[IntArray]]:
    """Return (clients, classes) counts of both splits for every seed, from the streams a run would use."""

    def counts(kind: str, seed: int) -> IntArray:
        parts = partition(kind, targets, num_clients, _random.generator(seed, "partition"), alpha=_ALPHA)
        return label_counts(parts, targets, num_classes)

    return {split: [counts(kind, seed) for seed in seeds] for split, kind in ((IID, "iid"), (MIXED, "dirichlet"))}


def skew(counts: IntArray) -> FloatArray:
    """Return each client's total variation distance from the whole's label mix: (clients,).

    Example:
        >>> skew(np.array([[2, 0], [0, 2]])).tolist()
        [0.5, 0.5]
    """
    own = counts / counts.sum(axis=1, keepdims=True)
    whole = counts.sum(axis=0) / counts.sum()
    return np.asarray(0.5 * np.abs(own - whole).sum(axis=1))


def split(request: Request, dataset: Dataset, num_clients: int = _NUM_CLIENTS) -> Gathered[Splits]:
    """Split a data set, by its training labels."""
    seeds, targets = seeds_of(request.profile), dataset.train_targets.numpy()
    splits = Splits(dataset.name, split_counts(seeds, targets, dataset.num_classes, num_clients))
    few, many = NUM_SEEDS["quick"], NUM_SEEDS["paper"]
    shrunk = {
        f"Splits are drawn with {few} seeds; the paper profile draws {many}. The paper shows one.": request.profile
        == "quick",
        f"The paper's figure is of {_PAPER_DATASET}; this page is of {dataset.name}.": dataset.name != _PAPER_DATASET,
    }
    frame = Page(
        name="",
        title="",
        headline="",
        facts=f"{dataset.name}, {len(targets):,} training records, {num_clients} clients, {dataset.num_classes} "
        f"classes, {len(seeds)} seeds",
        shrunk=tuple(sentence for sentence, holds in shrunk.items() if holds),
        settings={"split": {"num_clients": str(num_clients), "alpha": f"{_ALPHA:g}", "kinds": f"{IID}, {MIXED}"}},
        provenance={"data set, SHA-256": dataset.checksum},
    )
    return Gathered(splits, frame)


def _headline(splits: Splits) -> str:
    alike, mixed = (_format.share(float(np.mean(splits.skews[split]))) for split in (IID, MIXED))
    return (
        f"Under the IID split a client's label mix is {alike} away from the whole's on average; under {MIXED}, {mixed}."
    )


def _ranges(splits: Splits) -> Judged:
    """Compare the range of a table's cells, over the number a cell would hold if all were alike."""
    alike, mixed = ([float(np.ptp(table) / table.mean()) for table in splits.counts[split]] for split in (IID, MIXED))
    wider = paired_difference(mixed, alike)
    found = (
        f"Largest less smallest cell, in units of the mean cell: {_format.amount_and_spread(alike)} under IID, "
        f"{_format.amount_and_spread(mixed)} under {MIXED}; difference {interval(wider)}."
    )
    return on_sign(wider), found


def _heterogeneity(splits: Splits) -> Judged:
    alike, mixed = splits.skews[IID], splits.skews[MIXED]
    farther = paired_difference(mixed, alike)
    found = (
        f"A client's label mix lies {_format.mean_and_spread(alike)} from the whole's under IID and "
        f"{_format.mean_and_spread(mixed)} under {MIXED}; difference {points(farther)}."
    )
    return on_sign(farther), found


def _table(splits: Splits) -> Iterable[Table]:
    rows = []
    for name, tables in splits.counts.items():
        sizes = np.array([table.sum(axis=1) for table in tables])
        missing = [float((table == 0).sum(axis=1).mean()) for table in tables]
        held = f"{sizes.min():,} to {sizes.max():,}" if np.ptp(sizes) else f"{sizes.min():,} each"
        cells = f"{np.min(tables):,} to {np.max(tables):,}"
        rows.append(
            (name, _format.mean_and_spread(splits.skews[name]), _format.amount_and_spread(missing), held, cells)
        )
    yield Table(
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


def _drawings(splits: Splits) -> Iterable[Drawing]:
    most = max(int(tables[0].max()) for tables in splits.counts.values())
    for name, (first, *_) in splits.counts.items():
        # Colours go as far on every map, so that splits can be compared by eye.
        yield Drawing(
            f"{splits.name}, {name}", partial(partition_figure, first, f"{splits.name}, {name}, seed 0", most=most)
        )
        few = cohort_from_ratio(_SHOWN_RATIO, len(first))
        if 1 < few < len(first):
            text = f"{name}, seed 0: the first {few} of {len(first)} clients"
            topic = f"{splits.name}, {name}, {few} clients"
            yield Drawing(topic, partial(partition_figure, first[:few], text, most=most))


def _records(splits: Splits) -> Iterable[dict[str, object]]:
    for name, tables in splits.counts.items():
        for seed, table in enumerate(tables):
            for (client, label), number in np.ndenumerate(table):
                yield {"split": name, "seed": seed, "client": client, "class": label, "records": int(number)}


EXHIBIT = Exhibit(
    title="Which client holds which classes, on {dataset}",
    gather=lambda request: split(request, load_dataset(request.dataset, request.data_dir)),
    headline=_headline,
    claims=(
        Claim(
            "Under IID the numbers of records by class lie in a close range; under the Dirichlet split in a wider one.",
            _ranges,
        ),
        Claim("The Dirichlet split is the more heterogeneous one.", _heterogeneity),
    ),
    tables=_table,
    drawings=_drawings,
    records=_records,
)
