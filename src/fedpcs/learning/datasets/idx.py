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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_DATA, open_regular
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.splits import Splits

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20


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


@contextmanager
def unzipped(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to be read piece by piece, whether or not it is gzipped; nothing is unpacked before it is read.

    Raises:
        CorruptFile: It is gzipped, and damaged.
    """
    with open_regular(path, MOST_DATA) as raw:
        is_gzipped = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        try:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=raw) if is_gzipped else raw)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
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
    magic = bytes((0, 0, 8, num_axes))
    length = 4 + 4 * num_axes
    with unzipped(path) as stream:
        header = stream.read(length)
        if not header.startswith(magic):
            raise CorruptFile(
                f"{path} must begin with {magic.hex(' ')}, got {header[:4].hex(' ')}. Delete it and fetch it again."
            )
        if len(header) < length:
            raise CorruptFile(
                f"{path} must have a header of {length} bytes, got {len(header)} bytes. Delete it and fetch it again."
            )
        shape = tuple(int(n) for n in np.frombuffer(header, ">u4", offset=4))
        if math.prod(shape) > MOST_DATA:
            raise CorruptFile(f"{path} must have at most {MOST_DATA:,} bytes, got shape {shape}. Delete it.")
        content = np.empty(math.prod(shape), np.uint8)
        num_read = 0
        while num_read < content.size and (chunk := stream.read(min(_CHUNK_BYTES, content.size - num_read))):
            content[num_read : num_read + len(chunk)] = np.frombuffer(chunk, np.uint8)
            num_read += len(chunk)
        if num_read < content.size or stream.read(1):
            found = f"{length + num_read}" if num_read < content.size else "more"
            raise CorruptFile(
                f"{path} must have {length + content.size} bytes for its shape {shape}, got {found}. "
                "Delete it and fetch it again."
            )
    return content.reshape(shape)
