"""Networks: their size by closed form, the same function in every layout, and gradients one record at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedpcs.errors import InvalidInput
from fedpcs.learning.models import MODELS, load_imagenet_weights, make_model, without_batch_norm
from fedpcs.privacy.per_sample import per_sample_gradient

# The smallest image each network can be meant for, so that all of them run in seconds.
SHAPES = {
    "cnn-fashion": (1, 12, 12),
    "cnn-cifar": (3, 12, 12),
    "cnn-cifar-small": (3, 12, 12),
    "cnn-cinic": (3, 12, 12),
    "vgg-11": (3, 32, 32),
    "vgg-16": (3, 32, 32),
    "resnet-18": (3, 32, 32),
    "tanh-cnn": (1, 14, 14),
    "linear": (8, 8),
    "small-mlp": (1, 8, 8),
}
IMAGE_MODELS = {
    "cnn-fashion": 4,
    "cnn-cifar": 4,
    "cnn-cifar-small": 4,
    "cnn-cinic": 4,
    "vgg-11": 32,
    "vgg-16": 32,
    "resnet-18": 32,
    "tanh-cnn": 14,
}


def size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@cache
def small(name: str) -> nn.Module:
    """The network for its small images and three classes; tests only look at it."""
    return make_model(name, SHAPES[name], 3, seed=1)


def records(shape: tuple[int, ...], num_records: int = 2, seed: int = 0) -> Tensor:
    return torch.randn(num_records, *shape, generator=torch.Generator().manual_seed(seed))


def convolution(inputs: int, outputs: int, side: int) -> int:
    return inputs * outputs * side**2 + outputs


def dense(*units: int) -> int:
    return sum(a * b + b for a, b in pairwise(units))


def vgg(*channels: int, num_classes: int) -> int:
    """3×3 convolutions, a scale and a shift per channel, and a head of 512, 512, classes on one pixel."""
    convolutions = sum(convolution(a, b, 3) + 2 * b for a, b in zip((3, *channels), channels, strict=False))
    return convolutions + dense(512, 512, 512, num_classes)


SIZES = [
    ("cnn-fashion", (1, 28, 28), 10, 1_663_370),
    ("cnn-cifar", (3, 24, 24), 10, 1_068_298),
    ("cnn-cifar", (3, 32, 32), 10, 1_756_426),
    (
        "cnn-cifar-small",
        (3, 32, 32),
        10,
        convolution(3, 16, 5) + convolution(16, 16, 5) + dense(16 * 8 * 8, 384, 192, 10),
    ),
    ("cnn-cinic", (3, 32, 32), 10, 2_218_314),
    ("vgg-11", (3, 32, 32), 10, vgg(64, 128, 256, 256, 512, 512, 512, 512, num_classes=10)),
    ("vgg-16", (3, 32, 32), 100, vgg(*[64] * 2, *[128] * 2, *[256] * 3, *[512] * 6, num_classes=100)),
    # torchvision's ResNet-18 has 11,689,512 parameters with 1,000 classes; GroupNorm has as many as BatchNorm.
    ("resnet-18", (3, 64, 64), 1_000, 11_689_512),
    ("tanh-cnn", (1, 28, 28), 10, 26_010),
    ("tanh-cnn", (3, 32, 32), 10, convolution(3, 16, 8) + convolution(16, 32, 4) + dense(32 * 5 * 5, 32, 10)),
    ("linear", (1, 8, 8), 10, dense(64, 10)),
    ("small-mlp", (1, 8, 8), 10, dense(64, 32, 10)),
]


@pytest.mark.parametrize(
    ("name", "shape", "num_classes", "expected"), SIZES, ids=[f"{row[0]}-{k}" for k, row in enumerate(SIZES)]
)
def test_sizes_are_those_of_the_papers(name, shape, num_classes, expected):
    assert size(make_model(name, shape, num_classes, seed=0)) == expected


def test_every_model_is_tried_here():
    assert set(SHAPES) == set(MODELS) == {row[0] for row in SIZES}


DEEP = ("vgg-11", "resnet-18")
TRIED = [name for name in MODELS if name not in (*DEEP, "vgg-16")]


@pytest.mark.parametrize("name", [*TRIED, *(pytest.param(name, marks=pytest.mark.slow) for name in DEEP)])
def test_gradients_of_single_records_are_those_of_autograd(name):
    """With a bound no gradient reaches, the clipped mean is autograd's gradient of the mean loss."""
    model = small(name)
    inputs, targets = records(SHAPES[name]), torch.tensor([0, 2])
    clipped = per_sample_gradient(model, cross_entropy, inputs, targets).clipped_mean(inputs, targets, 1e9)
    gradients = torch.autograd.grad(cross_entropy(model(inputs), targets), list(model.parameters()))
    whole = torch.cat([gradient.reshape(-1).double() for gradient in gradients])
    assert (torch.tensor(clipped.value) - whole).norm() <= 1e-4 * whole.norm()
    assert whole.norm() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_a_record_is_answered_alike_in_any_company(name):
    model = small(name)
    inputs = records(SHAPES[name])
    with torch.no_grad():
        together, alone = model(inputs), torch.cat([model(row.unsqueeze(0)) for row in inputs])
    assert together.shape == (2, 3)
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


