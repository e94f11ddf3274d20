"""`clustered` lays clients end to end and draws one from each unit: unbiased, even, never worse than MD sampling."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.sampling import draw, make_sampler, make_view

STRATA = ["independent", "systematic", "none"]
SIZES = {
    "distinct": [50, 9, 8, 7, 13, 6, 5, 22],
    "with equals": [30, 10, 10, 10, 10, 10, 10, 30],
    "one giant": [500, 3, 2, 2, 1, 1, 4, 7],
}


def times_drawn(drawn, view, num_draws):
    return np.rint(drawn.expansion * num_draws * view.data_weight[drawn.clients])


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 300), min_size=2, max_size=12),
    data=st.data(),
    strata=st.sampled_from(["independent", "systematic"]),
    seed=st.integers(0, 2**32),
)
def test_a_large_client_is_drawn_from_every_interval_it_fills(sizes, data, strata, seed):
    num_draws = data.draw(st.integers(1, len(sizes)))
    view = make_view(num_draws, sizes)
    drawn = draw(make_sampler("clustered", strata=strata), view, np.random.default_rng(seed))
    times = np.zeros(len(sizes))
    times[drawn.clients] = times_drawn(drawn, view, num_draws)
    length = num_draws * view.data_weight
    assert times.sum() == num_draws
    assert (times >= np.floor(length + 1e-9) - 1).all()
    assert (times <= np.ceil(length - 1e-9) + 1).all()
    assert drawn.weights == pytest.approx(times[drawn.clients] / num_draws)
    assert (drawn.inclusion[length >= 2.0] > 1.0 - 1e-9).all()


def test_inclusion_by_hand():
    """Lengths 1.5, 1 and 0.5 on [0, 3): the first fills [0, 1) and half of [1, 2), the next lies across a border."""
    view = make_view(3, [30, 20, 10])
    found = {name: draw(make_sampler("clustered", strata=name), view, np.random.default_rng(0)) for name in STRATA}
    assert found["independent"].inclusion == pytest.approx([1.0, 0.75, 0.5])
    assert found["systematic"].inclusion == pytest.approx([1.0, 1.0, 0.5])
    assert found["none"].inclusion == pytest.approx([1 - 0.5**3, 1 - (2 / 3) ** 3, 1 - (5 / 6) ** 3])


def test_strata_never_add_variance():
    """Updates that follow size are what strata are good at; updates that do not are no worse than with none."""
    rng = np.random.default_rng(0)
    sizes = np.sort(rng.pareto(1.5, 20) * 50 + 5)
    view = make_view(6, sizes)
    updates = np.stack([np.log(sizes), rng.normal(size=20)], axis=1)
    spread = {}
    for strata in STRATA:
        sampler, source = make_sampler("clustered", strata=strata), np.random.default_rng(1)
        drawn = (draw(sampler, view, source) for _ in range(1_000))
        spread[strata] = np.var([one.weights @ updates[one.clients] for one in drawn], axis=0)
    assert spread["independent"][0] < 0.3 * spread["none"][0]
    assert spread["independent"][1] < 1.1 * spread["none"][1]
    target = view.data_weight @ updates
    exact = (view.data_weight @ (updates - target) ** 2) / 6
    assert spread["none"] == pytest.approx(exact, rel=0.15)
