"""Splits among clients: every record once, nobody empty, and shares that follow their distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedpcs.errors import InvalidInput
from fedpcs.learning.partition import KINDS, _shares, label_counts, partition


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def balanced(num_records: int, num_classes: int) -> np.ndarray:
    return np.arange(num_records) % num_classes


def assert_is_partition(parts, num_records: int, num_clients: int) -> None:
    assert len(parts) == num_clients
    assert all(part.size > 0 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(num_records))


@st.composite
def splits(draw):
    targets = draw(st.lists(st.integers(0, 12), min_size=1, max_size=120))
    num_clients = draw(st.integers(1, len(targets)))
    shards = draw(st.integers(1, max(1, len(targets) // num_clients)))
    alpha = draw(st.one_of(st.floats(1e-9, 1e9), st.sampled_from([1e-9, 0.1, 0.5, 1.0, 1e6, 1e9])))
    return np.array(targets), num_clients, {"alpha": alpha, "shards_per_client": shards}


@pytest.mark.parametrize("kind", KINDS)
@given(split=splits(), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_every_record_has_one_owner_and_nobody_is_empty(kind, split, seed):
    targets, num_clients, options = split
    parts = partition(kind, targets, num_clients, rng(seed), **options)
    assert_is_partition(parts, targets.size, num_clients)
    again = partition(kind, targets, num_clients, rng(seed), **options)
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))
    counts = label_counts(parts, targets, 13)
    np.testing.assert_array_equal(counts.sum(axis=0), np.bincount(targets, minlength=13))
    np.testing.assert_array_equal(counts.sum(axis=1), [part.size for part in parts])


def test_iid_labels_are_those_of_draws_without_replacement():
    """A client's count of a class is hypergeometric: mean n/N·K/n, here 30, and the known variance.

    n = 1,000 splits, significance 1e-6 (4.9 standard errors): 2 % in the mean and 22 % in the variance are seen.
    """
    targets, generator = balanced(600, 2), rng(3)
    counts = np.array([(targets[partition("iid", targets, 10, generator)[0]] == 0).sum() for _ in range(1_000)])
    variance = 60 * 0.5 * 0.5 * (600 - 60) / (600 - 1)
    assert abs(counts.mean() - 30.0) < 4.9 * np.sqrt(variance / counts.size)
    assert abs(counts.var() / variance - 1.0) < 4.9 * np.sqrt(2.0 / counts.size)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("kind", ["dirichlet", "quantity"])
def test_shares_have_the_mean_and_variance_of_a_dirichlet(kind, alpha):
    """For Dirichlet(α, …, α) over N clients a share has mean 1/N and variance (1/N)(1 − 1/N)/(Nα + 1).

    n = 400 draws of shares, each of 4,000 records, N = 8; significance 1e-6 (4.9 standard errors). Variances are pooled
    over the clients of a draw, draws being independent; one 17 % off is seen. The repair of empty clients moves a share
    by 1/4,000, far less than an error seen.
    """
    num_clients, num_classes, num_records, num_draws = 8, 4, 4_000, 400
    targets, generator = balanced(num_classes * num_records, num_classes), rng(11)
    if kind == "dirichlet":
        splits = (
            partition(kind, targets, num_clients, generator, alpha=alpha) for _ in range(num_draws // num_classes)
        )
        shares = np.concatenate([label_counts(parts, targets, num_classes).T for parts in splits]) / num_records
    else:
        one_class = targets[:num_records]
        splits = (partition(kind, one_class, num_clients, generator, alpha=alpha) for _ in range(num_draws))
        shares = np.array([[part.size for part in parts] for parts in splits]) / num_records
    assert shares.shape == (num_draws, num_clients)
    mean = 1.0 / num_clients
    variance = mean * (1.0 - mean) / (num_clients * alpha + 1.0)
    assert np.abs(shares.mean(axis=0) - mean).max() < 4.9 * np.sqrt(variance / num_draws)
    of_each_draw = ((shares - mean) ** 2).mean(axis=1)
    error = 4.9 * of_each_draw.std() / np.sqrt(num_draws) + 0.01 * variance
    assert error < 0.17 * variance
    assert abs(of_each_draw.mean() - variance) < error


@pytest.mark.parametrize("alpha", [0.05, 0.5, 5.0])
def test_a_share_is_beta_distributed(alpha):
    """One of N = 8 shares of Dirichlet(α, …, α) is Beta(α, 7α): Kolmogorov–Smirnov, significance 1e-6, n = 10,000.

    Distances of 0.03 are seen; an α 20 % off is further away than that for each α here.
    """
    generator = rng(6)
    shares = np.array([_shares(8, alpha, generator)[2] for _ in range(10_000)])
    assert stats.kstest(shares, stats.beta(alpha, 7 * alpha).cdf).pvalue > 1e-6
    assert stats.kstest(shares, stats.beta(1.2 * alpha, 7 * 1.2 * alpha).cdf).pvalue < 1e-6


def test_quantity_skew_leaves_labels_alike():
    """Sizes differ more than fivefold; χ² of labels against the whole stays below its 1 − 1e-6 quantile."""
    targets = np.sort(balanced(20_000, 10))
    parts = partition("quantity", targets, 20, rng(2))
    sizes = np.array([part.size for part in parts])
    assert sizes.max() > 5 * sizes.min()
    counts = label_counts(parts, targets, 10)[sizes >= 100]
    expected = counts.sum(axis=1, keepdims=True) / 10
    statistic = ((counts - expected) ** 2 / expected).sum()
    degrees = 9 * len(counts)
    assert statistic < degrees + 4.9 * np.sqrt(2 * degrees) + 4.9**2  # Laurent and Massart's bound, e^(−x) < 1e-6


def test_extreme_alphas_are_one_owner_and_equal_shares():
    targets = balanced(1_000, 5)
    tiny = label_counts(partition("dirichlet", targets, 10, rng(), alpha=1e-9), targets, 5)
    assert (tiny.max(axis=0) >= 200 - 10).all()  # one owner, less what empty clients were given
    for alpha in (1e6, 1e9):
        huge = label_counts(partition("dirichlet", targets, 10, rng(), alpha=alpha), targets, 5)
        assert np.abs(huge - 20).max() <= 1


def test_empty_clients_are_given_one_record_by_the_largest():
    """One class and a tiny α leave everything to one client; the others are then given a single record each."""
    parts = partition("dirichlet", np.zeros(100, dtype=int), 10, rng(4), alpha=1e-9)
    assert sorted(part.size for part in parts) == [1] * 9 + [91]
    given_away = [int(part[0]) for part in parts if part.size == 1]
    assert sorted(given_away) not in (list(range(9)), list(range(91, 100)))  # taken at random, not off an end


def test_shards_show_a_client_as_many_labels_as_it_has_shards():
    """100 clients, 10 classes of 600: shards of 30 never straddle two labels, so two shards show two at most."""
    targets = rng(9).permutation(balanced(6_000, 10))
    counts = label_counts(partition("shards", targets, 100, rng()), targets, 10)
    assert (counts.sum(axis=1) == 60).all()
    assert (counts % 30 == 0).all()
    held = (counts > 0).sum(axis=1)
    assert held.max() == 2
    assert held.min() == 1


def test_many_clients_take_no_time():
    """Repair is one pass: 20,000 clients, most of them empty at first."""
    parts = partition("quantity", balanced(30_000, 10), 20_000, rng(), alpha=0.01)
    assert_is_partition(parts, 30_000, 20_000)


GOOD = {"kind": "dirichlet", "targets": [0, 1, 0, 1], "num_clients": 2}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "random"}, "kind must be one of 'iid', 'dirichlet', 'shards', 'quantity', got 'random'"),
        ({"num_clients": 5}, r"num_clients must be a whole number in \[1, 4\], got 5.*use fewer clients"),
        ({"alpha": float("nan")}, r"alpha must be a number in \[1e-09, 1e\+09\], got nan"),
        ({"alpha": 0.0}, "alpha"),
        ({"kind": "shards", "shards_per_client": 3}, "got 3 for 2 clients and 4 records"),
        ({"shards_per_client": 0}, "shards_per_client must be a whole number of at least 1, got 0"),
        ({"targets": [0.5, 1.0]}, "targets must be a flat list of whole numbers, got shape .2,. of float64"),
        ({"targets": [[0, 1], [1, 0]]}, "targets must be a flat list of whole numbers, got shape .2, 2."),
        ({"targets": [True, False]}, "of bool"),
        ({"targets": [0, -1, 2]}, "targets must be zero or above, got -1"),
    ],
)
def test_bad_input_is_named(change, message):
    request = GOOD | change
    with pytest.raises(InvalidInput, match=message):
        partition(request.pop("kind"), request.pop("targets"), request.pop("num_clients"), rng(), **request)


def test_counting_refuses_a_label_beyond_the_classes():
    with pytest.raises(InvalidInput, match="targets must be below num_classes=2, got 2"):
        label_counts([np.array([0, 1])], [0, 2], 2)


def test_counting_by_hand():
    counts = label_counts([np.array([0, 3]), np.array([1, 2, 4])], [2, 0, 0, 2, 1], 4)
    np.testing.assert_array_equal(counts, [[0, 0, 2, 0], [2, 1, 0, 0]])
    assert counts.dtype == np.int64