def activation_first(layers: nn.Sequential) -> nn.Sequential:
    """The papers' order: each (pool, ReLU) becomes (ReLU, pool)."""
    ordered = list(layers)
    for k, (first, second) in enumerate(pairwise(ordered)):
        if isinstance(first, nn.MaxPool2d) and isinstance(second, nn.ReLU):
            ordered[k], ordered[k + 1] = second, first
    return nn.Sequential(*ordered)


@pytest.mark.parametrize("name", ["cnn-fashion", "cnn-cifar", "cnn-cinic", "vgg-11"])
def test_pooling_before_relu_is_the_same_function_with_the_same_gradient(name):
    model = small(name)
    as_printed = activation_first(model)
    assert [type(layer) for layer in as_printed] != [type(layer) for layer in model]
    inputs, targets = records(SHAPES[name]), torch.tensor([0, 2])
    gradients = []
    for network in (model, as_printed):
        loss = cross_entropy(network(inputs), targets)
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    torch.testing.assert_close(model(inputs), as_printed(inputs))
    torch.testing.assert_close(*gradients)


def test_cifar_pools_hang_over_the_edge_as_tensorflow_pads():
    """TensorFlow's SAME padding of a 3×3 pool of stride 2 on an even side: one row and column, right and below."""
    pools = [layer for layer in make_model("cnn-cifar", (3, 24, 24), 10, seed=0) if isinstance(layer, nn.MaxPool2d)]
    image = records((64, 24, 24), 1)
    padded = nn.functional.pad(image, (0, 1, 0, 1), value=float("-inf"))
    assert len(pools) == 2
    for pool in pools:
        torch.testing.assert_close(pool(image), nn.functional.max_pool2d(padded, 3, stride=2))


