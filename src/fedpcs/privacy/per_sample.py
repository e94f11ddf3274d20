"""Per-sample gradients, clipped and averaged: what a `record` step releases before noise.

Each record goes through the model alone (`torch.func.vmap` over a batch of one), with buffers as they were before, so
that no layer sees another record; layers made to mix them are refused with a replacement. Gradients of a dense layer
are never formed: for a row a and the gradient g of the layer's output, the weight's gradient is g aᵀ, its norm ‖g‖‖a‖,
and the clipped sum over records is one matrix product. Goodfellow 2015 (arXiv 1510.01799) has the norm, Bu et al. 2023
(arXiv 2210.00038) the sum. Every other parameter's gradients are formed a chunk of records at a time.

Norms and sums are taken in float64, so that rounding cannot let one record move the mean by more than its bound; on the
CPU where the device has no float64 (`mps`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from fedpcs import _validate
from fedpcs.errors import InvalidInput
from fedpcs.privacy.clipping import ClippedMean, bounded_mean

Loss = Callable[[Tensor, Tensor], Tensor]
Tensors = dict[str, Tensor]

# Scaled gradients are shrunk by this much more than asked, so that rounding cannot lift them over the bound.
_SHRINK = 1.0 - 2.0**-44
# Formed gradients of one chunk of records hold at most this many numbers (float32: 256 MiB).
_CHUNK_NUMBERS = 2**26
_MIXING = (nn.modules.batchnorm._BatchNorm,)
_KEEPING_STATISTICS = (nn.modules.instancenorm._InstanceNorm,)


@dataclass(frozen=True)
class PerSampleGradient:
    """A model and a loss, ready to be differentiated record by record. Make one with `per_sample_gradient`.

    Attributes:
        model: The network; only parameters that require gradients are differentiated.
        loss: (prediction of a batch of one, its target) → a scalar.
        dense_layers: Names of the layers whose gradients need not be formed.
    """

    model: nn.Module
    loss: Loss
    dense_layers: tuple[str, ...]

    def clipped_mean(self, inputs: Tensor, targets: Tensor, l2_bound: float) -> ClippedMean:
        """Return the mean over records of their gradients, each clipped to `l2_bound`; flat, in the model's order.

        Records whose gradient is not finite count as zero.
        """
        bound = _validate.positive("l2_bound", l2_bound)
        num_records = _num_records(inputs, targets)
        parameters = _trained(self.model)
        dense = {f"{layer}.{kind}" for layer in self.dense_layers for kind in ("weight", "bias")}
        formed = {name: value for name, value in parameters.items() if name not in dense}
        num_formed = sum(value.numel() for value in formed.values())
        chunk = max(1, _CHUNK_NUMBERS // max(num_formed, 1))
        sums = {name: in_float64(torch.zeros(value.shape, device=value.device)) for name, value in parameters.items()}
        for rows, labels in zip(torch.split(inputs, chunk), torch.split(targets, chunk), strict=True):
            gradients = self._gradients(formed, rows, labels)
            scale, kept = _clip_factors(gradients, bound)
            _add_clipped(sums, gradients, scale, kept)
        flat = torch.cat([sums[name].reshape(-1) for name in parameters]).cpu().numpy()
        return bounded_mean(flat, bound, num_records)

    def _gradients(self, formed: Tensors, inputs: Tensor, targets: Tensor) -> _Gradients:
        probes = {
            name: torch.zeros(layer.out_features, dtype=layer.weight.dtype, device=layer.weight.device)
            for name, layer in _dense(self.model, self.dense_layers)
        }
        held = {name: value.detach() for name, value in self.model.named_parameters() if name not in formed}
        # Copies of buffers too: what a layer would remember of a record is gone when the record has passed.
        held |= {name: value.detach().clone() for name, value in self.model.named_buffers()}

        def loss_of_one(formed: Tensors, probes: Tensors, row: Tensor, label: Tensor) -> tuple[Tensor, Tensors]:
            with _probed(self.model, probes) as seen:
                prediction = functional_call(self.model, {**formed, **held}, (row.unsqueeze(0),))
            return self.loss(prediction, label.unsqueeze(0)), seen

        of_each = vmap(
            grad(loss_of_one, argnums=(0, 1), has_aux=True), in_dims=(None, None, 0, 0), randomness="different"
        )
        (of_formed, of_outputs), rows_in = of_each(formed, probes, inputs.clone(), targets)
        has_bias = {name: layer.bias is not None for name, layer in _dense(self.model, self.dense_layers)}
        return _Gradients(of_formed, of_outputs, {name: row.flatten(1) for name, row in rows_in.items()}, has_bias)


@dataclass(frozen=True)
class _Gradients:
    """Gradients of a chunk of records: formed ones, and for each dense layer its outputs' and what went in."""

    formed: Tensors
    of_outputs: Tensors
    rows_in: Tensors
    has_bias: dict[str, bool]


