"""Checks on the shape of a record: what a network can take, said before any weight is made."""

from __future__ import annotations

from collections.abc import Sequence

from fedpcs import _validate
from fedpcs.errors import InvalidInput


def check_shape(input_shape: Sequence[int], num_classes: int) -> tuple[tuple[int, ...], int]:
    """Return the shape of a record as positive whole numbers, and the number of classes, two or more."""
    if not isinstance(input_shape, Sequence) or isinstance(input_shape, str) or not input_shape:
        raise InvalidInput(
            f"input_shape must be a list of sizes, got {input_shape!r}. Give one such as (channels, height, width)."
        )
    shape = tuple(_validate.integer(f"input_shape[{k}]", size, low=1) for k, size in enumerate(input_shape))
    return shape, _validate.integer("num_classes", num_classes, low=2)


def image_shape(model: str, input_shape: tuple[int, ...], *, least: int) -> tuple[int, int, int]:
    """Return (channels, height, width) of images at least `least` pixels high and wide.

    Example:
        >>> image_shape("cnn-fashion", (1, 28, 28), least=4)
        (1, 28, 28)
    """
    if len(input_shape) != 3:
        raise InvalidInput(
            f"model {model!r} takes images of shape (channels, height, width), got records of shape {input_shape}. "
            "Reshape them, or use 'linear' or 'small-mlp', which take any shape."
        )
    channels, height, width = input_shape
    if min(height, width) < least:
        raise InvalidInput(
            f"model {model!r} takes images of at least {least}×{least}, got {height}×{width}: its layers would shrink "
            "them to nothing. Enlarge the images, or use a smaller model."
        )
    return channels, height, width
