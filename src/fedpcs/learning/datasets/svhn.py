"""SVHN, street view house numbers, cropped: MATLAB files with X (32, 32, 3, records) and y (records, 1).

The files call the digit 0 class 10, as MATLAB counts from 1; here it is class 0.

References:
    Netzer et al. 2011, Reading digits in natural images with unsupervised feature learning.
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
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.splits import Splits

_NUMBERS = {"uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "double", "single"}
_PACKED = 15
_CHUNK_BYTES = 1 << 20


def load_svhn(folder: Path) -> Splits:
    """Return `train_32x32.mat` and `test_32x32.mat` of `folder`."""
    train, test = (_read(folder / f"{part}_32x32.mat") for part in ("train", "test"))
    return Splits(*train, *test)


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = _content(path)
    images, labels = (np.asarray(content.get(name)) for name in ("X", "y"))
    labels = labels.reshape(-1)
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        found = f"{images.dtype} of shape {images.shape}"
        raise CorruptFile(
            f"{path} must hold X, bytes of shape (32, 32, 3, records), got {found}. Delete it and fetch it again."
        )
    if not np.issubdtype(labels.dtype, np.number) or len(labels) != images.shape[3]:
        raise CorruptFile(
            f"{path} must hold y, {images.shape[3]} labels, got {len(labels)}. Delete it and fetch it again."
        )
    good = np.isin(labels, np.arange(1, 11))
    if not good.all():
        raise CorruptFile(f"{path} must have labels in [1, 10], got {labels[~good][0]}. Delete it and fetch it again.")
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels.astype(np.int64) % 10


def _content(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat, whosmat

    if not path.is_file():
        raise InvalidInput(f"{path} is missing. Put the published file there, or fetch the data set.")
    with open_regular(path, MOST_DATA) as stream:
        try:
            _check_unpacked(stream)
            # Of other kinds, such as lists of lists, nothing is read: they may be nested without end.
            kinds = {name: kind for name, _, kind in whosmat(path)}
            wanted = [name for name in ("X", "y") if kinds.get(name) in _NUMBERS]
            content: dict[str, Any] = loadmat(path, variable_names=wanted)
        except Exception as error:  # a damaged file can fail in any part of the reader
            raise CorruptFile(
                f"{path} must be a MATLAB file with X and y: {printable(error)}. Delete it and fetch it again."
            ) from None
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