def per_sample_gradient(model: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor) -> PerSampleGradient:
    """Check a model, find its dense layers, and return what differentiates it record by record.

    The model is tried on made-up records, and on a copy: what is found depends on the shape and type of the records and
    on nothing they hold, and leaves no trace in the model.

    Args:
        model: The network. Layers that mix records are refused.
        loss: (prediction of a batch of one, its target) → a scalar, such as `torch.nn.functional.cross_entropy`.
        inputs: Records along the first axis; their shape and type are looked at.
        targets: Their targets, likewise.

    Raises:
        InvalidInput: A layer mixes records, or the model cannot be differentiated on one record at a time.
    """
    refuse_mixing_layers(model)
    _num_records(inputs, targets)
    if not _trained(model):
        raise InvalidInput("model must have a parameter that requires gradients, got none. Unfreeze one.")
    try:
        trial = _without_dropout(copy.deepcopy(model))
        made_up, labels = _made_up(inputs), torch.zeros_like(targets[:1])
        dense_layers = _dense_layers(trial, loss, made_up, labels)
        is_right = _agrees(PerSampleGradient(trial, loss, dense_layers), made_up, labels)
        value = loss(trial(made_up.clone()), labels)
        is_right = is_right and not any(_reaches(parameter, value) for parameter in model.parameters())
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"model {type(model).__name__} cannot be differentiated one record at a time: {error}. "
            "Use layers that torch.func.vmap supports, and a loss of prediction and target."
        ) from error
    if not is_right:
        raise InvalidInput(
            f"model {type(model).__name__} has another gradient record by record than as a whole. Use parameters "
            "inside the model's forward alone (a penalty in the loss is not seen), and keep no state between calls."
        )
    return PerSampleGradient(model, loss, dense_layers)


def in_float64(value: Tensor) -> Tensor:
    """Return a tensor in float64, on its device, or on the CPU if the device has none."""
    return (value.cpu() if value.device.type == "mps" else value).double()


def refuse_mixing_layers(model: nn.Module) -> None:
    """Raise if a layer makes one record's output depend on another record.

    Raises:
        InvalidInput: Names the layer, the reason and the replacement.
    """
    for name, layer in model.named_modules():
        keeps_statistics = isinstance(layer, _KEEPING_STATISTICS) and layer.track_running_stats
        if isinstance(layer, _MIXING) or keeps_statistics:
            kind = type(layer).__name__
            channels = getattr(layer, "num_features", "channels")
            raise InvalidInput(
                f"layer {name or 'model'!r} is a {kind}: it normalises a record by statistics of other records, so "
                f"clipping a record's gradient does not bound its influence. Replace it with nn.GroupNorm(groups, "
                f"{channels})."
            )


def _clip_factors(gradients: _Gradients, bound: float) -> tuple[Tensor, Tensor]:
    """Return min(1, C/norm) of the records whose gradient is finite, and which those are."""
    squares = [in_float64(value.reshape(len(value), -1)).square().sum(1) for value in gradients.formed.values()]
    for name, outputs in gradients.of_outputs.items():
        into = in_float64(gradients.rows_in[name]).square().sum(1) + float(gradients.has_bias[name])
        squares.append(in_float64(outputs.flatten(1)).square().sum(1) * into)
    norm = torch.stack(squares).sum(0).sqrt()
    kept = norm.isfinite()
    norm = norm[kept]
    return torch.where(norm > bound * _SHRINK, bound * _SHRINK / norm, torch.ones_like(norm)), kept


def _add_clipped(sums: Tensors, gradients: _Gradients, scale: Tensor, kept: Tensor) -> None:
    """Add each record's clipped gradient to the running sums."""
    for name, value in gradients.formed.items():
        sums[name] += torch.tensordot(scale, in_float64(value[kept.to(value.device)]), dims=1)
    for name, outputs in gradients.of_outputs.items():
        here = kept.to(outputs.device)
        scaled = in_float64(outputs[here].flatten(1)) * scale.unsqueeze(1)
        sums[f"{name}.weight"].addmm_(scaled.T, in_float64(gradients.rows_in[name][here]))
        if gradients.has_bias[name]:
            sums[f"{name}.bias"] += scaled.sum(0)


