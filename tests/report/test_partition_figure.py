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
    written = np.array([int(text.get_text().replace(",", "")) for text in axes.texts]).reshape(table.shape)
    np.testing.assert_array_equal(written, table)


def test_numbers_are_left_out_where_they_would_touch():
    assert not partition_figure(counts(100, 10), "").axes[0].texts
    assert not partition_figure(1_000_000 * counts(20, 10), "").axes[0].texts
    assert not partition_figure(counts(10, 200), "").axes[0].texts


def test_of_too_many_clients_evenly_spaced_ones_are_shown():
    table = counts(2_500, 4)
    axes = partition_figure(table, "").axes[0]
    np.testing.assert_array_equal(axes.images[0].get_array().filled(0), table[::3].T)
    assert axes.get_xlabel() == "client, one shown of every 3"
    assert axes.get_xlim() == (-0.5, 2_499.5)


@pytest.mark.parametrize(
    "table", [np.zeros((2, 2), int), np.ones(3, int), np.ones((2, 2)), np.array([[-1, 2]]), np.ones((0, 3), int)]
)
def test_what_is_no_table_of_counts_is_refused(table):
    with pytest.raises(InvalidInput, match="counts must be a table of clients by classes"):
        partition_figure(table, "")
