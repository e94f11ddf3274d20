"""Feedback is checked where it is built, and norms, distances and their noise are what their definitions say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpcs.errors import InvalidInput
from fedpcs.sampling import make_feedback
from fedpcs.sampling.feedback import HEARD

CLIENTS = np.array([1, 4, 6])


@pytest.mark.parametrize("name", sorted(HEARD))
@pytest.mark.parametrize(
    ("value", "message"),
    [([1.0, np.nan, 2.0], r"\[1\] must .* got nan"), ([1.0, 2.0], " must have 3 entries, got 2")],
)
def test_a_bad_array_is_refused_by_name_and_value(name, value, message):
    with pytest.raises(InvalidInput, match=name + message):
        make_feedback(CLIENTS, **{name: value})


@pytest.mark.parametrize(
    ("given_values", "message"),
    [
        ({"clients": [4, 1]}, r"clients must be distinct, ascending .* got .*\[4, 1\]"),
        ({"clients": [1, 1]}, r"clients must be distinct, ascending .* got .*\[1, 1\]"),
        ({"norm": [1, 2, 3]}, "no field 'norm'; it has distance_noise_power,"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, got 0.0"),
        ({"local_steps": [4.0, 0.0, 2.0]}, r"local_steps\[1\] must be a number of at least 1, got 0"),
        ({"updates": np.ones((2, 5))}, r"updates must be 3 rows .* got shape \(2, 5\)"),
        ({"updates": np.ones((3, 2)), "data_weight": [1.0, 2.0]}, "data_weight must have 3 entries, got 2"),
        ({"updates": [[1.0, np.nan], [1, 1], [1, 1]]}, r"updates\[0, 1\] must .* got nan"),
    ],
)
def test_what_is_wrong_is_said_with_its_value(given_values, message):
    with pytest.raises(InvalidInput, match=message):
        make_feedback(**{"clients": CLIENTS, **given_values})


def test_norms_and_distances_follow_their_definition():
    updates = np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    found = make_feedback(CLIENTS, updates=updates, data_weight=np.array([1.0, 2.0, 1.0]))
    assert found.update_norm == pytest.approx([5.0, 0.0, 10.0])
    assert found.update_distance == pytest.approx([1.25, 3.75, 6.25])  # from (2.25, 3)
    equal = make_feedback(CLIENTS, updates=updates)
    assert equal.update_distance == pytest.approx([0.0, 5.0, 5.0])
    assert equal.distance_noise_power is None


def test_the_noise_in_a_distance_is_what_sampling_noise_gives():
    """E‖n_i − Σ s_j n_j‖², estimated from 40,000 draws of noise with unequal powers."""
    rng = np.random.default_rng(0)
    power, weight, width = np.array([0.5, 4.0, 1.0]), np.array([3.0, 1.0, 2.0]), 4
    found = make_feedback(CLIENTS, updates=np.zeros((3, width)), data_weight=weight, noise_power=power)
    noise = rng.normal(size=(40_000, 3, width)) * np.sqrt(power / width)[:, None]
    distance = noise - np.einsum("j,tjd->td", weight / weight.sum(), noise)[:, None]
    square = (distance**2).sum(axis=2)
    error = square.std(axis=0) / np.sqrt(len(square))
    assert np.abs((square.mean(axis=0) - found.distance_noise_power) / error).max() < 4.5


def test_distances_of_pseudo_gradients_follow_their_definition():
    """Updates over η·(local steps) are (3, 4), (0, 0) and (6, 8), whatever the steps; so is the noise in them."""
    rows, weight, steps = np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]]), np.array([1.0, 2.0, 1.0]), np.array([1, 7, 3])
    length, power = 0.2 * steps, np.array([0.5, 4.0, 1.0])
    told = {"data_weight": weight, "noise_power": power * length**2, "learning_rate": 0.2}
    found = make_feedback(CLIENTS, updates=rows * length[:, None], local_steps=steps, **told)
    assert found.gradient_distance == pytest.approx([1.25, 3.75, 6.25])
    alike = make_feedback(CLIENTS, updates=rows, data_weight=weight, noise_power=power)
    assert found.gradient_noise_power == pytest.approx(alike.distance_noise_power)
    assert alike.gradient_distance is None


@settings(max_examples=100, deadline=None)
@given(
    weight=st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=6),
    data=st.data(),
)
def test_the_noise_in_a_distance_is_never_refused_as_negative(weight, data):
    """It is a mean square, so at worst rounding makes it less than nothing; that is no mistake of the caller's."""
    power = data.draw(st.lists(st.floats(0.0, 1e6), min_size=len(weight), max_size=len(weight)))
    clients = np.arange(len(weight))
    found = make_feedback(
        clients, updates=np.zeros((len(weight), 1)), data_weight=np.array(weight), noise_power=power
    ).distance_noise_power
    share = np.array(weight) / np.sum(weight)
    rest = [np.delete(share**2 * power, i).sum() for i in clients]
    assert found == pytest.approx((1 - share) ** 2 * power + rest, rel=1e-9, abs=1e-9 * max(power))


def test_released_norms_are_not_private_and_what_is_computed_from_data_is():
    private = {name for name, access in HEARD.items() if access == "private"}
    assert private == {"gradient_variance", "loss", "loss_energy"}
    assert HEARD["update_norm"] == HEARD["update_distance"] == "released"
