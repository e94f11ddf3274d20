"""Local training is plain minibatch SGD: `torch.optim.SGD` in a loop over the same batches, to float32 rounding."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from toy_clients import CLASSES, FEATURES, WIDE, linear, plain_sgd, records_of, seeded, wide

from fedpcs.learning import chain
from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.local import local_sgd, losses

SIZES = (13,)


def rows():
    return records_of(SIZES, (FEATURES,), 0)


def no_bias():
    return nn.Sequential(
        nn.Linear(FEATURES, WIDE, bias=False), nn.Tanh(), nn.Linear(WIDE, WIDE, bias=False), nn.Linear(WIDE, CLASSES)
    )


def frozen_first():
    model = wide()
    model[0].requires_grad_(False)
    return model


def shared_layer():
    twice = nn.Linear(WIDE, WIDE)
    return nn.Sequential(nn.Linear(FEATURES, WIDE), twice, nn.Tanh(), twice, nn.Linear(WIDE, CLASSES))


def tied_weights():
    model = nn.Sequential(
        nn.Linear(FEATURES, WIDE), nn.Linear(WIDE, WIDE), nn.Tanh(), nn.Linear(WIDE, WIDE), nn.Linear(WIDE, CLASSES)
    )
    model[3].weight = model[1].weight
    return model


def in_place():
    return nn.Sequential(
        nn.Linear(FEATURES, WIDE),
        nn.ReLU(inplace=True),
        nn.Linear(WIDE, WIDE),
        nn.ReLU(inplace=True),
        nn.Linear(WIDE, WIDE),
        nn.ReLU(inplace=True),
        nn.Linear(WIDE, CLASSES),
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(FEATURES, 9), nn.Linear(9, 9), nn.Linear(9, CLASSES)

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.last(hidden + self.second(hidden))


MODELS = [
    linear,
    wide,
    no_bias,
    frozen_first,
    shared_layer,
    tied_weights,
    in_place,
    Residual,
]


def trained_both_ways(model, data, learning_rate=0.3, batch_size=4, num_epochs=3):
    how = {"learning_rate": learning_rate, "batch_size": batch_size, "num_epochs": num_epochs}
    expected, _, _ = plain_sgd(model, data, order=np.random.default_rng(1), **how)
    ours = chain.prepared(model, "cpu")
    local_sgd(ours, data, order=np.random.default_rng(1), **how)
    return ours, expected


def assert_same(ours, expected, start):
    """To float32 rounding, measured against how far training moved."""
    found, wanted = flat_parameters(ours), flat_parameters(expected)
    way = np.linalg.norm(wanted - flat_parameters(start))
    assert way > 0.01
    assert np.linalg.norm(found - wanted) < 2e-5 * way
    for (name, one), other in zip(ours.named_parameters(), expected.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5), name


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_training_is_torchs_own_sgd(make):
    model = seeded(make)
    assert_same(*trained_both_ways(model, rows()), model)


@pytest.mark.parametrize("batch_size", [None, 1, 13, 50])
def test_training_is_torchs_own_sgd_whatever_the_batch(batch_size):
    model = wide()
    assert_same(*trained_both_ways(model, rows(), learning_rate=0.05, batch_size=batch_size), model)


def test_training_on_images_is_torchs_own_sgd():
    model = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 5, padding=2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 4 * 4, 257),
            nn.ReLU(),
            nn.Linear(257, CLASSES),
        )
    )
    assert len(chain.fused_layers(model)) == 1
    assert_same(*trained_both_ways(model, records_of(SIZES, (1, 8, 8), 0)), model)


def test_the_zoo_has_fused_and_unfused_chains():
    assert [len(chain.fused_layers(make())) for make in (linear, wide, in_place, frozen_first)] == [0, 1, 2, 0]


@pytest.mark.parametrize("make", [linear, wide], ids=lambda make: make.__name__)
def test_gradient_variance_is_that_of_the_minibatch_gradients(make):
    model, how = make(), {"learning_rate": 0.3, "batch_size": 4, "num_epochs": 2}
    _, gradients, _ = plain_sgd(model, rows(), order=np.random.default_rng(2), **how)
    flat = np.array([np.concatenate([part.numpy().ravel() for part in one]) for one in gradients], dtype=np.float64)
    expected = ((flat - flat.mean(axis=0)) ** 2).sum() / (len(flat) - 1)
    ours = copy.deepcopy(model)
    told = local_sgd(ours, rows(), order=np.random.default_rng(2), wants_variance=True, **how)
    assert told == pytest.approx(expected, rel=1e-5)
    unasked = copy.deepcopy(model)
    assert local_sgd(unasked, rows(), order=np.random.default_rng(2), **how) is None
    assert np.allclose(flat_parameters(ours), flat_parameters(unasked), atol=1e-6)


def test_losses_are_those_of_every_record_at_the_model_as_it_is():
    model = seeded(lambda: nn.Sequential(nn.Linear(FEATURES, 9), nn.Dropout(0.5), nn.Linear(9, CLASSES)))
    inputs, targets = rows()
    model.eval()
    with torch.no_grad():
        expected = torch.stack(
            [
                functional.cross_entropy(model(one[None]), label[None])
                for one, label in zip(inputs, targets, strict=True)
            ]
        )
    model.train()
    for batch_size in (1, 5, 256):
        assert torch.allclose(losses(model, (inputs, targets), batch_size), expected, atol=1e-6)
