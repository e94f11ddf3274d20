"""Two splits of a data set: the counts are the splits', and the verdicts turn when the splits are swapped."""

from __future__ import annotations

import numpy as np
import pytest
from small_games import verdicts

from fedpcs import _random
from fedpcs.errors import InvalidInput
from fedpcs.exhibits import data_distribution
from fedpcs.exhibits.solved_games import Profile
from fedpcs.learning.datasets import make_dataset
from fedpcs.learning.partition import partition

TARGETS = np.arange(6_000) % 10
SPLITS = data_distribution.split_counts(range(3), TARGETS, 10, 30, 0.5)


def test_counts_are_those_of_the_parts_a_run_would_deal_out() -> None:
    for kind, split in (("iid", "IID"), ("dirichlet", "Dirichlet(0.5)")):
        for seed in range(3):
            parts = partition(kind, TARGETS, 30, _random.generator(seed, "partition"), alpha=0.5)
            twin = [[sum(TARGETS[record] == label for record in part) for label in range(10)] for part in parts]
            np.testing.assert_array_equal(SPLITS[split][seed], twin)


def test_skew_is_half_the_distance_between_label_mixes() -> None:
    counts = np.array([[8, 2], [2, 8], [5, 5]])
    twin = [0.5 * sum(abs(row[c] / sum(row) - 0.5) for c in range(2)) for row in counts.tolist()]
    assert data_distribution.skew(counts).tolist() == pytest.approx(twin)
    assert data_distribution.skew(np.eye(10, dtype=np.int64)).tolist() == pytest.approx([0.9] * 10)


def test_the_dirichlet_split_is_the_more_skewed_and_swapped_splits_turn_the_verdicts() -> None:
    page = data_distribution.page_of(SPLITS, "made up", "quick", alpha=0.5)
    assert set(verdicts(page).values()) == {"agrees"}
    swapped = dict(zip(SPLITS, reversed(list(SPLITS.values())), strict=True))
    assert set(verdicts(data_distribution.page_of(swapped, "made up", "quick", alpha=0.5)).values()) == {"differs"}
    same = {"IID": SPLITS["IID"], "Dirichlet(0.5)": list(reversed(SPLITS["IID"]))}
    page = data_distribution.page_of(same, "made up", "quick", alpha=0.5)
    assert set(verdicts(page).values()) == {"cannot say"}


def test_an_even_dirichlet_is_hardly_skewed() -> None:
    even = data_distribution.split_counts(range(2), TARGETS, 10, 30, 1e6)
    means = [data_distribution.skew(table).mean() for tables in even.values() for table in tables]
    assert max(means) < 0.12


def test_a_data_set_s_page_names_it_and_holds_every_cell() -> None:
    inputs = np.zeros((600, 4), dtype=np.float32)
    dataset = make_dataset("mine", (inputs, TARGETS[:600]), (inputs[:10], TARGETS[:10]))
    page = data_distribution.make_page("quick", dataset, num_clients=20)
    assert page.facts.startswith("mine, 600 training records, 20 clients, 10 classes")
    assert page.provenance["data set, SHA-256"] == dataset.checksum
    assert len(page.records) == 2 * 3 * 20 * 10
    assert sum(row["records"] for row in page.records) == 2 * 3 * 600
    assert len(page.shrunk) == 2


@pytest.mark.parametrize("profile", ["quick", "paper"])
@pytest.mark.parametrize(("name", "is_said"), [("cifar-10", False), ("fashion-mnist", True)])
def test_a_page_of_another_data_set_than_the_paper_s_figure_says_so(profile: Profile, name: str, is_said: bool) -> None:
    page = data_distribution.page_of(SPLITS, name, profile, alpha=0.5)
    assert ("The paper's figure is of cifar-10; this page is of" in " ".join(page.shrunk)) == is_said
    assert ("3 seeds" in " ".join(page.shrunk)) == (profile == "quick")


def test_heat_maps_show_all_clients_and_one_cohort_s_worth() -> None:
    page = data_distribution.page_of(SPLITS, "made up", "quick", alpha=0.5)
    shown = [drawing.draw().axes[0].images[0].get_array().filled(0) for drawing in page.drawings]
    assert [image.shape for image in shown] == [(10, 30), (10, 6), (10, 30), (10, 6)]
    np.testing.assert_array_equal(shown[3], SPLITS["Dirichlet(0.5)"][0][:6].T)


def test_more_clients_than_records_are_refused() -> None:
    with pytest.raises(InvalidInput, match="num_clients"):
        data_distribution.make_page_of_targets("quick", "made up", TARGETS[:5], 10, num_clients=6)


def test_both_splits_are_drawn_on_one_scale_of_colours() -> None:
    page = data_distribution.page_of(SPLITS, "made up", "quick", alpha=0.5)
    most = max(int(tables[0].max()) for tables in SPLITS.values())
    for drawing in page.drawings:
        assert drawing.draw().axes[0].images[0].get_clim() == (1.0, most)
