"""CIFAR-10 and CIFAR-100 in their binary version: each record is its labels, then 32×32 bytes of red, green and blue.

CIFAR-10 has one label byte before the 3,072 bytes of the image; CIFAR-100 has two, the coarse class and the fine one,
and the fine one is what we learn. The Python version of the sets is pickled, and reading a pickle runs whatever code
its author put there, so it is never read.

References:
    Krizhevsky 2009, Learning multiple layers of features from tiny images.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_DATA, read_bytes
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.splits import Splits

_IMAGE_BYTES = 3 * 32 * 32


def load_cifar_10(folder: Path) -> Splits:
    """Return the batches of `cifar-10-batches-bin`; of the five of training, those that are there."""
    batches = [folder / f"data_batch_{number}.bin" for number in range(1, 6)]
    train = [path for path in batches if path.is_file()] or batches[:1]
    return _splits(train, folder / "test_batch.bin", num_labels=1, num_classes=10)


def load_cifar_100(folder: Path) -> Splits:
    """Return the two files of `cifar-100-binary`, with their fine labels."""
    return _splits([folder / "train.bin"], folder / "test.bin", num_labels=2, num_classes=100)


def _splits(train: list[Path], test: Path, *, num_labels: int, num_classes: int) -> Splits:
    parts = []
    for paths in (train, [test]):
        rows = np.concatenate([_rows(path, num_labels, num_classes) for path in paths])
        parts.append((np.ascontiguousarray(rows[:, num_labels:]).reshape(-1, 3, 32, 32), _labels(rows, num_labels)))
    return Splits(*parts[0], *parts[1])


def _rows(path: Path, num_labels: int, num_classes: int) -> NDArray[np.uint8]:
    if not path.is_file():
        raise InvalidInput(
            f"{path} is missing. Put the binary version of the data set there, or fetch it; "
            "the Python version is pickled and is never read, for a pickle can run code."
        )
    record_bytes = num_labels + _IMAGE_BYTES
    content = read_bytes(path, MOST_DATA)
    num_bytes = len(content)
    if num_bytes == 0 or num_bytes % record_bytes:
        raise CorruptFile(
            f"{path} must be records of {record_bytes} bytes, got {num_bytes} bytes. Delete it and fetch it again."
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, record_bytes)
    if (largest := int(_labels(rows, num_labels).max())) >= num_classes:
        raise CorruptFile(
            f"{path} must have labels in [0, {num_classes - 1}], got {largest}. Delete it and fetch it again."
        )
    return rows


def _labels(rows: NDArray[np.uint8], num_labels: int) -> NDArray[np.int64]:
    return rows[:, num_labels - 1].astype(np.int64)
