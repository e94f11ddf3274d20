"""The data sets fedpcs knows by name: where they are published, how to recognise them, what one may do with them.

Means and standard deviations are constants of the published sets, not statistics of the records at hand: they say
nothing about anyone's data. Image counts are of the published sets; a folder may hold fewer and still load.

Publishers give MD5s at most. The SHA-256s of Fashion-MNIST and CIFAR-10 were taken from files that have those MD5s. The
others are those that TensorFlow Datasets and torchvision's port to Ruby check with, for files of the same size.
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
        url: Where it is, by https.
        checksum: Of the file as it is sent: "sha256:…", or "md5:…" where no SHA-256 is known.
        num_bytes: Its size.
        file_name: What it is called once it is here.
    """

    url: str
    checksum: str
    num_bytes: int
    file_name: str

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
        folder: Where its files lie, below the data folder; "" if it needs none.
        downloads: What to fetch, in the published format.
        contents: File below `folder` → SHA-256 of its published content, unzipped if it is gzipped. Empty where the set
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


# The authors' repository, at a fixed commit: their other address, a bucket's web page, has no https.
_FASHION = (
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/b2617bb6d3ffa2e429640350f613e3291e10b141/"
    "data/fashion"
)
_TORONTO = "https://www.cs.toronto.edu/~kriz"
_STANFORD = "https://ufldl.stanford.edu/housenumbers"


def _download(folder_url: str, file_name: str, num_bytes: int, sha256: str) -> Download:
    return Download(f"{folder_url}/{file_name}", f"sha256:{sha256}", num_bytes, file_name)


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
            _download(
                _FASHION,
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            _download(
                _FASHION,
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            _download(
                _FASHION,
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            _download(
                _FASHION,
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ),
        contents=MappingProxyType(
            {
                "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
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
        downloads=(
            _download(
                _TORONTO,
                "cifar-10-binary.tar.gz",
                170_052_171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        contents=MappingProxyType(
            {
                "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
                "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
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
            _download(
                _STANFORD,
                "train_32x32.mat",
                182_040_794,
                "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            ),
            _download(
                _STANFORD,
                "test_32x32.mat",
                64_275_384,
                "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            ),
        ),
        contents=MappingProxyType(
            {
                "train_32x32.mat": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                "test_32x32.mat": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
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
        downloads=(
            _download(
                _TORONTO,
                "cifar-100-binary.tar.gz",
                168_513_733,
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        contents=MappingProxyType(
            {
                "train.bin": "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
                "test.bin": "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
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
                "md5:6ee4d0c996905fe93221de577967a372",
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
                "https://cs231n.stanford.edu/tiny-imagenet-200.zip",
                "sha256:6198c8ae015e2b3e007c7841da39ec069199b9aa3bfa943a462022fe5e43c821",
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
