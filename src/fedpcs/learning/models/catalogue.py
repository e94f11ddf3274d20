"""The networks that fedpcs knows by name: where the function is that builds each.

A new one is a function of (shape of a record, number of classes) and a line here. Names are checked without torch.
"""

from __future__ import annotations

MODELS: dict[str, str] = {
    "cnn-fashion": "fedpcs.learning.models.convolutional:cnn_fashion",
    "cnn-cifar": "fedpcs.learning.models.convolutional:cnn_cifar",
    "cnn-cifar-small": "fedpcs.learning.models.convolutional:cnn_cifar_small",
    "cnn-cinic": "fedpcs.learning.models.convolutional:cnn_cinic",
    "vgg-11": "fedpcs.learning.models.vgg:vgg_11",
    "vgg-16": "fedpcs.learning.models.vgg:vgg_16",
    "resnet-18": "fedpcs.learning.models.resnet:resnet_18",
    "tanh-cnn": "fedpcs.learning.models.convolutional:tanh_cnn",
    "linear": "fedpcs.learning.models.dense:linear",
    "small-mlp": "fedpcs.learning.models.dense:small_mlp",
}
