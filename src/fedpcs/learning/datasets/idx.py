"""IDX files, the format of MNIST and Fashion-MNIST: a magic number, the lengths of the axes, then the bytes.

The magic number is 00 00 08 0d: 08 says unsigned bytes and d is the number of axes. Lengths are big-endian. Files are
read gzipped, as they are published, or unzipped.

References:
    Xiao, Rasul and Vollgraf 2017, arXiv 1708.07747.
"""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.splits import Splits

_GZIP_MAGIC = b"\x1f\x8b"


def load_fashion_mnist(folder: Path) -> Splits:
    """Return the four files of `folder`, each of them gzipped or not."""
    train_images, train_labels = (find_idx(folder, f"train-{part}") for part in ("images-idx3", "labels-idx1"))
    test_images, test_labels = (find_idx(folder, f"t10k-{part}") for part in ("images-idx3", "labels-idx1"))
    return Splits(*_pair(train_images, train_labels), *_pair(test_images, test_labels))


def find_idx(folder: Path, stem: str) -> Path:
    """Return the file of this stem, gzipped or not."""
    for name in (f"{stem}-ubyte.gz", f"{stem}-ubyte"):
        if (folder / name).is_file():
            return folder / name
    raise InvalidInput(f"{folder / stem}-ubyte.gz is missing. Put the published file there, or fetch the data set.")


def unzipped(path: Path) -> bytes:
    """Return the unzipped content of a file, whether or not it is gzipped."""
    raw = path.read_bytes()
    if not raw.startswith(_GZIP_MAGIC):
        return raw
    try:
        return gzip.decompress(raw)
    except (EOFError, OSError, zlib.error) as error:
        raise CorruptFile(f"{path} must be a whole gzip file: {error}. Delete it and fetch it again.") from None


def _pair(images_path: Path, labels_path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images = _read_idx(images_path, num_axes=3)
    labels = _read_idx(labels_path, num_axes=1)
    if len(images) != len(labels):
        raise CorruptFile(
            f"{labels_path} must hold a label for each of the {len(images)} images of {images_path.name}, "
            f"got {len(labels)}. Delete both and fetch them again."
        )
    return images[:, None], labels.astype(np.int64)


def _read_idx(path: Path, *, num_axes: int) -> NDArray[np.uint8]:
    content = unzipped(path)
    magic = bytes((0, 0, 8, num_axes))
    if not content.startswith(magic):
        raise CorruptFile(
            f"{path} must begin with {magic.hex(' ')}, got {content[:4].hex(' ')}. Delete it and fetch it again."
        )
    header = 4 + 4 * num_axes
    if len(content) < header:
        raise CorruptFile(
            f"{path} must have a header of {header} bytes, got {len(content)} bytes. Delete it and fetch it again."
        )
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", count=num_axes, offset=4))
    if len(content) != header + math.prod(shape):
        raise CorruptFile(
            f"{path} must have {header + math.prod(shape)} bytes for its shape {shape}, got {len(content)}. "
            "Delete it and fetch it again."
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape).copy()  # `content` cannot be written to
