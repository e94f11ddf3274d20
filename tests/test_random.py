"""Every draw is a function of (seed, purpose, round, client) and of nothing else."""

import itertools

import numpy as np
import pytest

from fedpcs._random import generator
from fedpcs.errors import InvalidInput


def first_draw(*key):
    return generator(*key).integers(0, 2**63)


def test_the_same_key_gives_the_same_stream():
    assert np.array_equal(generator(1, "noise", 2, 3).random(100), generator(1, "noise", 2, 3).random(100))


def test_keys_that_differ_anywhere_give_different_streams():
    keys = list(itertools.product([0, 1], ["noise", "cohort"], [0, 1], [0, 1]))
    assert len({first_draw(*key) for key in keys}) == len(keys)


def test_round_and_client_do_not_trade_places():
    assert first_draw(0, "noise", 1, 2) != first_draw(0, "noise", 2, 1)


def test_streams_of_neighbouring_clients_are_uncorrelated():
    """n = 20,000 pairs: a correlation of 0.04 would be seen at 1e-6 (5 standard errors of 0.007)."""
    a, b = (generator(0, "noise", 0, client).standard_normal(20_000) for client in (0, 1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(20_000)


def test_known_value_never_changes():
    """A changed stream would change every published run."""
    assert generator(7, "cohort", 3, 5).integers(0, 1_000_000) == KNOWN


@pytest.mark.parametrize("bad", [-1, 1.0, True, None, float("nan")])
def test_bad_keys_are_refused(bad):
    with pytest.raises(InvalidInput):
        generator(bad, "noise")
    with pytest.raises(InvalidInput):
        generator(0, "noise", bad)
    with pytest.raises(InvalidInput):
        generator(0, "noise", 0, bad)


KNOWN = 540037
