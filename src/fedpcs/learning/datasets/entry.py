"""What a published data set is: where to fetch it, how to recognise it, what one may do with it, who reads its files.

A data set is one file in this folder with an `Entry` for each of its names, and one line in `catalogue`.

Means and standard deviations are constants of the published sets, not statistics of the records at hand: they say
nothing about anyone's data. Image counts are of the published sets; a folder may hold fewer and still load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedpcs.errors import CorruptFile, InvalidInput


class Splits(NamedTuple):
    """What a loader reads, checked by the caller: images or rows as for `make_dataset`, and labels (records,)."""

    train_inputs: NDArray[np.uint8] | NDArray[np.float32]
    train_targets: NDArray[np.int64]
    test_inputs: NDArray[np.uint8] | NDArray[np.float32]
    test_targets: NDArray[np.int64]


@dataclass(frozen=True)
class Download:
    """A file on its publisher's server.

    Attributes:
        url: Where it is, by https. Its last part is the file's name here.
        checksum: Of the file as it is sent: "sha256:…", or "md5:…" where no SHA-256 is known.
        num_bytes: Its size.
    """

    url: str
    checksum: str
    num_bytes: int

    @property
    def file_name(self) -> str:
        """What it is called once it is here."""
        return self.url.rpartition("/")[2]

    @property
    def is_archive(self) -> bool:
        """Whether it is unpacked once it is here."""
        return self.file_name.endswith((".tar.gz", ".zip"))

    @property
    def has_sha256(self) -> bool:
        """Whether its checksum guards against forgers too; an MD5 guards against accidents."""
        return self.checksum.startswith("sha256:")


@dataclass(frozen=True)
class Entry:
    """A published data set.

    Attributes:
        name: What configurations call it.
        loader: Reads the files of a folder.
        input_shape: Of one record: (channels, height, width) of images.
        num_train: Published training images.
        num_test: Published test images.
        num_classes: Classes.
        citation: Whom to cite.
        terms: What its publishers allow.
        mean: Per channel of the published training images scaled to [0, 1]; () of floats, used as they are.
        stddev: As `mean`.
        folder: Where its files lie, below the data folder; "" if it needs none.
        downloads: What to fetch, in the published format.
        contents: File below `folder` → SHA-256 of its published content, unzipped if it is gzipped. Empty where the set
            is a tree of images: then only a fetch can vouch for it.
    """

    name: str
    loader: Callable[[Path], Splits] = field(repr=False)
    input_shape: tuple[int, ...]
    num_train: int
    num_test: int
    num_classes: int
    citation: str
    terms: str
    mean: tuple[float, ...] = ()
    stddev: tuple[float, ...] = ()
    folder: str = ""
    downloads: tuple[Download, ...] = ()
    contents: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def num_bytes(self) -> int:
        """What a fetch transfers."""
        return sum(download.num_bytes for download in self.downloads)


def damaged(path: Path, demand: str) -> CorruptFile:
    """Return the error of a file that breaks `demand`, such as "must hold 4 bytes, got 3"."""
    return CorruptFile(f"{path} {demand}. Delete it and fetch it again.")


def missing(path: Path, why: str = "") -> InvalidInput:
    """Return the error of a published file that is not there."""
    return InvalidInput(f"{path} is missing. Put the published file there, or fetch the data set.{why}")
