"""The data sets fedpcs knows by name: where they are published, how to recognise them, what one may do with them.

Means and standard deviations are constants of the published sets, not statistics of the records at hand: they say
nothing about anyone's data. Image counts are of the published sets; a folder may hold fewer and still load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from fedpcs import _validate
from fedpcs.learning.datasets.cifar import load_cifar_10, load_cifar_100
from fedpcs.learning.datasets.digits import load_digits
from fedpcs.learning.datasets.idx import load_fashion_mnist
from fedpcs.learning.datasets.image_trees import load_cinic_10, load_tiny_imagenet
from fedpcs.learning.datasets.splits import Splits
from fedpcs.learning.datasets.svhn import load_svhn


@dataclass(frozen=True)
class Download:
    """A file on its publisher's server.

    Attributes:
        url: Where it is.
        md5: Of the file as it is sent.
        num_bytes: Its size.
        file_name: What it is called once it is here.
    """

    url: str
    md5: str
    num_bytes: int
    file_name: str

    @property
    def is_archive(self) -> bool:
        """Whether it is unpacked once it is here."""
        return self.file_name.endswith((".tar.gz", ".zip"))


@dataclass(frozen=True)
class Entry:
    """A published data set.

    Attributes:
        name: What configurations call it.
        folder: Where its files lie, below the data folder; "" if it needs none.
        downloads: What to fetch, in the published format.
        contents: File below `folder` → md5 of its published content, unzipped if it is gzipped. Empty where the set
            is a tree of images: then only a fetch can vouch for it.
        input_shape: (channels, height, width).
        num_train: Published training images.
        num_test: Published test images.
        num_classes: Classes.
        mean: Per channel of the published training images scaled to [0, 1].
        stddev: As `mean`.
        citation: Whom to cite.
        terms: What its publishers allow.
        loader: Reads the files of a folder.
    """

    name: str
    folder: str
    downloads: tuple[Download, ...]
    contents: Mapping[str, str] = field(hash=False)
    input_shape: tuple[int, int, int]
    num_train: int
    num_test: int
    num_classes: int
    mean: tuple[float, ...]
    stddev: tuple[float, ...]
    citation: str
    terms: str
    loader: Callable[[Path], Splits] = field(repr=False)

    @property
    def num_bytes(self) -> int:
        """What a fetch transfers."""
        return sum(download.num_bytes for download in self.downloads)


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_TORONTO = "https://www.cs.toronto.edu/~kriz"
_STANFORD = "http://ufldl.stanford.edu/housenumbers"


def _download(folder_url: str, file_name: str, num_bytes: int, md5: str) -> Download:
    return Download(f"{folder_url}/{file_name}", md5, num_bytes, file_name)


_ENTRIES = (
    Entry(
        name="digits",
        folder="",
        downloads=(),
        contents=MappingProxyType({}),
        input_shape=(1, 8, 8),
        num_train=1_437,
        num_test=360,
        num_classes=10,
        mean=(0.3056,),
        stddev=(0.3761,),
        citation="Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI repository",
        terms="CC BY 4.0",
        loader=load_digits,
    ),
    Entry(
        name="fashion-mnist",
        folder="FashionMNIST",
        downloads=(
            _download(_FASHION, "train-images-idx3-ubyte.gz", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            _download(_FASHION, "train-labels-idx1-ubyte.gz", 29_515, "25c81989df183df01b3e8a0aad5dffbe"),
            _download(_FASHION, "t10k-images-idx3-ubyte.gz", 4_422_102, "bef4ecab320f06d8554ea6380940ec79"),
            _download(_FASHION, "t10k-labels-idx1-ubyte.gz", 5_148, "bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        contents=MappingProxyType(
            {
                "train-images-idx3-ubyte.gz": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "train-labels-idx1-ubyte.gz": "9018921c3c673c538a1fc5bad174d6f9",
                "t10k-images-idx3-ubyte.gz": "8181f5470baa50b63fa0f6fddb340f0a",
                "t10k-labels-idx1-ubyte.gz": "15d484375f8d13e6eb1aabb0c3f46965",
            }
        ),
        input_shape=(1, 28, 28),
        num_train=60_000,
        num_test=10_000,
        num_classes=10,
        mean=(0.2860,),
        stddev=(0.3530,),
        citation="Xiao, Rasul and Vollgraf 2017, arXiv 1708.07747",
        terms="MIT",
        loader=load_fashion_mnist,
    ),
    Entry(
        name="cifar-10",
        folder="cifar-10-batches-bin",
        downloads=(_download(_TORONTO, "cifar-10-binary.tar.gz", 170_052_171, "c32a1d4ab5d03f1284b67883e8d87530"),),
        contents=MappingProxyType(
            {
                "data_batch_1.bin": "5dd7e06a14cb22eb9f671a540d1b7c25",
                "data_batch_2.bin": "5ea93a67294ea407fff1d09f752e9692",
                "data_batch_3.bin": "942cd6a4bcdd0dd3c604fbe906cb4421",
                "data_batch_4.bin": "ae636b3ba5c66a11e91e8cb52e771fcb",
                "data_batch_5.bin": "53f37980c15c3d472c316c40844f3f0d",
                "test_batch.bin": "803d5f7f4d78ea53de84dbe85f74fb6d",
            }
        ),
        input_shape=(3, 32, 32),
        num_train=50_000,
        num_test=10_000,
        num_classes=10,
        mean=(0.4914, 0.4822, 0.4465),
        stddev=(0.2470, 0.2435, 0.2616),
        citation="Krizhevsky 2009, Learning multiple layers of features from tiny images",
        terms="none stated; cite it",
        loader=load_cifar_10,
    ),
    Entry(
        name="svhn",
        folder="SVHN",
        downloads=(
            _download(_STANFORD, "train_32x32.mat", 182_040_794, "e26dedcc434d2e4c54c9b2d4a06d8373"),
            _download(_STANFORD, "test_32x32.mat", 64_275_384, "eb5a983be6a315427106f1b164d9cef3"),
        ),
        contents=MappingProxyType(
            {
                "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
                "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
            }
        ),
        input_shape=(3, 32, 32),
        num_train=73_257,
        num_test=26_032,
        num_classes=10,
        mean=(0.4377, 0.4438, 0.4728),
        stddev=(0.1980, 0.2010, 0.1970),
        citation="Netzer et al. 2011, Reading digits in natural images with unsupervised feature learning",
        terms="non-commercial",
        loader=load_svhn,
    ),
    Entry(
        name="cifar-100",
        folder="cifar-100-binary",
        downloads=(_download(_TORONTO, "cifar-100-binary.tar.gz", 168_513_733, "03b5dce01913d631647c71ecec9e9cb8"),),
        contents=MappingProxyType(
            {
                "train.bin": "6172c7755cfe09b2fe270c85cebc1b15",
                "test.bin": "4499cfba6c016c1be1438163640a0898",
            }
        ),
        input_shape=(3, 32, 32),
        num_train=50_000,
        num_test=10_000,
        num_classes=100,
        mean=(0.5071, 0.4865, 0.4409),
        stddev=(0.2673, 0.2564, 0.2762),
        citation="Krizhevsky 2009, Learning multiple layers of features from tiny images",
        terms="none stated; cite it",
        loader=load_cifar_100,
    ),
    Entry(
        name="cinic-10",
        folder="CINIC-10",
        downloads=(
            Download(
                "https://datashare.ed.ac.uk/bitstream/handle/10283/3192/CINIC-10.tar.gz",
                "6ee4d0c996905fe93221de577967a372",
                687_544_992,
                "CINIC-10.tar.gz",
            ),
        ),
        contents=MappingProxyType({}),
        input_shape=(3, 32, 32),
        num_train=90_000,
        num_test=90_000,
        num_classes=10,
        mean=(0.4789, 0.4723, 0.4305),
        stddev=(0.2421, 0.2383, 0.2587),
        citation="Darlow, Crowley, Antoniou and Storkey 2018, arXiv 1810.03505",
        terms="as CIFAR-10 and ImageNet",
        loader=load_cinic_10,
    ),
    Entry(
        name="tiny-imagenet",
        folder="tiny-imagenet-200",
        downloads=(
            Download(
                "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "90528d7ca1a48142e341f4ef8d21d0de",
                248_100_043,
                "tiny-imagenet-200.zip",
            ),
        ),
        contents=MappingProxyType({}),
        input_shape=(3, 64, 64),
        num_train=100_000,
        num_test=10_000,
        num_classes=200,
        mean=(0.4802, 0.4481, 0.3975),
        stddev=(0.2770, 0.2691, 0.2821),
        citation="Le and Yang 2015, Tiny ImageNet visual recognition challenge",
        terms="ImageNet: non-commercial research",
        loader=load_tiny_imagenet,
    ),
)

DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def find_entry(name: str) -> Entry:
    """Return what the catalogue says of a data set."""
    return DATASETS[_validate.choice("dataset", name, DATASETS, or_else="package.module:function")]
