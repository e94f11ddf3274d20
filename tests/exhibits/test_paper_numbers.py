"""The paper's printed numbers: every one was compared with the table's source once, and none may move since."""

from __future__ import annotations

import hashlib

import pytest

from fedpcs.exhibits.paper_numbers import SAMPLERS, SPLITS, Printed, printed_accuracy

DATASETS = ("fashion-mnist", "cifar-10", "svhn", "cifar-100", "cinic-10", "tiny-imagenet")
RATIOS = (0.2, 0.5, 0.8)


def block(dataset: str) -> list[Printed]:
    """One data set's cells by ratio, then sampler, then split: the order in which the paper's rows are read."""
    return [printed_accuracy(dataset, *place) for place in _places()]


def _places() -> list[tuple[float, str, str]]:
    return [(ratio, split, sampler) for ratio in RATIOS for sampler in SAMPLERS for split in SPLITS]


@pytest.mark.parametrize(
    ("dataset", "means", "deviations"),
    [
        ("fashion-mnist", 2441.54, 7.29),
        ("cifar-10", 1841.58, 6.77),
        ("svhn", 2529.1, 1.8),
        ("cifar-100", 1380.77, 5.17),
        ("cinic-10", 1369.22, 5.54),
        ("tiny-imagenet", 1925.93, 4.15),
    ],
)
def test_each_block_of_the_table_adds_up(dataset: str, means: float, deviations: float) -> None:
    """Sums of thirty means and thirty deviations, added up from the table's source."""
    cells = block(dataset)
    assert len(cells) == 30
    assert sum(one.mean for one in cells) == pytest.approx(means, abs=1e-6)
    assert sum(one.std for one in cells) == pytest.approx(deviations, abs=1e-6)


def test_no_printed_number_has_moved() -> None:
    """The digest of all 180 cells, written with the two decimals the paper prints."""
    lines = [
        f"{dataset} {ratio} {sampler} {split} {one.mean:.2f} {one.std:.2f}"
        for dataset in DATASETS
        for (ratio, split, sampler), one in zip(_places(), block(dataset), strict=True)
    ]
    assert len(lines) == 180
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == (
        "79e620f930e66433ac30a9239bb814117da25c383748c9b94baedcd181b03fa6"
    )
