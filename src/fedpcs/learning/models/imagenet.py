"""ImageNet weights for `resnet-18`, from a file of torchvision's that is already on disk."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import torch
from torch import Tensor, nn

from fedpcs._files import MOST_DATA, open_regular
from fedpcs.errors import InvalidInput
from fedpcs.learning.models.resnet import ResNet18

_HEAD = ("fc.weight", "fc.bias")
_REMEDY = "Use torchvision's own file, resnet18-f37072fd.pth."
_BATCH_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def load_imagenet_weights(model: nn.Module, path: Path) -> nn.Module:
    """Return a copy of a `resnet-18` with torchvision's ImageNet weights.

    Running statistics have no place in GroupNorm and are dropped, so the result is a warm start, not a classifier. The
    head is taken only if it has as many classes.

    Args:
        model: Made by `make_model("resnet-18", …)`, for images of three channels.
        path: torchvision's `resnet18-….pth`, a state dict. It is read without running any code in it.

    Raises:
        InvalidInput: The model is another, or the file cannot be read, or lacks weights, or has them in other shapes.
    """
    if not isinstance(model, ResNet18):
        raise InvalidInput(f"model must be 'resnet-18' to take its weights, got {type(model).__name__}.")
    wanted = model.state_dict()
    given = {_our_name(name): value for name, value in _read(path).items() if not name.endswith(_BATCH_STATISTICS)}
    if "fc.weight" in given and given["fc.weight"].shape != wanted["fc.weight"].shape:
        given |= {name: wanted[name] for name in _HEAD}
    _check(given, wanted, path)
    loaded = copy.deepcopy(model)
    loaded.load_state_dict(given)
    return loaded


def _our_name(name: str) -> str:
    return name.replace("bn", "norm").replace("downsample", "shortcut")


def _read(path: Path) -> dict[str, Tensor]:
    try:
        with open_regular(path, MOST_DATA) as stream:
            weights = torch.load(stream, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InvalidInput(f"{path}: cannot be read: {error.strerror}. Give the path of the weights.") from None
    except (EOFError, LookupError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise InvalidInput(f"{path}: is not a file of weights, or is damaged. {_REMEDY}") from error
    if not (isinstance(weights, dict) and all(isinstance(value, Tensor) for value in weights.values())):
        raise InvalidInput(f"{path}: must hold a dictionary of tensors, got {type(weights).__name__}. {_REMEDY}")
    return weights


def _check(given: dict[str, Tensor], wanted: dict[str, Tensor], path: Path) -> None:
    for problem, names in (("lacks", wanted.keys() - given.keys()), ("has unknown", given.keys() - wanted.keys())):
        if names:
            raise InvalidInput(f"{path}: {problem} {', '.join(sorted(names))}. {_REMEDY}")
    for name, value in wanted.items():
        if given[name].shape != value.shape:
            shapes = f"{tuple(given[name].shape)}, and the model's is {tuple(value.shape)}"
            raise InvalidInput(f"{path}: {name} has shape {shapes}. Use images of three channels, and {_REMEDY}")
