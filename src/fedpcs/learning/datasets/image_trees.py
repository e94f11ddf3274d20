"""Data sets that are folders of small image files: CINIC-10 and Tiny-ImageNet.

CINIC-10 is `train`, `valid` and `test`, each with a folder of PNG files for each class; `valid` is left aside.
Tiny-ImageNet is `train/<class>/images/*.JPEG` and `val/images/*.JPEG` with `val/val_annotations.txt`; the published
test images have no labels, so `val` is the test set. Classes are numbered in the alphabetical order of their names.
Grey images become grey RGB images.

References:
    Darlow, Crowley, Antoniou and Storkey 2018, arXiv 1810.03505.
    Le and Yang 2015, Tiny ImageNet visual recognition challenge.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_JSON, read_text
from fedpcs._outside import shown
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.decoding import decoded_images
from fedpcs.learning.datasets.splits import Splits

_CINIC_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

_AGAIN = "Delete it and fetch the data set again."

Labelled = list[tuple[Path, int]]


def load_cinic_10(folder: Path) -> Splits:
    """Return the `train` and `test` folders of CINIC-10."""
    found = {part: _by_class(folder / part, _CINIC_CLASSES, inside="", ending=".png") for part in ("train", "test")}
    return _splits(folder, found["train"], found["test"], side=32)


def load_tiny_imagenet(folder: Path) -> Splits:
    """Return the `train` and `val` folders of Tiny-ImageNet, the latter as test set."""
    classes = tuple(sorted(_lines(folder / "wnids.txt")))
    train = _by_class(folder / "train", classes, inside="images", ending=".JPEG")
    return _splits(folder, train, _annotated(folder / "val", classes), side=64)


def _splits(folder: Path, train: Labelled, test: Labelled, *, side: int) -> Splits:
    arrays: list[NDArray[np.uint8]] = []
    for part, labelled in (("train", train), ("test", test)):
        if not labelled:
            raise InvalidInput(f"{folder} has no images for the {part} set. Put the published tree there.")
        arrays.append(decoded_images(folder, part, [path for path, _ in labelled], side))
    train_targets, test_targets = (np.array([label for _, label in part], dtype=np.int64) for part in (train, test))
    return Splits(arrays[0], train_targets, arrays[1], test_targets)


def _by_class(folder: Path, classes: tuple[str, ...], *, inside: str, ending: str) -> Labelled:
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is missing. Put the published tree there, or fetch the data set.")
    names = {path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")}
    if unknown := sorted(names - set(classes)):
        raise CorruptFile(f"{folder / unknown[0]} is not a class of this data set. Move it elsewhere.")
    labelled = []
    for label, name in enumerate(classes):
        if name in names:
            labelled += [(path, label) for path in _images(folder / name / inside, ending)]
    return labelled


def _annotated(folder: Path, classes: tuple[str, ...]) -> Labelled:
    labels = {name: label for label, name in enumerate(classes)}
    present = {path.name: path for path in _images(folder / "images", ".JPEG")}
    annotations = folder / "val_annotations.txt"
    labelled = []
    for line in _lines(annotations):
        name, _, rest = line.partition("\t")
        class_name = rest.partition("\t")[0]
        if class_name not in labels:
            raise CorruptFile(f"{annotations} must name a class of wnids.txt in each line, got {shown(line)}. {_AGAIN}")
        if name in present:
            labelled.append((present.pop(name), labels[class_name]))
    if present:
        raise CorruptFile(f"{annotations} must have a line for {min(present)}. {_AGAIN}")
    return labelled


def _images(folder: Path, ending: str) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(ending) and not path.name.startswith("."))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise InvalidInput(f"{path} is missing. Put the published file there, or fetch the data set.")
    try:
        lines = [line.strip() for line in read_text(path, MOST_JSON).splitlines()]
    except UnicodeDecodeError:
        raise CorruptFile(f"{path} must be text. {_AGAIN}") from None
    return [line for line in lines if line]
