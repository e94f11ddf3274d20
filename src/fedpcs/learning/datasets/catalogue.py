"""The data sets that fedpcs knows by name: one line for each file of this folder that holds some.

Publishers give MD5s at most. The SHA-256s of Fashion-MNIST and CIFAR-10 were taken from files that have those MD5s. The
others are those that TensorFlow Datasets and torchvision's port to Ruby check with, for files of the same size.
"""

from __future__ import annotations

from fedpcs import _validate
from fedpcs.learning.datasets.cifar import CIFAR_10, CIFAR_100
from fedpcs.learning.datasets.digits import DIGITS
from fedpcs.learning.datasets.entry import Entry
from fedpcs.learning.datasets.fashion_mnist import FASHION_MNIST
from fedpcs.learning.datasets.image_trees import CINIC_10, TINY_IMAGENET
from fedpcs.learning.datasets.svhn import SVHN

DATASETS: dict[str, Entry] = {
    entry.name: entry for entry in (DIGITS, FASHION_MNIST, CIFAR_10, SVHN, CIFAR_100, CINIC_10, TINY_IMAGENET)
}


def find_entry(name: str) -> Entry:
    """Return what the catalogue says of a data set."""
    return DATASETS[_validate.choice("dataset", name, DATASETS, or_else="package.module:function")]
