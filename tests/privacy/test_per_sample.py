"""Per-sample gradients against a micro-batch loop, against opacus, and on real neighbours (P10–P12)."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fedpcs.errors import InvalidInput
from fedpcs.learning.models.convolutional import cnn_fashion, tanh_cnn
from fedpcs.privacy.clipping import ClippedMean
from fedpcs.privacy.per_sample import per_sample_gradient, refuse_mixing_layers


def group_norm_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=4), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(392, 10, bias=False)
    )


class TiedWeights(nn.Module):
    """Uses one dense layer's weight twice: the short cut must notice and step aside."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(784, 784, bias=False)
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = images.flatten(1)
        return self.head(torch.tanh(self.hidden(rows)) + nn.functional.linear(rows, self.hidden.weight.T))


class Sequence(nn.Module):
    """Applies a dense layer to several rows of one record, and another one twice."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.Linear(28, 6)
        self.again = nn.Linear(168, 168)
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.head = nn.Linear(168, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = torch.tanh(self.each(images.squeeze(1))).flatten(1)
        return self.head(self.scale * torch.tanh(self.again(torch.tanh(self.again(rows)))))


MODELS = {
    "mcmahan": lambda: cnn_fashion((1, 28, 28), 10),
    "tanh": lambda: tanh_cnn((1, 28, 28), 10),
    "group-norm": group_norm_cnn,
    "tied": TiedWeights,
    "sequence": Sequence,
}


def records(num: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num, 1, 28, 28, generator=generator), torch.randint(0, 10, (num,), generator=generator)


def made(name: str, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return MODELS[name]()


def looped(model: nn.Module, inputs: Tensor, targets: Tensor, bound: float) -> np.ndarray:
    """The slow twin: one record, one backward pass, one clip at a time."""
    total = 0.0
    for row, label in zip(inputs, targets, strict=True):
        gradients = torch.autograd.grad(cross_entropy(model(row[None]), label[None]), list(model.parameters()))
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients]).double()
        total = total + flat * min(1.0, bound / float(flat.norm()))
    return (total / len(inputs)).numpy()


def ours(model: nn.Module, inputs: Tensor, targets: Tensor, bound: float) -> ClippedMean:
    return per_sample_gradient(model, cross_entropy, inputs, targets).clipped_mean(inputs, targets, bound)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("bound", [0.5, 1e6])
def test_the_clipped_mean_equals_a_loop_over_single_records(name: str, bound: float) -> None:
    model = made(name)
    inputs, targets = records(7)
    assert np.abs(ours(model, inputs, targets, bound).value - looped(model, inputs, targets, bound)).max() <= 1e-5


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mcmahan", ("7", "9")), ("tanh", ("7", "9")), ("tied", ("head",)), ("sequence", ("head",))],
)
def test_the_short_cut_is_taken_exactly_where_it_holds(name: str, expected: tuple[str, ...]) -> None:
    inputs, targets = records(2)
    assert per_sample_gradient(made(name), cross_entropy, inputs, targets).dense_layers == expected


@pytest.mark.parametrize("name", ["mcmahan", "tanh"])
def test_gradients_equal_those_of_opacus(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from opacus.grad_sample import GradSampleModule

        model = made(name)
        inputs, targets = records(5)
        wrapped = GradSampleModule(made(name), loss_reduction="sum")
        cross_entropy(wrapped(inputs), targets, reduction="sum").backward()
    rows = torch.cat([parameter.grad_sample.flatten(1) for parameter in wrapped.parameters()], dim=1).double()
    clipped = rows * (1.0 / rows.norm(dim=1)).clamp(max=1.0).unsqueeze(1)
    assert np.abs(ours(model, inputs, targets, 1.0).value - clipped.mean(0).numpy()).max() <= 1e-5


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    model = made("sequence")
    inputs, targets = records(9)
    whole = ours(model, inputs, targets, 0.3).value
    monkeypatch.setattr("fedpcs.privacy.per_sample._CHUNK_NUMBERS", 2 * sum(p.numel() for p in model.parameters()))
    assert np.abs(ours(model, inputs, targets, 0.3).value - whole).max() <= 1e-8


@pytest.mark.parametrize("name", ["tanh", "sequence", "group-norm"])
def test_replacing_a_record_moves_the_mean_by_at_most_its_bound(name: str) -> None:
    """Also by a record of enormous, tiny or no content."""
    model = made(name)
    inputs, targets = records(6)
    gradient = per_sample_gradient(model, cross_entropy, inputs, targets)
    before = gradient.clipped_mean(inputs, targets, 0.1)
    limit = before.sensitivity
    largest = 0.0
    for trial, factor in enumerate((1.0, -1.0, 1e4, 1e-4, 0.0, 1e-30)):
        other, labels = inputs.clone(), targets.clone()
        other[3] = factor * records(1, seed=10 + trial)[0][0]
        labels[3] = (labels[3] + 1) % 10
        moved = float(np.linalg.norm(gradient.clipped_mean(other, labels, 0.1).value - before.value))
        largest = max(largest, moved)
        assert moved <= limit * (1.0 + 1e-6)
    assert largest > 0.5 * limit


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_record_that_is_not_finite_counts_as_zero(bad: float) -> None:
    model = made("tanh")
    inputs, targets = records(4)
    spoilt = inputs.clone()
    spoilt[2] = bad
    gradient = per_sample_gradient(model, cross_entropy, inputs, targets)
    found = gradient.clipped_mean(spoilt, targets, 1.0)
    kept = [0, 1, 3]
    others = gradient.clipped_mean(inputs[kept], targets[kept], 1.0)
    assert found.num_records == 4
    assert np.allclose(found.value, others.value * 3 / 4, atol=1e-7)


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm1d(3), nn.BatchNorm2d(3), nn.SyncBatchNorm(3), nn.InstanceNorm2d(3, track_running_stats=True)]
)
def test_layers_that_mix_records_are_refused_with_reason_and_replacement(layer: nn.Module) -> None:
    with pytest.raises(
        InvalidInput, match=r"layer '1' is a \w+: .* statistics of other records.*nn.GroupNorm\(groups, 3\)"
    ):
        refuse_mixing_layers(nn.Sequential(nn.Conv2d(1, 3, 3), layer))


def test_group_and_instance_norm_without_memory_pass() -> None:
    refuse_mixing_layers(nn.Sequential(nn.GroupNorm(1, 4), nn.InstanceNorm2d(4), nn.LayerNorm(4)))


def test_frozen_parameters_are_left_out() -> None:
    model = made("tanh")
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    inputs, targets = records(3)
    found = ours(model, inputs, targets, 1.0)
    assert found.value.size == 26_010 - sum(parameter.numel() for parameter in model[0].parameters())
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(InvalidInput, match="requires gradients"):
        ours(model, inputs, targets, 1.0)


def test_the_model_is_left_as_it_was() -> None:
    model = made("tanh").train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ours(model, *records(3), 1.0)
    assert model.training
    assert all(not module._forward_hooks for module in model.modules())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("shapes", [((0, 1, 28, 28), (0,)), ((2, 1, 28, 28), (3,))])
def test_records_and_targets_must_match(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    inputs, targets = torch.zeros(shapes[0]), torch.zeros(shapes[1], dtype=torch.long)
    with pytest.raises(InvalidInput, match="same records"):
        per_sample_gradient(made("tanh"), cross_entropy, inputs, targets)


class TiedDecoder(nn.Module):
    """Uses a dense weight again in a branch that an empty record leaves dead."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Linear(784, 16)
        self.head = nn.Linear(784, 10)
        with torch.no_grad():
            self.encode.bias.fill_(-0.01)

    def forward(self, images: Tensor) -> Tensor:
        code = torch.relu(self.encode(images.flatten(1)))
        return self.head(nn.functional.linear(code, self.encode.weight.T))


