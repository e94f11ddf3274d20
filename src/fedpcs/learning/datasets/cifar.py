"""CIFAR-10 and CIFAR-100 in their binary version: each record is its labels, then 32×32 bytes of red, green and blue.

CIFAR-10 has one label byte; CIFAR-100 has two, the coarse class and the fine one, and the fine one is what we learn.
The Python version of the sets is pickled, and reading a pickle runs whatever code its author put there, so it is never
read.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs._files import MOST_DATA, read_bytes
from fedpcs.learning.datasets.entry import Download, Entry, Splits, damaged, missing

_IMAGE_BYTES = 3 * 32 * 32
_TORONTO = "https://www.cs.toronto.edu/~kriz"


def load_cifar_10(folder: Path) -> Splits:
    """Return the batches of `cifar-10-batches-bin`; of the five of training, those that are there."""
    batches = [folder / f"data_batch_{number}.bin" for number in range(1, 6)]
    train = [path for path in batches if path.is_file()] or batches[:1]
    return _splits(train, folder / "test_batch.bin", num_labels=1, num_classes=10)


def load_cifar_100(folder: Path) -> Splits:
    """Return the two files of `cifar-100-binary`, with their fine labels."""
    return _splits([folder / "train.bin"], folder / "test.bin", num_labels=2, num_classes=100)


def _splits(train: list[Path], test: Path, *, num_labels: int, num_classes: int) -> Splits:
    parts: list[NDArray[np.uint8]] = []
    for paths in (train, [test]):
        rows = np.concatenate([_rows(path, num_labels, num_classes) for path in paths])
        parts += np.ascontiguousarray(rows[:, num_labels:]).reshape(-1, 3, 32, 32), rows[:, num_labels - 1]
    return Splits(parts[0], parts[1].astype(np.int64), parts[2], parts[3].astype(np.int64))


def _rows(path: Path, num_labels: int, num_classes: int) -> NDArray[np.uint8]:
    if not path.is_file():
        raise missing(path, " It is the binary version: the Python version is pickled and is never read.")
    record_bytes, content = num_labels + _IMAGE_BYTES, read_bytes(path, MOST_DATA)
    if not content or len(content) % record_bytes:
        raise damaged(path, f"must be records of {record_bytes} bytes, got {len(content)} bytes")
    rows = np.frombuffer(content, np.uint8).reshape(-1, record_bytes)
    if (largest := rows[:, num_labels - 1].max()) >= num_classes:
        raise damaged(path, f"must have labels in [0, {num_classes - 1}], got {largest}")
    return rows


CIFAR_10 = Entry(
    name="cifar-10",
    loader=load_cifar_10,
    input_shape=(3, 32, 32),
    num_train=50_000,
    num_test=10_000,
    num_classes=10,
    mean=(0.4914, 0.4822, 0.4465),
    stddev=(0.2470, 0.2435, 0.2616),
    citation="Krizhevsky 2009, Learning multiple layers of features from tiny images",
    terms="none stated; cite it",
    folder="cifar-10-batches-bin",
    downloads=(
        Download(
            f"{_TORONTO}/cifar-10-binary.tar.gz",
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            170_052_171,
        ),
    ),
    contents={
        "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    },
)
CIFAR_100 = Entry(
    name="cifar-100",
    loader=load_cifar_100,
    input_shape=(3, 32, 32),
    num_train=50_000,
    num_test=10_000,
    num_classes=100,
    mean=(0.5071, 0.4865, 0.4409),
    stddev=(0.2673, 0.2564, 0.2762),
    citation=CIFAR_10.citation,
    terms=CIFAR_10.terms,
    folder="cifar-100-binary",
    downloads=(
        Download(
            f"{_TORONTO}/cifar-100-binary.tar.gz",
            "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            168_513_733,
        ),
    ),
    contents={
        "train.bin": "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
        "test.bin": "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
    },
)
