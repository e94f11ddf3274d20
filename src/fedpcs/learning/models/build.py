"""From a name to a network, initialised from a seed alone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from fedpcs import _random, _validate
from fedpcs._plugins import imported
from fedpcs.errors import FedpcsError, InvalidInput
from fedpcs.learning.models.catalogue import MODELS
from fedpcs.learning.models.shapes import check_shape

Builder = Callable[[tuple[int, ...], int], nn.Module]


def make_model(name: str, input_shape: tuple[int, ...], num_classes: int, *, seed: int) -> nn.Module:
    """Return a freshly initialised network, on the CPU.

    Args:
        name: One of `MODELS`, or your own as "package.module:function"; the function is called with the next two.
        input_shape: Shape of one record, such as (channels, height, width).
        num_classes: Number of classes, two or more.
        seed: The run's seed, zero or above.

    Raises:
        InvalidInput: The name is unknown, or the network cannot take records of this shape.

    Guarantees:
        The weights depend on the arguments alone, bit for bit, and torch's global generator is left as it was.

    Example:
        >>> model = make_model("tanh-cnn", (1, 28, 28), 10, seed=0)
        >>> sum(parameter.numel() for parameter in model.parameters())
        26010
    """
    shape, num_classes = check_shape(input_shape, num_classes)
    start = int(_random.generator(seed, "model").integers(2**63))
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        builder = _builder(name)  # inside, because importing someone's module may draw too
        torch.default_generator.manual_seed(start)
        model = _built(builder, name, shape, num_classes)
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model {name!r} must return a torch.nn.Module, got {type(model).__name__}. Return one.")
    return model


def _builder(name: str) -> Builder:
    is_own = isinstance(name, str) and all(name.partition(":"))
    place = name if is_own else MODELS[_validate.choice("model", name, MODELS, or_else="package.module:function")]
    remedy = "It must be package.module:function, a function of (input_shape, num_classes)."
    builder: Builder = imported("model", place, remedy)
    return builder


def _built(builder: Builder, name: str, shape: tuple[int, ...], num_classes: int) -> nn.Module:
    try:
        return builder(shape, num_classes)
    except FedpcsError:
        raise
    except Exception as error:  # a user's function may fail in any way
        raise InvalidInput(
            f"model {name!r} could not be built for records of shape {shape} and {num_classes} classes: {error}. "
            "A function of your own is called with these two, in this order."
        ) from error