class RunningMean(nn.Module):
    """Keeps a mean of what it has seen, by assignment."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 784))
        self.head = nn.Linear(784, 10)

    def forward(self, images: Tensor) -> Tensor:
        rows = images.flatten(1)
        shifted = rows - self.mean
        self.mean = 0.5 * self.mean + 0.5 * rows.detach()
        return self.head(shifted)


class FirstCallDecides(nn.Module):
    """Sets its scale by the first batch it meets."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.head = nn.Linear(784, 10)
        self.is_set = False

    def forward(self, images: Tensor) -> Tensor:
        if not self.is_set:
            self.scale.data = images.detach().std().reshape(1)
            self.is_set = True
        return self.head(self.scale * images.flatten(1))


@pytest.mark.parametrize("kind", [TiedDecoder, RunningMean])
@pytest.mark.parametrize("factor", [0.0, 1e6, float("nan")])
def test_no_record_decides_how_others_are_differentiated(kind: type[nn.Module], factor: float) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = kind()
    inputs, targets = records(64)
    other = inputs.clone()
    other[0] = factor * other[0]
    means = []
    for data in (inputs, other):
        gradient = per_sample_gradient(model, cross_entropy, data, targets)
        gradient.clipped_mean(data, targets, 0.1)
        means.append(gradient.clipped_mean(data, targets, 0.1))
    moved = float(np.linalg.norm(means[0].value - means[1].value))
    assert moved <= means[0].sensitivity * (1.0 + 1e-6)


def test_a_model_that_sets_itself_up_on_its_first_batch_never_meets_a_record_in_the_trial() -> None:
    model = FirstCallDecides()
    inputs, targets = records(4)
    with contextlib.suppress(InvalidInput):
        per_sample_gradient(model, cross_entropy, 1e6 * inputs, targets)
    assert float(model.scale.detach()) == 1.0
    assert not model.is_set


def test_a_penalty_on_the_weights_in_the_loss_is_refused_not_forgotten() -> None:
    model = made("tanh")

    def penalised(prediction: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(prediction, target) + model[7].weight.square().sum()

    with pytest.raises(InvalidInput, match="a penalty in the loss is not seen"):
        per_sample_gradient(model, penalised, *records(3))


def test_a_layer_called_by_keyword_and_an_in_place_layer_are_right() -> None:
    class ByKeyword(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ReLU(inplace=True)
            self.head = nn.Linear(784, 10)

        def forward(self, images: Tensor) -> Tensor:
            return self.head(input=self.first(images).flatten(1))

    model = ByKeyword()
    inputs, targets = records(5)
    before = inputs.clone()
    found = ours(model, inputs, targets, 0.3).value
    assert torch.equal(inputs, before)
    assert np.abs(found - looped(model, inputs.clone(), targets, 0.3)).max() <= 1e-5


def test_a_model_that_cannot_run_alone_is_named() -> None:
    with pytest.raises(InvalidInput, match="Sequential cannot be differentiated one record at a time"):
        per_sample_gradient(nn.Sequential(nn.Flatten(), nn.Linear(3, 10)), cross_entropy, *records(2))
