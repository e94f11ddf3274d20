"""Features against a slow twin, and what they promise: each record by itself, blocks of at most unit norm."""

import math

import numpy as np
import pytest
import torch

from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets.oriented_gradients import oriented_gradients


def images(count, channels=1, height=12, width=16, seed=0):
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.integers(0, 256, size=(count, channels, height, width), dtype=np.uint8))


def slowly(image):
    """The definition, pixel by pixel, for one image."""
    grey = image.numpy().astype(float).mean(axis=0) / 255.0
    height, width = (4 * (side // 4) for side in grey.shape)
    grey = grey[:height, :width]
    cells = np.zeros((8, height // 4, width // 4))
    for y in range(height):
        for x in range(width):
            right = grey[y, x + 1] - grey[y, x - 1] if 0 < x < width - 1 else 0.0
            down = grey[y + 1, x] - grey[y - 1, x] if 0 < y < height - 1 else 0.0
            place = (math.atan2(down, right) % math.pi) * 8 / math.pi
            low = int(place) % 8
            cells[low, y // 4, x // 4] += math.hypot(right, down) * (1 - (place - int(place)))
            cells[(low + 1) % 8, y // 4, x // 4] += math.hypot(right, down) * (place - int(place))
    found = []
    for top in range(height // 4 - 1):
        for left in range(width // 4 - 1):
            block = cells[:, top : top + 2, left : left + 2].ravel()
            found.append(block / math.sqrt((block**2).sum() + 0.01))
    blocks = np.array(found).T.ravel()  # features of a block lie apart: one run of blocks for each
    means = grey.reshape(height // 4, 4, width // 4, 4).mean(axis=(1, 3)).ravel()
    return np.concatenate([blocks, 2.0 * means])


@pytest.mark.parametrize(("channels", "height", "width"), [(1, 12, 16), (3, 8, 8), (1, 14, 11)])
def test_features_are_their_definition(channels, height, width):
    found = oriented_gradients(images(3, channels, height, width))
    for image, row in zip(images(3, channels, height, width), found.numpy(), strict=True):
        assert row == pytest.approx(slowly(image), abs=2e-5)


def test_a_record_is_turned_into_features_by_itself():
    many = images(1201)
    whole = oriented_gradients(many)
    assert torch.equal(whole[700:701], oriented_gradients(many[700:701]))
    changed = many.clone()
    changed[3] = 255 - changed[3]
    others = torch.arange(len(many)) != 3
    assert torch.equal(oriented_gradients(changed)[others], whole[others])


def test_fashion_images_have_1201_features_of_bounded_norm():
    found = oriented_gradients(images(5, 1, 28, 28))
    assert found.shape == (5, 36 * 32 + 49)
    blocks = found[:, : 36 * 32].reshape(5, 32, 36)
    assert (blocks.norm(dim=1) <= 1.0).all()
    assert oriented_gradients(torch.zeros(1, 1, 28, 28, dtype=torch.uint8)).abs().max() == 0.0


def test_what_is_no_image_is_refused():
    for wrong in (torch.zeros(2, 64), torch.zeros(2, 1, 8, 8), torch.zeros(2, 1, 7, 8, dtype=torch.uint8)):
        with pytest.raises(InvalidInput, match="oriented-gradients"):
            oriented_gradients(wrong)
