"""`random` draws every cohort of K available clients with equal probability."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from fedpcs.sampling import draw, make_sampler, make_view


def test_every_cohort_is_as_likely_as_any_other():
    view = make_view(2, [10, 20, 30, 40, 50])
    rng, num_draws = np.random.default_rng(0), 2_000
    times = dict.fromkeys(combinations(range(5), 2), 0)
    for _ in range(num_draws):
        times[tuple(draw(make_sampler("random"), view, rng).clients.tolist())] += 1
    expected = num_draws / comb(5, 2)
    statistic = sum((count - expected) ** 2 / expected for count in times.values())
    assert statistic < 37.3  # χ² with 9 degrees of freedom, passed once in 40,000 times


def test_inclusion_and_weights_are_those_of_uniform_draws():
    view = make_view(2, [10, 20, 30, 40], is_available=[True, True, False, True])
    drawn = draw(make_sampler("random"), view, np.random.default_rng(0))
    assert drawn.inclusion == pytest.approx([2 / 3, 2 / 3, 0, 2 / 3])
    assert drawn.draw_probability == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])
    assert drawn.weights == pytest.approx(view.data_weight[drawn.clients] * 3 / 2)
    assert drawn.expansion == pytest.approx([1.5, 1.5])
