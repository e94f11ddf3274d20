"""What lies in a data set's folder: is it readable, how much of it is there, and is it what was published?"""

from __future__ import annotations

import enum
import hashlib
from dataclasses import dataclass
from pathlib import Path

from fedpcs._files import MOST_DATA
from fedpcs.learning.datasets.catalogue import find_entry
from fedpcs.learning.datasets.dataset import Dataset
from fedpcs.learning.datasets.entry import Entry
from fedpcs.learning.datasets.folders import data_folder, is_as_fetched, present_file, unzipped
from fedpcs.learning.datasets.load import load_dataset


class Verdict(enum.StrEnum):
    """What a check found; each member is the sentence that users read."""

    PUBLISHED = "the published files"
    SUBSET = "subset of the published set: fewer images, which no published checksum covers"
    OTHER = "not the published files: as many images or more, and other content"
    UNVERIFIED = "as many images as published, but no fetch vouches for their content"
    EMBEDDED = "comes with scikit-learn"
    OWN = "a data set of your own"


@dataclass(frozen=True)
class FileCheck:
    """One file of a data set.

    Attributes:
        name: Below the data set's folder.
        sha256: Of its content, unzipped if it is gzipped.
        is_published: Whether that is the published content.
    """

    name: str
    sha256: str
    is_published: bool


@dataclass(frozen=True)
class DatasetCheck:
    """A data set that could be read, and how it compares with what was published.

    Attributes:
        name: The data set.
        folder: Where its files lie; None if it needs none.
        verdict: How it compares.
        num_train: Training images here.
        num_test: Test images here.
        num_classes: Classes of the published set.
        checksum: Of the data set in memory, as in `Dataset`.
        files: The files a checksum is published for, those that are here.
    """

    name: str
    folder: Path | None
    verdict: Verdict
    num_train: int
    num_test: int
    num_classes: int
    checksum: str
    files: tuple[FileCheck, ...] = ()


def check_dataset(name: str, data_dir: Path | None = None) -> DatasetCheck:
    """Read a data set from its files and compare it with what was published.

    Args:
        name: A key of `DATASETS`, or `package.module:function`.
        data_dir: The folder above the data set's own; the environment's FEDPCS_DATA or the user's cache if absent.

    Raises:
        InvalidInput: There is no such data set, or its files are not there.
        CorruptFile: A file is damaged.

    Example:
        >>> found = check_dataset("digits")
        >>> found.num_train, found.num_test, str(found.verdict)
        (1437, 360, 'comes with scikit-learn')
    """
    dataset = load_dataset(name, data_dir)
    counts = len(dataset.train_inputs), len(dataset.test_inputs), dataset.num_classes, dataset.checksum
    if ":" in name:
        return DatasetCheck(name, None, Verdict.OWN, *counts)
    entry = find_entry(name)
    if not entry.folder:
        return DatasetCheck(name, None, Verdict.EMBEDDED, *counts)
    folder = data_folder(data_dir) / entry.folder
    found = [(present_file(folder, name), published) for name, published in entry.contents.items()]
    digests = [(path, _content_sha256(path), published) for path, published in found if path is not None]
    files = tuple(FileCheck(path.name, sha256, sha256 == published) for path, sha256, published in digests)
    return DatasetCheck(name, folder, _verdict(entry, folder, dataset, files), *counts, files)


def _content_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    num_bytes = 0
    with unzipped(path) as stream:
        while (chunk := stream.read(1 << 20)) and num_bytes <= MOST_DATA:
            digest.update(chunk)
            num_bytes += len(chunk)
    return digest.hexdigest()


def _verdict(entry: Entry, folder: Path, dataset: Dataset, files: tuple[FileCheck, ...]) -> Verdict:
    is_whole = bool(entry.contents) and len(files) == len(entry.contents) and all(file.is_published for file in files)
    if is_whole or (not entry.contents and is_as_fetched(folder)):
        return Verdict.PUBLISHED
    here, published = (len(dataset.train_inputs), len(dataset.test_inputs)), (entry.num_train, entry.num_test)
    if here == published:
        return Verdict.OTHER if entry.contents else Verdict.UNVERIFIED
    return Verdict.SUBSET if here[0] <= published[0] and here[1] <= published[1] else Verdict.OTHER
