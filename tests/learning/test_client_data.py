"""Records reach the client they belong to, and no other."""

import numpy as np
import pytest
import torch

from fedpcs.errors import InvalidInput
from fedpcs.learning.client_data import deal_out, made_data
from fedpcs.learning.datasets import load_dataset, normalised


@pytest.fixture(scope="module")
def digits():
    return load_dataset("digits")


def test_a_client_holds_exactly_the_records_it_was_dealt(digits):
    parts = [np.array([5, 3]), np.array([900]), np.array([0, 1, 2])]
    data = deal_out(digits, parts)
    assert data.num_samples.tolist() == [2, 1, 3]
    for client, part in enumerate(parts):
        inputs, targets = data.records(client)
        assert torch.equal(targets, digits.train_targets[part])
        assert torch.equal(inputs, normalised(digits, digits.train_inputs[part]))
        assert inputs.shape == (len(part), *data.input_shape)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([[0], []], r"parts\[1\]"),
        ([], r"parts\[0\]"),
        ([[0], [-1]], "-1"),
        ([[10**9]], "1000000000"),
    ],
)
def test_parts_that_are_none_are_refused(digits, parts, words):
    with pytest.raises(InvalidInput, match=words):
        deal_out(digits, [np.array(part, dtype=np.int64) for part in parts])


def test_made_records_are_made_when_asked_for_and_only_then():
    asked = []

    def make(client):
        asked.append(client)
        return torch.full((client + 1, 2), float(client)), torch.zeros(client + 1, dtype=torch.long)

    data = made_data(make, [1, 2, 3], (torch.zeros(4, 2), torch.zeros(4, dtype=torch.long)), 2)
    assert (data.num_samples.tolist(), data.input_shape, data.num_tests, data.num_classes) == ([1, 2, 3], (2,), 4, 2)
    assert asked == []
    assert data.records(2)[0].shape == (3, 2)
    assert asked == [2]
    assert data.tests(1, 3)[1].shape == (2,)
