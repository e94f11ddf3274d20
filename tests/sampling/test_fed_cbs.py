"""`fed-cbs` picks by QCID^(−β): golden values, a slow twin from the definition, and the law of the printed ratios."""

from itertools import permutations

import numpy as np
import pytest

from fedpcs.errors import InvalidInput
from fedpcs.sampling import (
    class_imbalance,
    draw,
    make_sampler,
    make_view,
    usable_counts,
)

FOUR = np.array([[5] * 6, [6, 6, 6, 6, 6, 0], [0, 0, 0, 10, 10, 10], [10, 10, 10, 0, 0, 0]], dtype=float)
GOLDEN = {
    (1,): 0,
    (2,): 1 / 30,
    (3,): 1 / 6,
    (4,): 1 / 6,
    (1, 2): 0.008333,
    (1, 3): 0.041667,
    (2, 3): 0.033333,
    (2, 4): 0.066667,
    (3, 4): 0,
    (1, 2, 3): 0.014815,
    (1, 2, 4): 0.029630,
    (1, 3, 4): 0,
    (2, 3, 4): 0.003704,
}


def view_of(counts, cohort_size, **others):
    return make_view(cohort_size, counts.sum(axis=1), label_counts=counts, **others)


def dirichlet_counts(num_clients, num_classes, seed, concentration=0.5):
    rng = np.random.default_rng(seed)
    mixes = rng.dirichlet(np.full(num_classes, concentration), num_clients)
    sizes = rng.integers(50, 200, num_clients)
    return np.array([rng.multinomial(size, mix) for size, mix in zip(sizes, mixes, strict=True)], dtype=float)


def gram_imbalance(gram, sizes, members):
    """QCID of a set from inner products of label counts and sizes, which is all a server needs; 10 classes."""
    return gram[np.ix_(members, members)].sum() / sizes[members].sum() ** 2 - 0.1


@pytest.mark.parametrize(("members", "expected"), GOLDEN.items())
def test_golden_imbalances(members, expected):
    assert class_imbalance(FOUR[np.array(members) - 1]) == pytest.approx(expected, abs=5e-7)


def twin(counts, cohort_size, times, round_index, exploration, rng):
    """The sequential rule with every QCID computed from the Gram matrix and no sum kept between picks."""
    gram, sizes = counts @ counts.T, counts.sum(axis=1)
    members = []
    for exponent in range(1, cohort_size + 1):
        odds = np.full(len(counts), -np.inf)
        for candidate in set(range(len(counts))) - set(members):
            imbalance = max(gram_imbalance(gram, sizes, [*members, candidate]), 1e-12)
            odds[candidate] = -exponent * np.log(imbalance)
            if exponent == 1:
                bonus = np.sqrt(3 * np.log(round_index + 2) / (2 * max(times[candidate], 1)))
                odds[candidate] = np.log(1 / imbalance + exploration * bonus)
        members.append(int(np.argmax(odds + rng.gumbel(size=len(counts)))))
    return sorted(members)


@pytest.mark.parametrize("exploration", [0.0, 10.0])
def test_sums_kept_between_picks_change_nothing(exploration):
    """The same Gumbel draws pick the same clients as a twin that starts over at every pick."""
    sampler = make_sampler("fed-cbs", exploration=exploration)
    for seed in range(40):
        counts = dirichlet_counts(25, 10, seed)
        times = np.random.default_rng(seed).integers(0, 9, 25).astype(float)
        view = view_of(counts, 12, memory={"times": times}, round_index=seed)
        found = draw(sampler, view, np.random.default_rng(seed)).clients.tolist()
        assert found == twin(counts, 12, times, seed, exploration, np.random.default_rng(seed))


def printed_law(counts, times, round_index, exploration):
    """P(cohort) of three picks by the ratios as printed, numerators and all, normalised over candidates."""

    def power(members, exponent):
        return class_imbalance(counts[list(members)]) ** -exponent

    first = np.array(
        [
            power([c], 1) + exploration * np.sqrt(3 * np.log(round_index + 2) / (2 * max(times[c], 1)))
            for c in range(len(counts))
        ]
    )
    law = {}
    for a, b, c in permutations(range(len(counts)), 3):
        second = {n: power([a, n], 2) / first[a] for n in range(len(counts)) if n != a}
        third = {n: power([a, b, n], 3) / power([a, b], 2) for n in range(len(counts)) if n not in (a, b)}
        chance = first[a] / first.sum() * second[b] / sum(second.values()) * third[c] / sum(third.values())
        cohort = tuple(sorted((a, b, c)))
        law[cohort] = law.get(cohort, 0.0) + chance
    return law