@contextmanager
def _probed(model: nn.Module, probes: Tensors) -> Iterator[Tensors]:
    """Add a probe to each dense layer's output, and keep what went in: the probe's gradient is the output's."""
    seen: Tensors = {}

    def hook_of(name: str) -> Callable[[nn.Module, tuple[Any, ...], Tensor], Tensor]:
        def hook(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> Tensor:
            seen[name] = arguments[0]
            return output + probes[name]

        return hook

    handles = [layer.register_forward_hook(hook_of(name)) for name, layer in _dense(model, tuple(probes))]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _made_up(inputs: Tensor) -> Tensor:
    """Return a record of the same shape and type that holds nothing of anyone's."""
    like = inputs[:1]
    if not like.is_floating_point():
        return torch.zeros_like(like)
    generator = torch.Generator().manual_seed(0)
    return torch.randn(like.shape, generator=generator).to(like)


def _without_dropout(model: nn.Module) -> nn.Module:
    for layer in model.modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd):
            layer.eval()
    return model


def _dense_layers(model: nn.Module, loss: Loss, one_input: Tensor, one_target: Tensor) -> tuple[str, ...]:
    """Return the dense layers, trained, that a record passes once, as one row, and whose weights nothing else uses.

    With its layer's output cut off, a weight that still reaches the loss is used elsewhere; the graph says so whatever
    the numbers are.
    """
    trained = _trained(model)
    layers = [(name, layer) for name, layer in model.named_modules() if type(layer) is nn.Linear and name]
    found = []
    for name, layer in layers:
        rows, value = _cut_off(model, layer, loss, (one_input.clone(), one_target))
        is_one_row = rows == [torch.Size([1, layer.in_features])]
        is_trained = all(f"{name}.{kind}" in trained for kind, _ in layer.named_parameters())
        if is_one_row and is_trained and not any(_reaches(parameter, value) for parameter in layer.parameters()):
            found.append(name)
    return tuple(found)


def _cut_off(
    model: nn.Module, layer: nn.Module, loss: Loss, record: tuple[Tensor, Tensor]
) -> tuple[list[torch.Size], Tensor]:
    """Return the shapes that go into a layer, and the loss with nothing flowing back through the layer's output."""
    rows: list[torch.Size] = []

    def hook(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> Tensor:
        rows.append(arguments[0].shape if arguments else torch.Size())
        return output.detach()

    handle = layer.register_forward_hook(hook)
    try:
        return rows, loss(model(record[0]), record[1])
    finally:
        handle.remove()


def _reaches(parameter: nn.Parameter, value: Tensor) -> bool:
    if not (value.requires_grad and parameter.requires_grad):
        return False
    return torch.autograd.grad(value, parameter, retain_graph=True, allow_unused=True)[0] is not None


def _agrees(found: PerSampleGradient, one_input: Tensor, one_target: Tensor) -> bool:
    """Check the gradient of one record against autograd's."""
    ours = found.clipped_mean(one_input, one_target, 1e30).value
    parameters = [value for value in found.model.parameters() if value.requires_grad]
    value = found.loss(found.model(one_input.clone()), one_target)
    theirs = torch.autograd.grad(value, parameters, allow_unused=True, materialize_grads=True)
    flat = torch.cat([gradient.reshape(-1) for gradient in theirs]).cpu().double()
    precision = max(torch.finfo(parameter.dtype).eps for parameter in parameters)
    return bool((torch.tensor(ours) - flat).norm() <= 1e3 * precision * flat.norm() + 1e-12)


def _dense(model: nn.Module, names: tuple[str, ...]) -> list[tuple[str, nn.Linear]]:
    found = [(name, model.get_submodule(name)) for name in names]
    return [(name, layer) for name, layer in found if isinstance(layer, nn.Linear)]


def _trained(model: nn.Module) -> Tensors:
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def _num_records(inputs: Tensor, targets: Tensor) -> int:
    if not (inputs.ndim >= 1 and targets.ndim >= 1 and len(inputs) == len(targets) > 0):
        raise InvalidInput(
            f"inputs and targets must hold the same records, at least one, got shapes {tuple(inputs.shape)} and "
            f"{tuple(targets.shape)}. Put records along the first axis."
        )
    return len(inputs)
