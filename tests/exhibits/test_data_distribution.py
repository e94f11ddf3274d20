"""Two splits of a data set: the counts are the splits', and the verdicts turn when the splits are swapped."""

from __future__ import annotations

import numpy as np
import pytest
from small_games import page_of

from fedpcs import _random
from fedpcs.errors import InvalidInput
from fedpcs.exhibits import data_distribution
from fedpcs.exhibits.data_distribution import IID, MIXED, Splits
from fedpcs.exhibits.exhibit import Request, build
from fedpcs.learning.datasets import make_dataset
from fedpcs.learning.partition import partition
from fedpcs.report.page import Page

TARGETS = np.arange(6_000) % 10
COUNTS = data_distribution.split_counts(range(3), TARGETS, 10, 30)


def page(counts: dict[str, list[np.ndarray]]) -> Page:
    return page_of("data-distribution", Splits("made up", counts))


def test_counts_are_those_of_the_parts_a_run_would_deal_out() -> None:
    for kind, split in (("iid", IID), ("dirichlet", MIXED)):
        for seed in range(3):
            parts = partition(kind, TARGETS, 30, _random.generator(seed, "partition"), alpha=0.5)
            twin = [[sum(TARGETS[record] == label for record in part) for label in range(10)] for part in parts]
            np.testing.assert_array_equal(COUNTS[split][seed], twin)


def test_skew_is_half_the_distance_between_label_mixes() -> None:
    counts = np.array([[8, 2], [2, 8], [5, 5]])
    twin = [0.5 * sum(abs(row[c] / sum(row) - 0.5) for c in range(2)) for row in counts.tolist()]
    assert data_distribution.skew(counts).tolist() == pytest.approx(twin)
    assert data_distribution.skew(np.eye(10, dtype=np.int64)).tolist() == pytest.approx([0.9] * 10)


def test_the_dirichlet_split_is_the_more_skewed_and_swapped_splits_turn_the_verdicts() -> None:
    def found(alike: list[np.ndarray], mixed: list[np.ndarray]) -> set[str]:
        return {finding.verdict for finding in page({IID: alike, MIXED: mixed}).findings}

    assert found(COUNTS[IID], COUNTS[MIXED]) == {"agrees"}
    assert found(COUNTS[MIXED], COUNTS[IID]) == {"differs"}
    assert found(COUNTS[IID], COUNTS[IID][::-1]) == {"cannot say"}


@pytest.mark.parametrize(("name", "is_said"), [("cifar-10", False), ("fashion-mnist", True)])
def test_a_page_names_its_data_set_and_holds_every_cell(name: str, is_said: bool) -> None:
    inputs = np.zeros((600, 4), dtype=np.float32)
    dataset = make_dataset(name, (inputs, TARGETS[:600]), (inputs[:10], TARGETS[:10]))
    request = Request("data-distribution", dataset=name)
    made = build(data_distribution.EXHIBIT, request, data_distribution.split(request, dataset, num_clients=20))
    assert made.facts.startswith(f"{name}, 600 training records, 20 clients, 10 classes")
    assert made.provenance["data set, SHA-256"] == dataset.checksum
    assert len(made.records) == 2 * 3 * 20 * 10
    assert sum(row["records"] for row in made.records) == 2 * 3 * 600
    assert ("The paper's figure is of cifar-10; this page is of" in " ".join(made.shrunk)) == is_said
    assert "3 seeds" in made.shrunk[0]


def test_heat_maps_show_all_clients_and_one_cohort_s_worth_on_one_scale() -> None:
    images = [drawing.draw().axes[0].images[0] for drawing in page(COUNTS).drawings]
    assert [image.get_array().shape for image in images] == [(10, 30), (10, 6), (10, 30), (10, 6)]
    np.testing.assert_array_equal(images[3].get_array().filled(0), COUNTS[MIXED][0][:6].T)
    most = max(int(tables[0].max()) for tables in COUNTS.values())
    assert {image.get_clim() for image in images} == {(1.0, most)}


def test_more_clients_than_records_are_refused() -> None:
    with pytest.raises(InvalidInput, match="num_clients"):
        data_distribution.split_counts(range(3), TARGETS[:5], 10, 6)
