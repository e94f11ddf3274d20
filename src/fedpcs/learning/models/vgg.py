"""VGG-11 and VGG-16 for 32×32 images, with GroupNorm after each convolution.

The convolutions are Simonyan and Zisserman's columns A and D. Their head of two dense layers of 4,096 units was made
for 224×224 images; here both have 512 units and no dropout, so that the eleven and sixteen weighted layers remain.
"""

from __future__ import annotations

from torch import nn

from fedpcs.learning.models.norms import group_norm
from fedpcs.learning.models.shapes import image_shape

# Channels of the convolutions between one pool and the next; the five pools shrink an image 32 times.
_STAGES_11 = ((64,), (128,), (256, 256), (512, 512), (512, 512))
_STAGES_16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
_SHRINKS = 32
_UNITS = 512


def vgg_11(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return VGG-11: eight 3×3 convolutions, dense 512, dense 512, classes."""
    return _vgg("vgg-11", _STAGES_11, input_shape, num_classes)


def vgg_16(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return VGG-16: thirteen 3×3 convolutions, dense 512, dense 512, classes."""
    return _vgg("vgg-16", _STAGES_16, input_shape, num_classes)


def _vgg(name: str, stages: tuple[tuple[int, ...], ...], input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    channels, height, width = image_shape(name, input_shape, least=_SHRINKS)
    layers: list[nn.Module] = []
    for stage in stages:
        for wanted in stage:
            layers += [nn.Conv2d(channels, wanted, 3, padding=1), group_norm(wanted), nn.ReLU()]
            channels = wanted
        layers.insert(-1, nn.MaxPool2d(2))  # before the stage's last ReLU
    pixels = (height // _SHRINKS) * (width // _SHRINKS)
    layers += [nn.Flatten(), nn.Linear(channels * pixels, _UNITS), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(_UNITS, _UNITS), nn.ReLU(), nn.Linear(_UNITS, num_classes))
