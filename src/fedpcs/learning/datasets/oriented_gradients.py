"""Fixed features of images: histograms of oriented gradients (Dalal and Triggs 2005), and each cell's mean grey.

Noise is paid for by the parameter. A linear model on good features that cost nothing to learn has few parameters, and
at small budgets it does better than a network that learns its own (Tramèr and Boneh 2021). Every record is turned into
features by itself, from nothing but its own pixels, so what is promised for records is promised for their features.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional

from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets.dataset import Dataset

_CELL, _BLOCK, _BINS = 4, 2, 8
_FLOOR = 0.01  # added to a block's squared norm, so that flat blocks stay near zero
_GREY = 2.0  # weight of the cells' means beside blocks of unit norm
_AT_A_TIME = 500


def with_oriented_gradients(dataset: Dataset) -> Dataset:
    """Return the data set with features in the place of images, (records, features) float32.

    Raises:
        InvalidInput: Its records are no images, or smaller than a block.
    """
    train, test = (oriented_gradients(images) for images in (dataset.train_inputs, dataset.test_inputs))
    return replace(dataset, train_inputs=train, test_inputs=test, mean=(), stddev=())


def oriented_gradients(images: Tensor) -> Tensor:
    """Return the features of images, (records, channels, height, width) uint8; edges that fill no cell are cut off.

    Returns:
        (records, features): 32 numbers for each 2 × 2 block of 4 × 4-pixel cells, blocks overlapping by a cell, each
        block of at most unit norm; then twice the mean grey of each cell.
    """
    least = _CELL * _BLOCK
    if images.dtype != torch.uint8 or images.ndim != 4 or min(images.shape[2:]) < least:
        raise InvalidInput(
            f"data.features = 'oriented-gradients' needs images of bytes, at least {least} × {least} pixels, got "
            f"{tuple(images.shape[1:])} of {images.dtype}. Use data.features = 'pixels'."
        )
    return torch.cat([_features(part) for part in torch.split(images, _AT_A_TIME)])


def _features(images: Tensor) -> Tensor:
    height, width = (_CELL * (side // _CELL) for side in images.shape[2:])
    grey = images[:, :, :height, :width].float().mean(dim=1, keepdim=True) / 255.0
    right, down = torch.zeros_like(grey), torch.zeros_like(grey)
    right[..., 1:-1] = grey[..., 2:] - grey[..., :-2]
    down[..., 1:-1, :] = grey[..., 2:, :] - grey[..., :-2, :]
    # A gradient of direction θ, taken modulo π, is shared between the two nearest of eight evenly spaced directions.
    place = torch.atan2(down, right).remainder(math.pi) * (_BINS / math.pi)
    away = (place - torch.arange(_BINS).view(1, -1, 1, 1)).abs()
    share = (1.0 - torch.minimum(away, _BINS - away)).clamp(min=0.0)
    cells = functional.avg_pool2d(torch.hypot(right, down) * share, _CELL) * _CELL**2
    blocks = functional.unfold(cells, _BLOCK)  # (records, bins · cells of a block, blocks)
    blocks = blocks / (blocks.square().sum(dim=1, keepdim=True) + _FLOOR).sqrt()
    return torch.cat([blocks.flatten(1), _GREY * functional.avg_pool2d(grey, _CELL).flatten(1)], dim=1)
