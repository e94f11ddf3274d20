"""Fashion-MNIST in IDX files: a magic number, the lengths of the axes, then the bytes. Read gzipped or unzipped.

The magic number is 00 00 08 0d: 08 says unsigned bytes and d is the number of axes. Lengths are big-endian.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_DATA
from fedpcs.learning.datasets.entry import Download, Entry, Splits, damaged, missing
from fedpcs.learning.datasets.folders import present_file, unzipped

# The authors' repository, at a fixed commit: their other address, a bucket's web page, has no https.
_ZALANDO = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/b2617bb6d3ffa2e429640350f613e3291e10b141/"
    "data/fashion"
)


def load_fashion_mnist(folder: Path) -> Splits:
    """Return the four files of `folder`, each of them gzipped or not."""
    return Splits(*_pair(folder, "train"), *_pair(folder, "t10k"))


def _pair(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images_path, labels_path = _find(folder, f"{part}-images-idx3"), _find(folder, f"{part}-labels-idx1")
    images, labels = _read_idx(images_path, num_axes=3), _read_idx(labels_path, num_axes=1)
    if len(images) != len(labels):
        wanted = f"must hold a label for each of the {len(images)} images of {images_path.name}, got {len(labels)}"
        raise damaged(labels_path, wanted)
    return images[:, None], labels.astype(np.int64)


def _find(folder: Path, stem: str) -> Path:
    if path := present_file(folder, f"{stem}-ubyte.gz"):
        return path
    raise missing(folder / f"{stem}-ubyte.gz")


def _read_idx(path: Path, *, num_axes: int) -> NDArray[np.uint8]:
    magic, length = bytes((0, 0, 8, num_axes)), 4 + 4 * num_axes
    with unzipped(path) as stream:
        header = stream.read(length)
        if not header.startswith(magic):
            raise damaged(path, f"must begin with {magic.hex(' ')}, got {header[:4].hex(' ')}")
        if len(header) < length:
            raise damaged(path, f"must have a header of {length} bytes, got {len(header)} bytes")
        shape = tuple(int(n) for n in np.frombuffer(header, ">u4", offset=4))
        if math.prod(shape) > MOST_DATA:
            raise damaged(path, f"must have at most {MOST_DATA:,} bytes, got shape {shape}")
        content = np.empty(math.prod(shape), np.uint8)
        num_read = stream.readinto(content.data)
        if num_read < content.size or stream.read(1):
            found = length + num_read if num_read < content.size else "more"
            raise damaged(path, f"must have {length + content.size} bytes for its shape {shape}, got {found}")
    return content.reshape(shape)


FASHION_MNIST = Entry(
    name="fashion-mnist",
    loader=load_fashion_mnist,
    input_shape=(1, 28, 28),
    num_train=60_000,
    num_test=10_000,
    num_classes=10,
    mean=(0.2860,),
    stddev=(0.3530,),
    citation="Xiao, Rasul and Vollgraf 2017, arXiv 1708.07747",
    terms="MIT",
    folder="FashionMNIST",
    downloads=tuple(
        Download(f"{_ZALANDO}/{name}-ubyte.gz", f"sha256:{sha256}", num_bytes)
        for name, num_bytes, sha256 in (
            ("train-images-idx3", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
            ("train-labels-idx1", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
            ("t10k-images-idx3", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
            ("t10k-labels-idx1", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
        )
    ),
    contents={
        "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
)
