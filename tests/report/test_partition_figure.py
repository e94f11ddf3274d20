"""The heat map of a split: what it shows, for a handful of clients or thousands."""

from __future__ import annotations

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.learning.partition import label_counts, partition
from fedpcs.report.figures.partition import partition_figure


def counts(num_clients: int, num_classes: int, num_records: int = 4_000) -> np.ndarray:
    targets = np.arange(num_records) % num_classes
    parts = partition("dirichlet", targets, num_clients, np.random.default_rng(0))
    return label_counts(parts, targets, num_classes)


def test_cells_are_the_counts_and_none_is_white():
    table = counts(12, 10)
    axes = partition_figure(table, "").axes[0]
    shown = axes.images[0].get_array()
    np.testing.assert_array_equal(shown.filled(0), table.T)
    np.testing.assert_array_equal(shown.mask, table.T == 0)


@pytest.mark.parametrize(
    "table", [np.zeros((2, 2), int), np.ones(3, int), np.ones((2, 2)), np.array([[-1, 2]]), np.ones((0, 3), int)]
)
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(InvalidInput, match="counts must be a table of clients by classes"):
        partition_figure(table, "")
