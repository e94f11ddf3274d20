"""GroupNorm in place of BatchNorm: normalises a record by its own numbers and by no other record's."""

from __future__ import annotations

import copy

from torch import nn

from fedpcs.errors import InvalidInput

# Wu and He 2018 (arXiv 1803.08494, Table 3): 32 groups do best.
_MOST_GROUPS = 32


def group_norm(num_channels: int) -> nn.GroupNorm:
    """Return the GroupNorm used throughout: up to 32 equal groups, of at least two channels each.

    A group of one channel would turn an image of one pixel into a constant.

    Example:
        >>> group_norm(64).num_groups, group_norm(48).num_groups, group_norm(7).num_groups
        (32, 24, 1)
    """
    return nn.GroupNorm(_num_groups(num_channels), num_channels)


def without_batch_norm(model: nn.Module) -> nn.Module:
    """Return a copy of a network with a GroupNorm in place of every BatchNorm.

    Weights and biases are kept. Running statistics are dropped, so a trained network must be trained a little more.
    BatchNorm1d, which often sees a single number per channel, becomes one group of all channels.

    Raises:
        InvalidInput: A lazy layer does not know its channels yet.

    Example:
        >>> without_batch_norm(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))[1].num_groups
        4
    """
    for name, layer in model.named_modules():
        if isinstance(layer, nn.modules.lazy.LazyModuleMixin):
            raise InvalidInput(
                f"layer {name or 'model'!r} is a {type(layer).__name__} that has not seen a record, so its channels "
                "are unknown. Pass one record through the model first."
            )
    copied = copy.deepcopy(model)
    replacement = {
        layer: _in_place_of(layer) for layer in copied.modules() if isinstance(layer, nn.modules.batchnorm._BatchNorm)
    }
    if copied in replacement:
        return replacement[copied]
    for parent in list(copied.modules()):
        for name, child in list(parent._modules.items()):  # not named_children, which shows a shared layer once
            if child in replacement:
                setattr(parent, name, replacement[child])
    return copied


def _in_place_of(layer: nn.modules.batchnorm._BatchNorm) -> nn.GroupNorm:
    num_groups = 1 if isinstance(layer, nn.BatchNorm1d) else _num_groups(layer.num_features)
    replaced = nn.GroupNorm(num_groups, layer.num_features, eps=layer.eps, affine=layer.affine)
    if layer.affine:
        replaced.weight, replaced.bias = layer.weight, layer.bias
    return replaced.train(layer.training)


def _num_groups(num_channels: int) -> int:
    most = min(_MOST_GROUPS, max(1, num_channels // 2))
    return max(groups for groups in range(1, most + 1) if num_channels % groups == 0)
