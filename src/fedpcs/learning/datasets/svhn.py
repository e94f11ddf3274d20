"""SVHN, street view house numbers, cropped: MATLAB files with X (32, 32, 3, records) and y (records, 1).

The files call the digit 0 class 10, as MATLAB counts from 1; here it is class 0.

References:
    Netzer et al. 2011, Reading digits in natural images with unsupervised feature learning.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.splits import Splits


def load_svhn(folder: Path) -> Splits:
    """Return `train_32x32.mat` and `test_32x32.mat` of `folder`."""
    train, test = (_read(folder / f"{part}_32x32.mat") for part in ("train", "test"))
    return Splits(*train, *test)


def _read(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    content = _content(path)
    images, labels = np.asarray(content.get("X")), np.asarray(content.get("y")).reshape(-1)
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
    from scipy.io import loadmat

    if not path.is_file():
        raise InvalidInput(f"{path} is missing. Put the published file there, or fetch the data set.")
    try:
        content: dict[str, Any] = loadmat(path, variable_names=["X", "y"])
    except Exception as error:  # a damaged file can fail in any part of the reader
        raise CorruptFile(
            f"{path} must be a MATLAB file with X and y: {error}. Delete it and fetch it again."
        ) from None
    return content
