"""`oort` scores by hand, explores on schedule, paces its patience and lets the worn out rest."""

import math

import numpy as np
import pytest

from fedpcs.sampling import biased_draw, draw, make_feedback, make_sampler, make_view, remember, start


def knowing(sampler, num_clients, **known):
    """The sampler's memory at its start, but for what is known."""
    return {**start(sampler, num_clients), **{name: np.array(value, dtype=float) for name, value in known.items()}}


def frequencies(sampler, view, num_draws, seed=0):
    rng, times = np.random.default_rng(seed), np.zeros(view.num_clients)
    for _ in range(num_draws):
        times[draw(sampler, view, rng).clients] += 1
    return times / num_draws


def small_case(**settings):
    """Five clients, all seen: utilities 10 to 100, durations 1 to 8 s, round ten."""
    sampler = make_sampler("oort", exploration=(0.0, 1.0, 0.0), cutoff=0.0, clip_percentile=75.0, **settings)
    memory = knowing(
        sampler,
        5,
        utility=[10, 20, 30, 40, 100],
        duration=[1, 2, 3, 4, 8],
        last_round=[10, 5, 2, 1, 10],
        times=[1] * 5,
        percentile=[50.0],
    )
    return sampler, make_view(1, np.full(5, 10), memory=memory, round_index=9)


# Clipped at the 75th percentile, 40, and scaled: 0, 1/3, 2/3, 1, 1. T is the median duration, 3 s.
STALE = np.sqrt(0.1 * math.log(10) / np.array([10, 5, 2, 1, 10]))
BY_HAND = (np.array([0, 1 / 3, 2 / 3, 1, 1]) + STALE) * np.array([1, 1, 1, (3 / 4) ** 2, (3 / 8) ** 2])


def test_scores_by_hand():
    sampler, view = small_case()
    assert sampler._score(view, np.arange(5)) == pytest.approx(BY_HAND, rel=1e-12)
    steep, view = small_case(slowness_exponent=0.0)
    assert steep._score(view, np.arange(5)) == pytest.approx(np.array([0, 1 / 3, 2 / 3, 1, 1]) + STALE, rel=1e-12)


def test_without_durations_nobody_is_slow_and_an_unknown_one_is_not_either():
    sampler, view = small_case()
    statistical = np.array([0, 1 / 3, 2 / 3, 1, 1]) + STALE
    view.memory["duration"][:] = np.nan
    assert sampler._score(view, np.arange(5)) == pytest.approx(statistical)
    view.memory["duration"][[0, 4]] = [2.0, 6.0]
    assert sampler._score(view, np.arange(5)) == pytest.approx(statistical * [1, 1, 1, 1, (4 / 6) ** 2])


@pytest.mark.parametrize("round_index", [1, 5, 20, 54, 55, 400])
def test_exploration_decays_on_schedule(round_index):
    """Forty of a hundred clients have been seen; ⌊(1 − ε)·K⌋ of the cohort are among them."""
    sampler = make_sampler("oort")
    memory = knowing(sampler, 100, utility=[*range(1, 41), *[np.nan] * 60], last_round=np.ones(100))
    view = make_view(30, np.ones(100), memory=memory, round_index=round_index)
    drawn = draw(sampler, view, np.random.default_rng(0))
    epsilon = max(0.3, 0.9 * 0.98**round_index)
    assert np.count_nonzero(drawn.clients < 40) == math.floor(30 - 30 * epsilon)
    assert drawn.clients.size == 30


def test_what_is_remembered_of_a_round():
    sampler = make_sampler("oort")
    memory = knowing(sampler, 3, utility=[np.nan, np.nan, 7.0], last_round=[0, 0, 3], times=[0, 0, 1])
    view = make_view(2, [10, 20, 30], round_index=4, memory=memory)
    drawn = biased_draw(np.array([0, 2]), np.ones(2))
    heard = make_feedback(np.array([0, 2]), loss_energy=[4.0, 9.0], duration=[1.5, 2.5])
    memory = remember(sampler, view, drawn, heard)
    assert memory["utility"] == pytest.approx([20.0, np.nan, 90.0], nan_ok=True)
    assert memory["duration"] == pytest.approx([1.5, np.nan, 2.5], nan_ok=True)
    assert memory["last_round"].tolist() == [5.0, 0.0, 5.0]
    assert memory["times"].tolist() == [1.0, 0.0, 2.0]
    assert memory["utility_by_round"].tolist() == [90.0]  # the newcomer was explored, not exploited


@pytest.mark.parametrize(
    ("earlier", "gained", "percentile", "expected"),
    [
        ([10, 10, 10], 10.0, 50.0, 55.0),
        ([10, 10, 11], 10.9, 50.0, 55.0),
        ([10, 10, 12], 12.0, 50.0, 50.0),
        ([10, 10, 60], 60.0, 50.0, 45.0),
        ([10, 10, 60], 60.0, 32.0, 30.0),
        ([10, 10, 10], 10.0, 98.0, 100.0),
        ([10, 10, 10, 10], 10.0, 50.0, 50.0),
        ([10], 10.0, 50.0, 50.0),
    ],
    ids=["stands still", "within a tenth", "grows", "jumps", "to its start", "to the end", "between", "too early"],
)
def test_the_pacer_relaxes_when_utility_stands_still_and_tightens_when_it_jumps(earlier, gained, percentile, expected):
    sampler = make_sampler("oort", pacer_rounds=2)
    memory = knowing(
        sampler, 3, utility=np.ones(3), last_round=np.ones(3), utility_by_round=earlier, percentile=[percentile]
    )
    view = make_view(1, np.ones(3), memory=memory, round_index=len(earlier))
    drawn = biased_draw(np.array([1]), np.ones(1))
    after = remember(sampler, view, drawn, make_feedback(np.array([1]), loss_energy=[gained**2]))
    assert after["percentile"].tolist() == [expected]


def test_the_most_worn_out_rest_and_no_more_than_three_in_ten():
    sampler = make_sampler("oort", most_rounds=3, exploration=(0.0, 1.0, 0.0), cutoff=0.0)
    times = [9, 1, 8, 1, 3, 3, 7, 1, 6, 1]
    memory = knowing(sampler, 10, utility=np.full(10, 5.0), last_round=np.ones(10), times=times)
    found = frequencies(sampler, make_view(3, np.ones(10), memory=memory), 200)
    assert np.flatnonzero(found == 0.0).tolist() == [0, 2, 6]
    tireless = make_sampler("oort", exploration=(0.0, 1.0, 0.0), cutoff=0.0)
    assert (frequencies(tireless, make_view(3, np.ones(10), memory=memory), 200) > 0.0).all()
