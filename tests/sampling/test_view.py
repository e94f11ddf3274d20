"""A view is checked once, where it is built: what is wrong is named with its value, and nothing of it is shared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import make_view
from fedpcs.sampling.view import ACCESS, restricted

SIZES = [50, 30, 20]
PER_CLIENT = ("budget", "noise_power", "update_norm", "gradient_distance", "gradient_variance")


def everything(**others):
    known = {name: [1.0, 2.0, 3.0] for name in PER_CLIENT}
    return make_view(2, SIZES, **{**known, "loss": [1, 2, 3], "label_counts": np.eye(3) + 1, **others})


@pytest.mark.parametrize("name", PER_CLIENT)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, np.nan, 2.0], r"\[1\] must be a number of at least 0, got nan"),
        ([1.0, 2.0, np.inf], r"\[2\] must be .* got inf"),
        ([-0.5, 1.0, 2.0], r"\[0\] must be a number of at least 0, got -0\.5"),
        ([1.0, 2.0], " must have 3 entries, got 2"),
        ([[1.0, 2.0, 3.0]], r" must be a flat list of numbers, got shape \(1, 3\)"),
        (["a", "b", "c"], " must be a list of numbers"),
    ],
)
def test_a_bad_array_is_refused_by_name_and_value(name, value, message):
    with pytest.raises(InvalidInput, match=name + message):
        make_view(2, SIZES, **{name: value})


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"num_samples": [5, 0, 3]}, r"num_samples\[1\] must be above 0, got 0\. Leave out"),
        ({"cohort_size": 4}, r"cohort_size must be a whole number in \[1, 3\], got 4"),
        ({"cohort_size": 1.5}, "cohort_size .* got 1.5"),
        ({"round_index": -1}, "round_index .* got -1"),
        ({"is_available": [1, 1, 0]}, "is_available must be 3 booleans, got int64"),
        ({"is_available": [False] * 3}, "is_available must be true for at least one client"),
        ({"loss": [1.0, np.nan, 0.0]}, r"loss\[1\] .* got nan"),
        ({"budgets": [1.0, 1.0, 1.0]}, "no field 'budgets'; it has budget,"),
        ({"charged": "label_counts"}, "charged must be a list of field names, got 'label_counts'"),
        ({"label_counts": np.ones((3, 1))}, r"label_counts must .* got shape \(3, 1\)"),
        ({"label_counts": [[1, 1], [1, -2], [1, 1]]}, r"label_counts\[1, 1\] must .* got -2.*usable_counts"),
        ({"label_counts": [[1, 1], [0, 0], [1, 1]]}, r"label_counts\[1\] must hold at least one record"),
    ],
)
def test_what_is_wrong_is_said_with_its_value(given_values, message):
    with pytest.raises(InvalidInput, match=message):
        make_view(**{"cohort_size": 2, "num_samples": SIZES, **given_values})


def test_a_view_shares_no_memory_with_what_it_was_built_from():
    given_arrays = {name: np.array([1.0, 2.0, 3.0]) for name in (*PER_CLIENT, "loss")}
    given_arrays |= {"label_counts": np.ones((3, 2)), "is_available": np.array([True, True, False])}
    sizes = np.array([5.0, 6.0, 7.0])
    view = make_view(2, sizes, **given_arrays)
    for name, value in {**given_arrays, "num_samples": sizes}.items():
        assert not np.shares_memory(getattr(view, name), value)


@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=20), data=st.data())
def test_data_weights_add_up_to_one_over_those_who_are_there(sizes, data):
    mask = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)).filter(any))
    weight = make_view(1, sizes, is_available=mask).data_weight
    assert weight.sum() == pytest.approx(1.0, rel=1e-12)
    assert not weight[~np.array(mask)].any()
    there = np.flatnonzero(mask)
    assert weight[there] * sizes[there[0]] == pytest.approx(weight[there[0]] * np.array(sizes)[there], rel=1e-12)


def test_a_restricted_view_holds_what_was_declared_sizes_and_availability():
    view = everything(memory={"norm": np.ones(3)}, round_index=7)
    seen = restricted(view, ("budget", "loss"))
    kept = {name for name in ACCESS if getattr(seen, name) is not None}
    assert kept == {"num_samples", "is_available", "budget", "loss"}
    assert (seen.round_index, seen.cohort_size, list(seen.memory)) == (7, 2, ["norm"])
    assert view.label_counts is not None


def test_every_array_of_a_view_is_public_or_private():
    assert set(ACCESS.values()) == {"public", "private"}
    public = {name for name, access in ACCESS.items() if access == "public"}
    assert public == {"num_samples", "is_available", "budget", "noise_power", "local_steps"}
    assert set(ACCESS) == {*public, *PER_CLIENT, "label_counts", "loss"}


def test_losses_are_asked_of_the_clients_in_question_and_of_nobody_else():
    asked = []

    def answer(clients):
        asked.append(clients.tolist())
        return clients * 10.0

    view = make_view(2, SIZES, loss=answer)
    assert view.losses_of(np.array([0, 2])).tolist() == [0.0, 20.0]
    assert asked == [[0, 2]]
    assert make_view(2, SIZES, loss=[5, 6, 7]).losses_of(np.array([2, 0])).tolist() == [7.0, 5.0]
