"""Networks of two convolutions: McMahan et al.'s for Fashion-MNIST and CIFAR-10, CINIC-10's, and one for noise."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from fedpcs.learning.models.shapes import image_shape

_LEAST_PIXELS = 4  # two pools, each halving the image
_LEAST_PIXELS_TANH = 14


def cnn_fashion(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return McMahan et al.'s network for 28×28 images: 5×5 convolutions of 32 and 64 channels, dense 512, classes.

    On 1×28×28 with 10 classes it has the paper's 1,663,370 parameters.
    """
    return _two_convolutions("cnn-fashion", input_shape, (32, 64), (512, num_classes))


def cnn_cifar(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return the network of TensorFlow's CIFAR-10 tutorial, which McMahan et al. took, without response normalisation.

    Two 5×5 convolutions of 64 channels, a 3×3 pool of stride 2 after each (windows may hang over the right and lower
    edges, as the tutorial's do), dense 384, dense 192, classes. On McMahan et al.'s 24×24 crops with 10 classes it has
    1,068,298 parameters, their "about 10⁶"; on whole 32×32 images 1,756,426. The tutorial's local response
    normalisation has no parameters, is slow, and later networks do without it.
    """
    return _two_convolutions("cnn-cifar", input_shape, (64, 64), (384, 192, num_classes), wide_pools=True)


def cnn_cifar_small(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return `cnn_cifar` with a quarter of the channels: 477,082 parameters on 3×32×32, several times as fast."""
    return _two_convolutions("cnn-cifar-small", input_shape, (16, 16), (384, 192, num_classes), wide_pools=True)


def cnn_cinic(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return the CINIC-10 network: `cnn_fashion` with one more dense layer of 128: 2,218,314 parameters on 3×32×32."""
    return _two_convolutions("cnn-cinic", input_shape, (32, 64), (512, 128, num_classes))


def _two_convolutions(
    name: str, input_shape: tuple[int, ...], filters: tuple[int, int], units: tuple[int, ...], wide_pools: bool = False
) -> nn.Module:
    """Return two 5×5 convolutions that keep the image's size, with a pool that halves it after each, and a head."""
    channels, height, width = image_shape(name, input_shape, least=_LEAST_PIXELS)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise((channels, *filters)):
        pool = nn.MaxPool2d(3, stride=2, ceil_mode=True) if wide_pools else nn.MaxPool2d(2)
        layers += [nn.Conv2d(inputs, outputs, 5, padding=2), pool, nn.ReLU()]
    layers.append(nn.Flatten())
    for inputs, outputs in pairwise((filters[1] * (height // 4) * (width // 4), *units)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def tanh_cnn(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return the small network made for noisy gradients: 26,010 parameters on 1×28×28 with 10 classes.

    Noise grows with the number of parameters, and tanh keeps gradients small (Papernot et al. 2020, arXiv 2007.14191).
    """
    channels, height, width = image_shape("tanh-cnn", input_shape, least=_LEAST_PIXELS_TANH)
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, stride=2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.Tanh(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(32 * _left_of(height) * _left_of(width), 32),
        nn.Tanh(),
        nn.Linear(32, num_classes),
    )


def _left_of(pixels: int) -> int:
    """Return what `tanh_cnn`'s convolutions and pools leave of an image's side."""
    pooled = pixels // 2 - 1
    return (pooled - 4) // 2 + 1 - 1