def test_cohorts_follow_the_printed_ratios_whose_numerators_cancel():
    """All ten cohorts of three in five, enumerated; had T of the candidate entered pick two, the law would differ."""
    counts = dirichlet_counts(5, 3, 4, concentration=3.0)
    times = np.array([40.0, 1.0, 9.0, 0.0, 2.0])
    law = printed_law(counts, times, 5, 10.0)
    assert sum(law.values()) == pytest.approx(1.0)
    view = view_of(counts, 3, memory={"times": times}, round_index=5)
    sampler, rng, num_draws = make_sampler("fed-cbs"), np.random.default_rng(0), 2_500
    found = dict.fromkeys(law, 0)
    for _ in range(num_draws):
        found[tuple(draw(sampler, view, rng).clients.tolist())] += 1
    likely = {cohort: chance for cohort, chance in law.items() if chance * num_draws > 5}
    assert len(likely) > 5
    statistic = sum((found[c] - num_draws * p) ** 2 / (num_draws * p) for c, p in likely.items())
    assert statistic < 40.0  # χ² with at most 10 degrees of freedom, passed once in 60,000 times


def test_the_first_pick_favours_clients_rarely_drawn():
    """Four equal clients drawn 1, 4, 25 and 100 times: the bonus falls with the root of that."""
    counts = np.tile([9.0, 1.0], (4, 1))
    times = np.array([1.0, 4.0, 25.0, 100.0])
    view = view_of(counts, 1, memory={"times": times}, round_index=6)
    odds = 1 / class_imbalance(counts[:1]) + 10.0 * np.sqrt(1.5 * np.log(8.0) / times)
    rng, num_draws = np.random.default_rng(0), 1_500
    found = np.bincount([draw(make_sampler("fed-cbs"), view, rng).clients[0] for _ in range(num_draws)], minlength=4)
    expected = odds / odds.sum()
    assert np.abs((found / num_draws - expected) / np.sqrt(expected / num_draws)).max() < 4.5
    assert expected[0] > 4 * expected[3]


def test_the_last_exponent_is_reached_linearly_from_one(monkeypatch):
    """β only enters as an exponent of QCID, so with one client left to pick it can be read off the odds."""
    counts = dirichlet_counts(6, 3, 3)
    seen = []

    def note(self, log_odds, is_first, rng):
        free = np.flatnonzero(np.isfinite(log_odds))
        seen.append((free, log_odds[free]))
        return int(free[0])

    monkeypatch.setattr("fedpcs.sampling.samplers.fed_cbs.FedCBSSampler._one", note)
    draw(make_sampler("fed-cbs", last_exponent=10.0, exploration=0.0), view_of(counts, 4), np.random.default_rng(0))
    for picked, (free, log_odds) in enumerate(seen):
        imbalance = [class_imbalance(counts[[*range(picked), client]]) for client in free]
        assert log_odds == pytest.approx(-(1 + 3 * picked) * np.log(imbalance))


def test_usable_counts_have_nothing_negative_and_rows_that_add_up():
    found = usable_counts([[3.0, -1.0, 1.0], [-2.0, -3.0, -0.5], [2.0, 2.0, 4.0]], [8, 9, 4])
    assert found == pytest.approx(np.array([[6, 0, 2], [3, 3, 3], [1, 1, 2]]))
    make_view(2, [8, 9, 4], label_counts=found)


@pytest.mark.parametrize(
    ("counts", "sizes", "message"),
    [
        ([[1.0, np.nan], [1, 1]], [2, 2], "nan"),
        ([[1.0, np.inf], [1, 1]], [2, 2], "inf"),
        ([1.0, 2.0], [2, 2], "shape"),
        ([[1.0, 2.0]], [2, 2], "shape"),
    ],
    ids=["nan", "inf", "flat", "too few rows"],
)
def test_counts_that_no_noise_explains_are_refused(counts, sizes, message):
    with pytest.raises(InvalidInput, match=message):
        usable_counts(counts, sizes)
