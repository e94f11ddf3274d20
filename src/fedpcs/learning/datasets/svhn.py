"""SVHN, street view house numbers, cropped: MATLAB files with X (32, 32, 3, records) and y (records, 1).

The files call the digit 0 class 10, as MATLAB counts from 1; here it is class 0.
"""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_DATA, open_regular
from fedpcs._outside import printable
from fedpcs.learning.datasets.entry import Download, Entry, Splits, damaged, missing

_NUMBERS = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "double", "single"}
_PACKED = 15
_CHUNK_BYTES = 1 << 20
_STANFORD = "https://ufldl.stanford.edu/housenumbers"
_TRAIN_SHA256 = "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8"
_TEST_SHA256 = "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b"


def load_svhn(folder: Path) -> Splits:
    """Return `train_32x32.mat` and `test_32x32.mat` of `folder`."""
    return Splits(*_read(folder / "train_32x32.mat"), *_read(folder / "test_32x32.mat"))


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = _content(path)
    images, labels = np.asarray(content.get("X")), np.asarray(content.get("y")).reshape(-1)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        found = f"{images.dtype} of shape {images.shape}"
        raise damaged(path, f"must hold X, bytes of shape (32, 32, 3, records), got {found}")
    if not np.issubdtype(labels.dtype, np.number) or len(labels) != images.shape[3]:
        raise damaged(path, f"must hold y, {images.shape[3]} labels, got {len(labels)}")
    good = np.isin(labels, np.arange(1, 11))
    if not good.all():
        raise damaged(path, f"must have labels in [1, 10], got {labels[~good][0]}")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels.astype(np.int64) % 10


def _content(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat, whosmat

    if not path.is_file():
        raise missing(path)
    with open_regular(path, MOST_DATA) as stream:
        try:
            _check_unpacked(stream)
            # Of other kinds, such as lists of lists, nothing is read: they may be nested without end.
            kinds = {name: kind for name, _, kind in whosmat(path)}
            wanted = [name for name in ("X", "y") if kinds.get(name) in _NUMBERS]
            content: dict[str, Any] = loadmat(path, variable_names=wanted)
        except Exception as error:  # a damaged file can fail in any part of the reader
            raise damaged(path, f"must be a MATLAB file with X and y: {printable(error)}") from None
    return content


def _check_unpacked(stream: IO[bytes]) -> None:
    """Unpack what is packed once, piece by piece and keeping nothing, so that no more is read than may be kept.

    A MATLAB file of version 5 is a header of 128 bytes and then elements: kind, length, content.
    """
    order = "<" if stream.read(128)[126:] == b"IM" else ">"
    num_bytes = 0
    while len(tag := stream.read(8)) == 8:
        kind, length = struct.unpack(f"{order}II", tag)
        if kind != _PACKED:
            stream.seek(length, os.SEEK_CUR)
            continue
        unpacking = zlib.decompressobj()
        rest = stream.read(length)
        while rest and not unpacking.eof:
            num_bytes += len(unpacking.decompress(rest, _CHUNK_BYTES))
            rest = unpacking.unconsumed_tail
            if num_bytes > MOST_DATA:
                raise ValueError(f"unpacks to more than {MOST_DATA:,} bytes")


SVHN = Entry(
    name="svhn",
    loader=load_svhn,
    input_shape=(3, 32, 32),
    num_train=73_257,
    num_test=26_032,
    num_classes=10,
    mean=(0.4377, 0.4438, 0.4728),
    stddev=(0.1980, 0.2010, 0.1970),
    citation="Netzer et al. 2011, Reading digits in natural images with unsupervised feature learning",
    terms="non-commercial",
    folder="SVHN",
    downloads=(
        Download(f"{_STANFORD}/train_32x32.mat", f"sha256:{_TRAIN_SHA256}", 182_040_794),
        Download(f"{_STANFORD}/test_32x32.mat", f"sha256:{_TEST_SHA256}", 64_275_384),
    ),
    contents={"train_32x32.mat": _TRAIN_SHA256, "test_32x32.mat": _TEST_SHA256},
)
