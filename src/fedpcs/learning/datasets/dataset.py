"""A data set in memory: images and labels, train and test, checked once and then trusted.

Images stay bytes until a batch is used: `normalised` turns a batch into floats, so a set of n images of 3×32×32 takes
3,072·n bytes and not four times that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from fedpcs import _random, _validate
from fedpcs.errors import InvalidInput

_SHAPES = "(records, channels, height, width) of uint8, or (records, …) of floats"


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels, train and test. Make one with `make_dataset` or `load_dataset`: they check it.

    Attributes:
        name: What reports call it.
        train_inputs: (records, channels, height, width) uint8, or (records, …) float32 for a user's own.
        train_targets: (records,) int64, each in [0, num_classes).
        test_inputs: As `train_inputs`.
        test_targets: As `train_targets`.
        num_classes: How many classes there are, also when the records at hand show fewer.
        mean: Per channel of inputs scaled to [0, 1]; () for float inputs, which are used as they are.
        stddev: As `mean`; never zero.
        checksum: SHA-256 of the four tensors with their shapes and types; two sets with one checksum are the same set.
    """

    name: str
    train_inputs: Tensor = field(repr=False)
    train_targets: Tensor = field(repr=False)
    test_inputs: Tensor = field(repr=False)
    test_targets: Tensor = field(repr=False)
    num_classes: int
    mean: tuple[float, ...]
    stddev: tuple[float, ...]
    checksum: str

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one record."""
        return tuple(self.train_inputs.shape[1:])


def make_dataset(
    name: str,
    train: tuple[ArrayLike | Tensor, ArrayLike | Tensor],
    test: tuple[ArrayLike | Tensor, ArrayLike | Tensor],
    num_classes: int | None = None,
    mean: tuple[float, ...] = (),
    stddev: tuple[float, ...] = (),
) -> Dataset:
    """Return a data set of your own arrays or tensors: the bring-your-own door.

    Args:
        name: What reports call it.
        train: (inputs, targets). Inputs are bytes of shape (records, channels, height, width), or floats of shape
            (records, …) that are used as they are. Targets are whole numbers from 0.
        test: As `train`, with records of the same shape and type.
        num_classes: One more than the largest target if absent.
        mean: Per channel of byte inputs scaled to [0, 1]; 0 if absent. It is taken from you and not from the records,
            because a statistic of private records is a release that someone must account for.
        stddev: As `mean`; 1 if absent.

    Raises:
        InvalidInput: Something does not fit, or an input is not finite.

    Guarantees:
        The arrays are copied: later edits of yours cannot reach the data set.

    Example:
        >>> ours = make_dataset("ours", ([[0.5, 1.0], [0.0, 2.0]], [0, 1]), ([[0.1, 0.2]], [1]))
        >>> ours.input_shape, ours.num_classes
        ((2,), 2)
    """
    parts = _copied("train", train), _copied("test", test)
    return assemble(name, *parts, num_classes=num_classes, mean=mean, stddev=stddev)


def assemble(
    name: str,
    train: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    *,
    num_classes: int | None,
    mean: tuple[float, ...],
    stddev: tuple[float, ...],
) -> Dataset:
    """Return a checked data set that keeps the very tensors given, for loaders that hand over what they read."""
    if not (isinstance(name, str) and name):
        raise InvalidInput(f"the name of a data set must be a non-empty text, got {name!r}. Give it one.")
    for label, (inputs, targets) in (("train", train), ("test", test)):
        if inputs.numel() == 0:
            raise InvalidInput(f"{label} must hold one record or more, got shape {tuple(inputs.shape)}. Add records.")
        if len(inputs) != len(targets):
            raise InvalidInput(
                f"{label} must have one target for each record, got {len(inputs)} records and {len(targets)} targets. "
                "Drop what has no partner."
            )
    if train[0].shape[1:] != test[0].shape[1:] or train[0].dtype != test[0].dtype:
        raise InvalidInput(
            f"train and test inputs must be of one shape and type, got {_described(train[0])} and "
            f"{_described(test[0])}. Convert one to the other."
        )
    smallest, largest = int(min(train[1].min(), test[1].min())), int(max(train[1].max(), test[1].max()))
    num_classes = largest + 1 if num_classes is None else num_classes
    num_classes = _validate.integer("num_classes", num_classes, low=1)
    if not (smallest >= 0 and largest < num_classes):
        wrong = smallest if smallest < 0 else largest
        raise InvalidInput(f"targets must be in [0, {num_classes - 1}], got {wrong}. Number the classes from 0.")
    channel_mean, channel_stddev = _channel_statistics(train[0], mean, stddev)
    checksum = _checksum(*train, *test)
    return Dataset(name, *train, *test, num_classes, channel_mean, channel_stddev, checksum)


def normalised(dataset: Dataset, inputs: Tensor) -> Tensor:
    """Return inputs as a network takes them: bytes become (x / 255 − mean) / stddev, floats stay as they are.

    Args:
        dataset: Where the inputs are from.
        inputs: One record or a batch of them, on any device.

    Example:
        >>> grey = torch.full((1, 1, 2, 2), 255, dtype=torch.uint8)
        >>> ours = make_dataset("ours", (grey, [0]), (grey, [0]), mean=(0.5,), stddev=(0.25,))
        >>> normalised(ours, grey).unique()
        tensor([2.])
    """
    if inputs.dtype != torch.uint8:
        return inputs
    if not dataset.mean:
        raise InvalidInput(f"inputs of {dataset.name} must be floats, got uint8. Hand over records of this data set.")
    mean = torch.tensor(dataset.mean, dtype=torch.float32, device=inputs.device).reshape(-1, 1, 1)
    stddev = torch.tensor(dataset.stddev, dtype=torch.float32, device=inputs.device).reshape(-1, 1, 1)
    # The copy that `to` makes is ours alone, so the arithmetic may happen in place.
    return inputs.to(torch.float32).div_(255.0).sub_(mean).div_(stddev)


def hold_out(dataset: Dataset, share: float) -> Dataset:
    """Return the data set with a share of its training records in the place of its test records, for whoever tunes.

    The split is the same for all seeds of a study: settings are compared on the same records.

    Raises:
        InvalidInput: The share is not in (0, 1), or one side would be empty.
    """
    _validate.number("data.validation_share", share, low=0.0, high=1.0)
    num_records = len(dataset.train_targets)
    num_held = round(share * num_records)
    if not 0 < num_held < num_records:
        raise InvalidInput(
            f"data.validation_share = {share:g} of {num_records:,} records leaves {num_records - num_held:,} to train "
            f"on and {num_held:,} to validate on; both must be above 0."
        )
    order = torch.from_numpy(_random.generator(0, "validation").permutation(num_records))
    held, kept = order[:num_held].sort().values, order[num_held:].sort().values
    return replace(
        dataset,
        train_inputs=dataset.train_inputs[kept],
        train_targets=dataset.train_targets[kept],
        test_inputs=dataset.train_inputs[held],
        test_targets=dataset.train_targets[held],
    )


def _copied(label: str, pair: Any) -> tuple[Tensor, Tensor]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise InvalidInput(f"{label} must be a pair (inputs, targets), got {type(pair).__name__}. Give both.")
    inputs, targets = _tensor(f"{label} inputs", pair[0]), _tensor(f"{label} targets", pair[1])
    is_bytes, is_float = inputs.dtype == torch.uint8, inputs.is_floating_point()
    if not (is_float and inputs.ndim >= 2) and not (is_bytes and inputs.ndim == 4):
        raise InvalidInput(f"{label} inputs must be {_SHAPES}, got {_described(inputs)}. Convert them.")
    inputs = inputs.to(torch.float32) if is_float else inputs
    if not bool(torch.isfinite(inputs).all()):
        remedy = "Drop or repair those records."
        raise InvalidInput(f"{label} inputs must be finite as float32, got NaN or infinity. {remedy}")
    if targets.ndim != 1 or targets.dtype == torch.bool or targets.is_floating_point() or targets.is_complex():
        raise InvalidInput(
            f"{label} targets must be (records,) whole numbers, got {_described(targets)}. Convert them."
        )
    return inputs.clone(memory_format=torch.contiguous_format), targets.to(torch.int64, copy=True)


def _tensor(label: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    try:
        array = np.asarray(value)
        return torch.from_numpy(array if array.flags.writeable else array.copy())
    except (TypeError, ValueError) as error:  # ragged lists, objects, texts
        raise InvalidInput(f"{label} must be an array of numbers: {error}. Convert them.") from None


def _channel_statistics(
    inputs: Tensor, mean: tuple[float, ...], stddev: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if inputs.dtype != torch.uint8:
        if tuple(mean) or tuple(stddev):
            raise InvalidInput(
                "mean and stddev must be absent for float inputs, which are used as they are. Drop them."
            )
        return (), ()
    num_channels = inputs.shape[1]
    if not tuple(mean) and not tuple(stddev):
        return (0.0,) * num_channels, (1.0,) * num_channels
    remedy = "Give one number for each channel of inputs scaled to [0, 1]."
    means = _validate.vector("mean", mean, length=num_channels, remedy=remedy)
    stddevs = _validate.vector("stddev", stddev, length=num_channels, remedy=remedy)
    if not bool((stddevs > 0.0).all()):
        raise InvalidInput(f"stddev must be above 0 in every channel, got {tuple(stddev)}. {remedy}")
    return tuple(map(float, means)), tuple(map(float, stddevs))


def _checksum(*tensors: Tensor) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)} {tensor.dtype}\n".encode())
        digest.update(tensor.numpy().reshape(-1).data)  # no copy is made of the records
    return digest.hexdigest()


def _described(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"
