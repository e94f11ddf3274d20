"""The order in which a model's parameters lie in one flat vector: what server and clients must agree on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedpcs.errors import InvalidInput

Values = NDArray[np.float32]


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a model's trained parameters, in the model's own order.

    Attributes:
        names: One for each parameter.
        shapes: Likewise.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    @property
    def num_parameters(self) -> int:
        """d, how many numbers an update has."""
        return sum(math.prod(shape) for shape in self.shapes)


def layout_of(model: nn.Module) -> Layout:
    """Return the layout of a model's trained parameters.

    Raises:
        InvalidInput: It has none, or keeps statistics of the records it sees, which no update carries.

    Example:
        >>> layout_of(nn.Linear(3, 2))
        Layout(names=('weight', 'bias'), shapes=((2, 3), (2,)))
    """
    for name, layer in model.named_modules():
        if isinstance(layer, nn.modules.batchnorm._NormBase) and layer.track_running_stats:
            raise InvalidInput(
                f"layer {name or 'model'!r} is a {type(layer).__name__}: it keeps statistics of the records it sees, "
                "which an update does not carry. Replace it: fedpcs.learning.models.without_batch_norm(model)."
            )
    trained = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    if not trained:
        raise InvalidInput("model must have a parameter that requires gradients, got none. Unfreeze one.")
    for name, value in trained:
        if value.dtype != torch.float32:
            raise InvalidInput(f"parameter {name!r} must be float32, got {value.dtype}. Call model.float().")
    return Layout(tuple(name for name, _ in trained), tuple(tuple(value.shape) for _, value in trained))


def flat_parameters(model: nn.Module) -> Values:
    """Return a copy of a model's trained parameters as one vector."""
    parts = [value.detach().reshape(-1) for value in model.parameters() if value.requires_grad]
    found: Values = torch.cat(parts).cpu().numpy()
    return found


def as_tensor(values: Values) -> Tensor:
    """Return a tensor over the same numbers; over a copy if they are read-only, which torch cannot express."""
    return torch.from_numpy(values if values.flags.writeable else values.copy())


def load_parameters(model: nn.Module, values: Tensor) -> None:
    """Overwrite a model's trained parameters, on whatever device, with those of a flat vector."""
    start = 0
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                end = start + parameter.numel()
                parameter.copy_(values[start:end].view(parameter.shape))
                start = end
    assert start == values.numel()


def write_update(before: Tensor, model: nn.Module, out: Tensor) -> None:
    """Write `before` − the model's trained parameters into `out`, both flat and on the CPU."""
    start = 0
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                end = start + parameter.numel()
                shape = parameter.shape
                torch.sub(before[start:end].view(shape), parameter.cpu(), out=out[start:end].view(shape))
                start = end
