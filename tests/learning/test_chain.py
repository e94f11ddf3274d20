"""A chain of layers computes what the model computes, and fuses only layers whose step nothing else can notice."""

import copy

import pytest
import torch
from torch import nn

from fedpcs.learning import chain

LARGE = nn.Linear(256, 256).weight.numel()


def dense(*extra):
    return nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), *extra)


def with_a_layer_used_twice():
    twice = nn.Linear(256, 256)
    return nn.Sequential(nn.Linear(4, 256), twice, nn.Tanh(), twice)


def with_an_activation_used_twice():
    relu = nn.ReLU()
    return nn.Sequential(nn.Linear(4, 5), relu, nn.Linear(5, 4), relu, nn.Linear(4, 3))


def with_tied_weights():
    model = nn.Sequential(nn.Linear(4, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 256))
    model[4].weight = model[2].weight
    return model


def with_a_layer_inside_another():
    inner = nn.Linear(256, 256)
    return nn.Sequential(nn.Linear(4, 256), nn.Sequential(inner, nn.Tanh()), inner)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 256), nn.Linear(256, 256)

    def forward(self, inputs):
        hidden = self.first(inputs)
        return hidden + self.second(hidden)


def images(channels=3):
    return nn.Sequential(
        nn.Conv2d(channels, 24, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 6, 5, padding=2),  # read channel by channel where there is no AVX-512
        nn.GroupNorm(2, 6),
        nn.Conv2d(6, 4, 3),
        nn.Flatten(),
        nn.Linear(16, 3),
    )


DENSE = [
    dense,
    with_a_layer_used_twice,
    with_an_activation_used_twice,
    with_tied_weights,
    with_a_layer_inside_another,
    Residual,
    lambda: nn.Linear(4, 3),
    lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 3)), nn.ReLU()),
]


@pytest.mark.parametrize("make", DENSE, ids=lambda make: make.__name__)
def test_forward_is_the_models_own(make):
    model = make().eval()
    inputs = torch.randn(5, 4)
    with torch.no_grad():
        assert torch.equal(chain.forward(chain.prepared(model, "cpu"), inputs), model(inputs))


@pytest.mark.parametrize("has_avx512", [False, True])
@pytest.mark.parametrize("make", [images, lambda: nn.Sequential(images(), nn.Softmax(1))], ids=["chain", "nested"])
def test_forward_of_images_is_the_models_own_to_rounding(make, has_avx512, monkeypatch):
    monkeypatch.setattr(chain, "_HAS_AVX512", has_avx512)
    model = make()
    inputs = torch.randn(5, 3, 8, 8)
    with torch.no_grad():
        assert torch.allclose(chain.forward(chain.prepared(model, "cpu"), inputs), model(inputs), atol=1e-6)


def test_hooks_of_a_chain_are_called():
    model = dense()
    model.register_forward_hook(lambda module, inputs, output: output * 0.0)
    assert not chain.forward(model, torch.randn(2, 4)).any()
    assert chain.fused_layers(model) == ()


def test_prepared_leaves_the_model_alone_and_changes_no_number():
    model = images()
    before = copy.deepcopy(model.state_dict())
    made = chain.prepared(model, "cpu")
    for name, value in made.state_dict().items():
        assert torch.equal(value, before[name])
        assert value.data_ptr() != model.state_dict()[name].data_ptr()
    assert all(one.is_contiguous() for one in model.parameters())


def test_large_dense_layers_behind_trained_ones_are_fused():
    model = dense(nn.Linear(256, 3))
    assert chain.fused_layers(model) == (model[2],)


def test_the_first_trained_layer_is_never_fused():
    model = nn.Sequential(nn.Linear(256, 256), nn.Linear(256, 256))
    assert chain.fused_layers(model) == (model[1],)
    model[0].requires_grad_(False)
    assert chain.fused_layers(model) == ()


def without_bias():
    return nn.Sequential(nn.Linear(4, 256), nn.Linear(256, 256, bias=False))


def frozen():
    model = dense()
    model[2].requires_grad_(False)
    return model


def half_frozen():
    model = dense()
    model[2].bias.requires_grad_(False)
    return model


def small():
    return nn.Sequential(nn.Linear(4, 256), nn.Linear(256, 255))


def with_a_hook():
    model = dense()
    model[2].register_forward_hook(lambda module, inputs, output: 2.0 * output)
    return model


@pytest.mark.parametrize(
    "make",
    [
        with_a_layer_used_twice,
        with_tied_weights,
        with_a_layer_inside_another,
        without_bias,
        frozen,
        half_frozen,
        small,
        with_a_hook,
        Residual,
    ],
    ids=lambda make: make.__name__,
)
def test_layers_whose_step_could_be_noticed_are_not_fused(make):
    assert LARGE == 2**16
    assert chain.fused_layers(make()) == ()
