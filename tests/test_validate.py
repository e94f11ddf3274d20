"""Bad values are refused with their name, their value and what would be allowed."""

import math

import numpy as np
import pytest

from fedpcs import _validate
from fedpcs.errors import FedpcsError, InvalidInput, NotConverged

NOT_NUMBERS = [math.nan, math.inf, -math.inf, True, np.True_, "1", None, [1.0], 1j]


@pytest.mark.parametrize("bad", NOT_NUMBERS)
@pytest.mark.parametrize("check", [_validate.number, _validate.positive])
def test_numbers_refuse_what_is_not_a_finite_number(check, bad):
    with pytest.raises(InvalidInput, match="dose must be"):
        check("dose", bad)


@pytest.mark.parametrize("bad", [*NOT_NUMBERS, 1.0, -1, 0, 6])
def test_integers_refuse_the_rest(bad):
    with pytest.raises(InvalidInput, match=r"count must be a whole number in \[1, 5\]"):
        _validate.integer("count", bad, low=1, high=5)


@pytest.mark.parametrize("good", [1, np.int64(3), 5])
def test_integers_accept_whole_numbers_of_any_kind(good):
    assert _validate.integer("count", good, low=1, high=5) == good


@pytest.mark.parametrize("bad", [0, 0.0, -0.0, -1e-300])
def test_positive_refuses_zero_and_below(bad):
    with pytest.raises(InvalidInput, match="above 0"):
        _validate.positive("dose", bad)


def test_a_message_shows_value_range_and_remedy():
    with pytest.raises(InvalidInput) as caught:
        _validate.number("ratio", 1.5, low=0.0, high=1.0, remedy="Divide by N.")
    assert str(caught.value) == "ratio must be a number in [0, 1], got 1.5. Divide by N."


def test_long_values_are_shortened():
    with pytest.raises(InvalidInput) as caught:
        _validate.choice("mode", "x" * 500, ("a", "b"))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "bad",
    [[1.0, math.nan], [1.0, math.inf], [[1.0]], [], ["a"], [True, False], [None], None, [1j], [-0.1], [2.1]],
)
def test_vectors_refuse_what_is_not_flat_finite_and_in_range(bad):
    with pytest.raises(InvalidInput, match="weights"):
        _validate.vector("weights", bad, low=0.0, high=2.0)


def test_a_vector_names_the_entry_that_is_wrong():
    with pytest.raises(InvalidInput, match=r"weights\[2\] must be a number of at least 0, got -3"):
        _validate.vector("weights", [1.0, 2.0, -3.0], low=0.0)


def test_a_vector_is_a_copy():
    mine = np.array([1.0, 2.0])
    theirs = _validate.vector("weights", mine)
    mine[0] = 9.0
    assert theirs[0] == 1.0


def test_wrong_length_says_both_lengths():
    with pytest.raises(InvalidInput, match="must have 3 entries, got 2"):
        _validate.vector("weights", [1.0, 2.0], length=3)


def test_exit_codes_follow_the_contract():
    assert (InvalidInput("x").exit_code, NotConverged("x").exit_code) == (2, 3)
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(NotConverged, FedpcsError)
    assert NotConverged("x", solution=7).solution == 7


@pytest.mark.parametrize("good", ["cpu", "cuda", "cuda:0", "cuda:15", "mps"])
def test_devices_are_named_as_torch_names_them(good):
    assert _validate.device("device", good) == good


@pytest.mark.parametrize(
    "bad", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:1 ", "cuda:\u0661", "cpu:0", "meta", 0, None]
)
def test_other_devices_are_refused(bad):
    with pytest.raises(InvalidInput, match="device must be 'cpu', 'cuda'"):
        _validate.device("device", bad)
