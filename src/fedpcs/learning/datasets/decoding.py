"""From image files to one array of bytes, decoded once: the second load maps the array that the first one left.

The array lies in a folder `.fedpcs-decoded` beside the images, under a name made of their names, sizes and times, so a
tree that has changed is decoded afresh. It is written under another name and then renamed: a torn file is never read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import open_regular
from fedpcs._outside import printable
from fedpcs.learning.datasets.entry import damaged

_MOST_IMAGE = 2**24
_CACHE = ".fedpcs-decoded"


def decoded_images(root: Path, part: str, paths: list[Path], side: int) -> NDArray[np.uint8]:
    """Return (records, 3, side, side) bytes of the images at `paths`, all of which lie below `root`.

    Args:
        root: The data set's own folder, which keeps the decoded array.
        part: "train" or "test"; each has an array of its own.
        paths: PNG or JPEG files.
        side: Height and width that every image must have.

    Raises:
        CorruptFile: An image cannot be decoded, or has another size.
    """
    digest = hashlib.sha256(f"{side}\n".encode())
    for path in paths:
        status = path.stat()
        digest.update(f"{path.relative_to(root).as_posix()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    kept = root / _CACHE / f"{part}-{digest.hexdigest()[:32]}.npy"
    array = _mapped(kept, (len(paths), 3, side, side))
    if array is None:
        array = np.empty((len(paths), 3, side, side), dtype=np.uint8)
        for index, path in enumerate(paths):
            array[index] = _decoded(path, side).transpose(2, 0, 1)
        # Keeping it is a convenience: where the data folder cannot be written to, the next load decodes again.
        with contextlib.suppress(OSError):
            _keep(kept, array, part)
    return array


def _decoded(path: Path, side: int) -> NDArray[np.uint8]:
    from PIL import Image

    try:
        with open_regular(path, _MOST_IMAGE) as stream, Image.open(stream, formats=("PNG", "JPEG")) as image:
            size = image.size
            # The size is read from the header, so that a wrong one is refused before its pixels are decoded.
            pixels = np.asarray(image.convert("RGB")) if size == (side, side) else None
    except Exception as error:  # a damaged image can fail in any part of its reader
        raise damaged(path, f"must be a PNG or JPEG image: {printable(error)}") from None
    if pixels is None:
        raise damaged(path, f"must be an image of {side}×{side}, got {size[0]}×{size[1]}")
    return pixels


def _mapped(kept: Path, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
    try:
        # "c" is copy on write: pages are shared until someone writes, and the file never changes.
        array: NDArray[np.uint8] = np.load(kept, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError):  # absent, or not an array after all
        return None
    return array if array.dtype == np.uint8 and array.shape == shape else None


def _keep(kept: Path, array: NDArray[np.uint8], part: str) -> None:
    kept.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        with open(fresh := Path(folder) / kept.name, "wb") as file:
            np.save(file, array)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, kept)
    for other in kept.parent.glob(f"{part}-*.npy"):
        if other != kept:
            other.unlink(missing_ok=True)
