"""Data sets that are folders of small image files: CINIC-10 and Tiny-ImageNet.

CINIC-10 is `train`, `valid` and `test`, each with a folder of PNG files for each class; `valid` is left aside.
Tiny-ImageNet is `train/<class>/images/*.JPEG` and `val/images/*.JPEG` with `val/val_annotations.txt`; the published
test images have no labels, so `val` is the test set. Classes are numbered in the alphabetical order of their names.
Grey images become grey RGB images.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_JSON, read_text
from fedpcs._outside import shown
from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets.decoding import decoded_images
from fedpcs.learning.datasets.entry import Download, Entry, Splits, damaged, missing

_CINIC_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

Labelled = list[tuple[Path, int]]


def load_cinic_10(folder: Path) -> Splits:
    """Return the `train` and `test` folders of CINIC-10."""
    train, test = (_by_class(folder / part, _CINIC_CLASSES, inside="", ending=".png") for part in ("train", "test"))
    return Splits(*_decoded(folder, "train", train, 32), *_decoded(folder, "test", test, 32))


def load_tiny_imagenet(folder: Path) -> Splits:
    """Return the `train` and `val` folders of Tiny-ImageNet, the latter as test set."""
    classes = tuple(sorted(_lines(folder / "wnids.txt")))
    train = _by_class(folder / "train", classes, inside="images", ending=".JPEG")
    test = _annotated(folder / "val", classes)
    return Splits(*_decoded(folder, "train", train, 64), *_decoded(folder, "test", test, 64))


def _decoded(folder: Path, part: str, labelled: Labelled, side: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    if not labelled:
        raise InvalidInput(f"{folder} has no images for the {part} set. Put the published tree there.")
    images = decoded_images(folder, part, [path for path, _ in labelled], side)
    return images, np.array([label for _, label in labelled], dtype=np.int64)


def _by_class(folder: Path, classes: tuple[str, ...], *, inside: str, ending: str) -> Labelled:
    if not folder.is_dir():
        raise missing(folder)
    names = {path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")}
    if unknown := sorted(names - set(classes)):
        raise CorruptFile(f"{folder / unknown[0]} is not a class of this data set. Move it elsewhere.")
    return [
        (path, label)
        for label, name in enumerate(classes)
        if name in names
        for path in _images(folder / name / inside, ending)
    ]


def _annotated(folder: Path, classes: tuple[str, ...]) -> Labelled:
    labels = {name: label for label, name in enumerate(classes)}
    present = {path.name: path for path in _images(folder / "images", ".JPEG")}
    annotations = folder / "val_annotations.txt"
    labelled = []
    for line in _lines(annotations):
        name, class_name = (*line.split("\t"), "")[:2]
        if class_name not in labels:
            raise damaged(annotations, f"must name a class of wnids.txt in each line, got {shown(line)}")
        if name in present:
            labelled.append((present.pop(name), labels[class_name]))
    if present:
        raise damaged(annotations, f"must have a line for {min(present)}")
    return labelled


def _images(folder: Path, ending: str) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(ending) and not path.name.startswith("."))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise missing(path)
    try:
        lines = [line.strip() for line in read_text(path, MOST_JSON).splitlines()]
    except UnicodeDecodeError:
        raise damaged(path, "must be text") from None
    return [line for line in lines if line]


CINIC_10 = Entry(
    name="cinic-10",
    loader=load_cinic_10,
    input_shape=(3, 32, 32),
    num_train=90_000,
    num_test=90_000,
    num_classes=10,
    mean=(0.4789, 0.4723, 0.4305),
    stddev=(0.2421, 0.2383, 0.2587),
    citation="Darlow, Crowley, Antoniou and Storkey 2018, arXiv 1810.03505",
    terms="as CIFAR-10 and ImageNet",
    folder="CINIC-10",
    downloads=(
        Download(
            "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
            "md5:6ee4d0c996905fe93221de577967a372",
            687_544_992,
        ),
    ),
)
TINY_IMAGENET = Entry(
    name="tiny-imagenet",
    loader=load_tiny_imagenet,
    input_shape=(3, 64, 64),
    num_train=100_000,
    num_test=10_000,
    num_classes=200,
    mean=(0.4802, 0.4481, 0.3975),
    stddev=(0.2770, 0.2691, 0.2821),
    citation="Le and Yang 2015, Tiny ImageNet visual recognition challenge",
    terms="ImageNet: non-commercial research",
    folder="tiny-imagenet-200",
    downloads=(
        Download(
            "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
            "sha256:6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
            248_100_043,
        ),
    ),
)
