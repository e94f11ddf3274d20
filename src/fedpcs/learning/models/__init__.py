"""Networks by name, each built from (shape of a record, number of classes) and initialised from a seed alone.

Every network here treats each record by itself: GroupNorm takes the place of BatchNorm everywhere, so that a record's
gradient can be clipped. Where the papers write ReLU, then max-pool, the pool comes first: the larger of two numbers
stays the larger after ReLU, so function and gradient are the same, and ReLU has fewer numbers to visit.

References:
    B. McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data, AISTATS 2017.
    K. Simonyan, A. Zisserman, Very Deep Convolutional Networks, arXiv 1409.1556.
    K. He et al., Deep Residual Learning for Image Recognition, arXiv 1512.03385.
    Y. Wu, K. He, Group Normalization, arXiv 1803.08494.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedpcs.learning.models.build import Builder as Builder
    from fedpcs.learning.models.build import make_model as make_model
    from fedpcs.learning.models.catalogue import MODELS as MODELS
    from fedpcs.learning.models.imagenet import load_imagenet_weights as load_imagenet_weights
    from fedpcs.learning.models.norms import without_batch_norm as without_batch_norm

# Read at first use, so that a misspelt name is refused before torch is imported.
_HOMES = {
    "Builder": "build",
    "MODELS": "catalogue",
    "load_imagenet_weights": "imagenet",
    "make_model": "build",
    "without_batch_norm": "norms",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedpcs.learning.models' has no attribute {name!r}")
    return getattr(importlib.import_module(f"fedpcs.learning.models.{_HOMES[name]}"), name)