@pytest.mark.parametrize("name", ["cnn-fashion", "resnet-18"])
def test_weights_depend_on_the_seed_alone(name):
    before = torch.get_rng_state()
    one = make_model(name, SHAPES[name], 3, seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    same, other = (make_model(name, SHAPES[name], 3, seed=seed) for seed in (5, 6))
    for a, b in zip(one.parameters(), same.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(("name", "least"), IMAGE_MODELS.items())
def test_images_too_small_are_refused_and_the_least_work(name, least):
    with pytest.raises(InvalidInput, match=rf"at least {least}×{least}, got {least}×{least - 1}"):
        make_model(name, (1, least, least - 1), 10, seed=0)
    with pytest.raises(InvalidInput, match=r"\(channels, height, width\), got records of shape \(64,\)"):
        make_model(name, (64,), 10, seed=0)
    if least < 32:  # the others are tried at their least everywhere else
        assert make_model(name, (1, least, least + 3), 2, seed=0)(records((1, least, least + 3))).shape == (2, 2)


@pytest.mark.parametrize(
    ("name", "shape", "num_classes", "message"),
    [
        ("lenet", (1, 28, 28), 10, "'cnn-fashion'.*or package.module:function, got 'lenet'"),
        ("no_such_package.models:make", (1, 28, 28), 10, "cannot be imported: No module named 'no_such_package'"),
        ("math:no_such", (1, 28, 28), 10, "'math:no_such' cannot be imported: .*has no attribute 'no_such'"),
        ("math:pow", (1, 28, 28), 10, "could not be built for records of shape"),
        ("operator:is_", (1, 28, 28), 10, "must return a torch.nn.Module, got bool"),
        ("linear", 64, 10, "input_shape must be a list of sizes, got 64"),
        ("linear", (1, 0, 28), 10, r"input_shape\[1\] must be a whole number of at least 1, got 0"),
        ("linear", (64,), 1, "num_classes must be a whole number of at least 2, got 1"),
    ],
)
def test_bad_requests_are_answered_with_what_is_allowed(name, shape, num_classes, message):
    with pytest.raises(InvalidInput, match=message):
        make_model(name, shape, num_classes, seed=0)


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    name = "a_model_of_my_own"
    (tmp_path / f"{name}.py").write_text(
        "import torch\ntorch.rand(3)\ndef make(shape, classes):\n    return torch.nn.Linear(shape[0], classes)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    sys.modules.pop(name, None)


def test_a_model_of_ones_own_is_called_with_shape_and_classes(own_module):
    """Importing the module draws a random number; the second model, imported already, is still the same."""
    before = torch.get_rng_state()
    first, second = (make_model(f"{own_module}:make", (5,), 3, seed=2) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert first.weight.shape == (3, 5)
    assert torch.equal(first.weight, second.weight)


# GroupNorm for BatchNorm


class Shared(nn.Module):
    """One BatchNorm used in three places, two of them in one container."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.inner = nn.Sequential(nn.Conv2d(8, 8, 3), self.norm, nn.ReLU(), self.norm)

    def forward(self, images: Tensor) -> Tensor:
        return self.inner(self.norm(self.first(images))).mean((2, 3))


def test_no_batch_norm_is_left_and_the_original_is_untouched():
    model = Shared()
    with torch.no_grad():
        model.norm.weight.copy_(torch.arange(8.0))
        model.norm.bias.copy_(-torch.arange(8.0))
    replaced = without_batch_norm(model)
    assert isinstance(model.norm, nn.BatchNorm2d)
    assert isinstance(replaced.norm, nn.GroupNorm)
    assert replaced.norm is replaced.inner[1] is replaced.inner[3]
    assert torch.equal(replaced.norm.weight, model.norm.weight)
    assert torch.equal(replaced.norm.bias, model.norm.bias)
    assert replaced.norm.weight is not model.norm.weight
    assert not list(replaced.buffers())
    assert replaced(records((3, 7, 7))).shape == (2, 8)


def test_what_batch_norm_made_impossible_is_possible_without():
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(72, 6), nn.BatchNorm1d(6))
    inputs, targets = records((1, 5, 5)), torch.tensor([0, 1])
    with pytest.raises(InvalidInput, match="normalises a record by statistics of other records"):
        per_sample_gradient(model, cross_entropy, inputs, targets)
    per_sample_gradient(without_batch_norm(model), cross_entropy, inputs, targets)


@pytest.mark.parametrize(
    ("layer", "num_groups"),
    [
        (nn.BatchNorm2d(64), 32),
        (nn.BatchNorm2d(24), 12),
        (nn.BatchNorm2d(7), 1),
        (nn.BatchNorm2d(1), 1),
        (nn.BatchNorm1d(64), 1),
        (nn.BatchNorm3d(6), 3),
        (nn.BatchNorm2d(8, affine=False), 4),
    ],
    ids=str,
)
def test_a_batch_norm_by_itself_is_replaced(layer, num_groups):
    replaced = without_batch_norm(layer.eval())
    assert isinstance(replaced, nn.GroupNorm)
    assert (replaced.num_groups, replaced.num_channels) == (num_groups, layer.num_features)
    assert replaced.affine == layer.affine
    assert not replaced.training


# ImageNet weights


def torchvision_weights(num_classes: int = 5) -> dict[str, Tensor]:
    """A state dict with the names and shapes of torchvision's ResNet-18, written down independently of our class."""
    shapes = {"conv1.weight": (64, 3, 7, 7), **batch_norm("bn1", 64)}
    inputs = 64
    for stage, outputs in enumerate((64, 128, 256, 512), start=1):
        for block in (0, 1):
            name = f"layer{stage}.{block}"
            shapes |= {f"{name}.conv1.weight": (outputs, inputs, 3, 3), **batch_norm(f"{name}.bn1", outputs)}
            shapes |= {f"{name}.conv2.weight": (outputs, outputs, 3, 3), **batch_norm(f"{name}.bn2", outputs)}
            if inputs != outputs:
                shapes |= {f"{name}.downsample.0.weight": (outputs, inputs, 1, 1)}
                shapes |= batch_norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    shapes |= {"fc.weight": (num_classes, 512), "fc.bias": (num_classes,)}
    # Each tensor holds a number of its own, expanded, so that files are small and none can be taken for another.
    return {name: torch.tensor(float(k)).expand(shape) for k, (name, shape) in enumerate(shapes.items())}


def batch_norm(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    kinds = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{kind}": (channels,) for kind in kinds} | {f"{name}.num_batches_tracked": ()}


@pytest.fixture(scope="module")
def resnet() -> nn.Module:
    return make_model("resnet-18", (3, 32, 32), 5, seed=0)


def saved(weights: object, folder: Path) -> Path:
    torch.save(weights, folder / "resnet18.pth")
    return folder / "resnet18.pth"


def test_imagenet_weights_reach_their_layers(resnet, tmp_path):
    weights = torchvision_weights()
    before = {name: value.clone() for name, value in resnet.state_dict().items()}
    loaded = load_imagenet_weights(resnet, saved(weights, tmp_path))
    for ours, theirs in (
        (loaded.conv1.weight, "conv1.weight"),
        (loaded.norm1.bias, "bn1.bias"),
        (loaded.layer3[0].norm2.weight, "layer3.0.bn2.weight"),
        (loaded.layer4[1].conv2.weight, "layer4.1.conv2.weight"),
        (loaded.layer2[0].shortcut[0].weight, "layer2.0.downsample.0.weight"),
        (loaded.layer2[0].shortcut[1].weight, "layer2.0.downsample.1.weight"),
        (loaded.fc.weight, "fc.weight"),
    ):
        assert torch.equal(ours, weights[theirs])
    assert all(torch.equal(value, before[name]) for name, value in resnet.state_dict().items())


def test_a_head_of_other_classes_is_left_out(resnet, tmp_path):
    weights = torchvision_weights(num_classes=7)
    loaded = load_imagenet_weights(resnet, saved(weights, tmp_path))
    assert torch.equal(loaded.fc.weight, resnet.fc.weight)
    assert torch.equal(loaded.fc.bias, resnet.fc.bias)
    assert torch.equal(loaded.conv1.weight, weights["conv1.weight"])


def lacking(name: str) -> Callable[[], object]:
    return lambda: {key: value for key, value in torchvision_weights().items() if key != name}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lacking("layer1.0.conv1.weight"), "lacks layer1.0.conv1.weight"),
        (lacking("fc.bias"), "lacks fc.bias"),
        (lambda: torchvision_weights() | {"extra": torch.ones(1)}, "has unknown extra"),
        (
            lambda: torchvision_weights() | {"conv1.weight": torch.ones(64, 1, 7, 7)},
            r"conv1.weight has shape \(64, 1, 7, 7\), and the model's is \(64, 3, 7, 7\)",
        ),
        (lambda: [torch.ones(1)], "must hold a dictionary of tensors, got list"),
        (lambda: {"epoch": 3}, "must hold a dictionary of tensors"),
    ],
    ids=["weight", "bias", "extra", "shape", "list", "checkpoint"],
)
def test_files_with_other_weights_are_refused(resnet, tmp_path, make, message):
    with pytest.raises(InvalidInput, match=message):
        load_imagenet_weights(resnet, saved(make(), tmp_path))


def test_missing_damaged_and_hostile_files_are_refused(resnet, tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        load_imagenet_weights(resnet, tmp_path / "none.pth")
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        load_imagenet_weights(resnet, tmp_path)
    whole = saved({"a": torch.ones(1_000)}, tmp_path).read_bytes()
    for name, content in (("empty", b""), ("torn", whole[: len(whole) // 2]), ("words", b"<html>not found</html>")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match="is not a file of weights, or is damaged"):
            load_imagenet_weights(resnet, tmp_path / name)
    with pytest.raises(InvalidInput, match="is not a file of weights"):  # code is not run
        load_imagenet_weights(resnet, saved({"a": Path("hidden")}, tmp_path))
