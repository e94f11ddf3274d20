"""The flat vector server and clients agree on: nothing lost, nothing shared, nothing that an update cannot carry."""

import numpy as np
import pytest
import torch
from torch import nn

from fedpcs.errors import InvalidInput
from fedpcs.learning.layout import as_tensor, flat_parameters, layout_of, load_parameters, write_update


def network():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    model[0].bias.requires_grad_(False)
    return model


def test_layout_names_trained_parameters_in_the_models_order():
    found = layout_of(network())
    assert found.names == ("0.weight", "3.weight", "3.bias")
    assert found.shapes == ((3, 2, 3, 3), (4, 12), (4,))
    assert found.num_parameters == 54 + 48 + 4


def test_flat_parameters_are_torchs_own_vector_of_the_trained_ones():
    model = network()
    expected = nn.utils.parameters_to_vector([one for one in model.parameters() if one.requires_grad])
    assert flat_parameters(model).tobytes() == expected.detach().numpy().tobytes()
    assert flat_parameters(model).dtype == np.float32


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_load_and_update_keep_every_number_in_its_place_whatever_the_memory_format(memory_format):
    model = network().to(memory_format=memory_format)
    frozen = model[0].bias.clone()
    new = torch.arange(106.0)
    load_parameters(model, new)
    assert model[0].weight[1, 0, 2, 1] == 18 + 0 + 6 + 1
    assert np.array_equal(flat_parameters(model), new.numpy())
    assert torch.equal(model[0].bias, frozen)
    out = torch.empty(106)
    before = torch.full((106,), 3.0)
    write_update(before, model, out)
    assert torch.equal(out, before - new)


def test_as_tensor_shares_what_may_be_written_and_copies_what_may_not():
    values = np.ones(3, np.float32)
    as_tensor(values)[0] = 5.0
    assert values[0] == 5.0
    values.flags.writeable = False
    as_tensor(values)[0] = 7.0
    assert values[0] == 5.0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "without_batch_norm"),
        (nn.Sequential(nn.Conv2d(1, 1, 1), nn.InstanceNorm2d(1, track_running_stats=True)), "InstanceNorm2d"),
        (nn.Linear(2, 2).requires_grad_(False), "requires gradients"),
        (nn.Linear(2, 2).double(), "float32"),
        (nn.ReLU(), "requires gradients"),
    ],
)
def test_models_an_update_cannot_carry_are_refused(model, words):
    with pytest.raises(InvalidInput, match=words):
        layout_of(model)
