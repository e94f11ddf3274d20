"""ResNet-18 with GroupNorm in place of BatchNorm, laid out as torchvision's so that ImageNet weights fit."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, max_pool2d, relu

from fedpcs.learning.models.norms import group_norm
from fedpcs.learning.models.shapes import image_shape

# The stem shrinks an image four times, stages two to four twice each.
_SHRINKS = 32


class Block(nn.Module):
    """Two 3×3 convolutions and a way around them: relu(convolutions(x) + shortcut(x))."""

    def __init__(self, num_inputs: int, num_outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_inputs, num_outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = group_norm(num_outputs)
        self.conv2 = nn.Conv2d(num_outputs, num_outputs, 3, padding=1, bias=False)
        self.norm2 = group_norm(num_outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or num_inputs != num_outputs:
            self.shortcut.append(nn.Conv2d(num_inputs, num_outputs, 1, stride=stride, bias=False))
            self.shortcut.append(group_norm(num_outputs))

    def forward(self, images: Tensor) -> Tensor:
        """Return what the block makes of (records, channels, height, width)."""
        inner = relu(self.norm1(self.conv1(images)))
        return relu(self.norm2(self.conv2(inner)) + self.shortcut(images))


class ResNet18(nn.Module):
    """A 7×7 convolution, four stages of two blocks, the mean over the image, and one dense layer."""

    def __init__(self, num_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_channels, 64, 7, stride=2, padding=3, bias=False)
        self.norm1 = group_norm(64)
        self.layer1 = nn.Sequential(Block(64, 64, 1), Block(64, 64, 1))
        self.layer2 = nn.Sequential(Block(64, 128, 2), Block(128, 128, 1))
        self.layer3 = nn.Sequential(Block(128, 256, 2), Block(256, 256, 1))
        self.layer4 = nn.Sequential(Block(256, 512, 2), Block(512, 512, 1))
        self.fc = nn.Linear(512, num_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):  # He et al. 2015, arXiv 1502.01852: keeps the scale through ReLUs
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, (records, classes), of (records, channels, height, width)."""
        pooled = relu(max_pool2d(self.norm1(self.conv1(images)), 3, stride=2, padding=1))
        features = self.layer4(self.layer3(self.layer2(self.layer1(pooled))))
        logits: Tensor = self.fc(adaptive_avg_pool2d(features, 1).flatten(1))
        return logits


def resnet_18(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    """Return ResNet-18 as for ImageNet, stem included; Tiny-ImageNet's 64×64 reach its last stage as 2×2."""
    channels, _, _ = image_shape("resnet-18", input_shape, least=_SHRINKS)
    return ResNet18(channels, num_classes)
