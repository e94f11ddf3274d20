"""The loaders on real files, beside a second reading of the same files; then each set trains through a short run."""

import gzip
import math
import os
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import loadmat
from torch.nn import functional

from fedpcs.learning.datasets import DATASETS, Verdict, check_dataset, load_dataset, normalised
from fedpcs.learning.models import make_model
from fedpcs.trial.config import load_run_config
from fedpcs.trial.run import start_run

MAKE = Path(__file__).parents[2].parent / "shared" / "data" / "make"
GIVEN = os.environ.get("FEDPCS_TEST_DATA")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (GIVEN or MAKE.exists()), reason="FEDPCS_TEST_DATA is not set: no real files to read"),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Lays a set out in its published format and returns the data folder."""
    root = Path(GIVEN) if GIVEN else tmp_path_factory.mktemp("real")

    done = set()

    def laid_out(name):
        if not GIVEN and name not in done:
            made = subprocess.run([sys.executable, str(MAKE), name, str(root)], capture_output=True, text=True)
            assert made.returncode == 0, made.stderr
            done.add(name)
        return root

    return laid_out


def read_fashion_mnist(folder):
    for stem in ("train", "t10k"):
        path = next(folder.glob(f"{stem}-images-idx3-ubyte*"))
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        path = next(folder.glob(f"{stem}-labels-idx1-ubyte*"))
        labels = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        assert struct.unpack(">I", raw[4:8]) == struct.unpack(">I", labels[4:8])
        yield np.array([np.frombuffer(raw[16:], np.uint8).mean()]), Counter(labels[8:])


def read_cifar(folder, patterns, num_labels):
    for pattern in patterns:
        raw = b"".join(path.read_bytes() for path in sorted(folder.glob(pattern)))
        size = num_labels + 3072
        labels = Counter(raw[num_labels - 1 :: size])
        planes = np.frombuffer(raw, np.uint8).reshape(-1, size)[:, num_labels:]
        yield np.array([planes[:, 1024 * c : 1024 * (c + 1)].mean() for c in range(3)]), labels


def read_svhn(folder):
    for part in ("train", "test"):
        content = loadmat(folder / f"{part}_32x32.mat")
        yield content["X"].mean(axis=(0, 1, 3)), Counter(int(label) % 10 for label in content["y"].ravel())


def read_images(labelled):
    """From (path, label) pairs: the mean of each channel, and how often each label occurs."""
    total, labels = np.zeros(3), Counter()
    for path, label in labelled:
        with Image.open(path) as image:
            total += np.asarray(image.convert("RGB")).reshape(-1, 3).mean(axis=0)
        labels[label] += 1
    return total / labels.total(), labels


def read_cinic_10(folder):
    names = sorted(path.name for path in (folder / "train").iterdir())
    for part in ("train", "test"):
        yield read_images((path, names.index(path.parent.name)) for path in (folder / part).rglob("*.png"))


def read_tiny_imagenet(folder):
    names = sorted((folder / "wnids.txt").read_text().split())
    yield read_images((path, names.index(path.parts[-3])) for path in (folder / "train").rglob("*.JPEG"))
    notes = dict(line.split("\t")[:2] for line in (folder / "val" / "val_annotations.txt").read_text().splitlines())
    yield read_images((path, names.index(notes[path.name])) for path in (folder / "val" / "images").glob("*.JPEG"))


READERS = {
    "fashion-mnist": read_fashion_mnist,
    "cifar-10": lambda folder: read_cifar(folder, ("data_batch_*.bin", "test_batch.bin"), 1),
    "svhn": read_svhn,
    "cifar-100": lambda folder: read_cifar(folder, ("train.bin", "test.bin"), 2),
    "cinic-10": read_cinic_10,
    "tiny-imagenet": read_tiny_imagenet,
}


@pytest.mark.parametrize("name", READERS)
def test_means_and_labels_agree_with_a_second_reading(name, real):
    root = real(name)
    found = load_dataset(name, root)
    parts = ((found.train_inputs, found.train_targets), (found.test_inputs, found.test_targets))
    for (inputs, targets), (mean, labels) in zip(parts, READERS[name](root / DATASETS[name].folder), strict=True):
        np.testing.assert_allclose(inputs.numpy().mean(axis=(0, 2, 3), dtype=np.float64), mean, rtol=1e-9)
        assert Counter(targets.tolist()) == labels
    assert load_dataset(name, root).checksum == found.checksum


@pytest.mark.parametrize("name", READERS)
def test_the_published_constants_are_near_those_of_real_images(name, real):
    """To the digits given for a whole set; within 0.02 for a subset.

    Means of single images spread by about 0.13, so 0.02 is some five standard errors of 1,000 images.
    """
    root = real(name)
    found = load_dataset(name, root)
    slack = 6e-5 if check_dataset(name, root).verdict is Verdict.PUBLISHED else 0.02
    scaled = found.train_inputs.numpy()
    for channel in range(scaled.shape[1]):
        values = scaled[:, channel].reshape(-1)
        mean = values.mean(dtype=np.float64) / 255
        stddev = np.sqrt(np.square(values.astype(np.float32)).mean(dtype=np.float64) / 255**2 - mean**2)
        assert abs(mean - found.mean[channel]) < slack
        assert abs(stddev - found.stddev[channel]) < slack


def test_recompressed_files_are_still_the_published_ones(real, tmp_path):
    """Archives may be recompressed; the content is what counts."""
    root = real("fashion-mnist")
    assert check_dataset("fashion-mnist", root).verdict is Verdict.PUBLISHED
    copy = tmp_path / "FashionMNIST"
    copy.mkdir()
    for path in (root / "FashionMNIST").iterdir():
        content = gzip.decompress(path.read_bytes())
        (copy / path.name).write_bytes(gzip.compress(content, compresslevel=1))
    assert check_dataset("fashion-mnist", tmp_path).verdict is Verdict.PUBLISHED
    labels = copy / "t10k-labels-idx1-ubyte.gz"
    content = bytearray(gzip.decompress(labels.read_bytes()))
    content[8] = (content[8] + 1) % 10
    labels.write_bytes(gzip.compress(bytes(content), compresslevel=1))
    assert check_dataset("fashion-mnist", tmp_path).verdict is Verdict.OTHER


# The presets of the paper take hours. Here a few clients train for one local epoch in each of two rounds, in batches
# small enough for their few records to make several steps. Where tests have few images, the learning rate is larger
# than the preset's. Everything else is the preset's, the paper's clipping and noise included.
COMMON = 'rounds=2 evaluate_every=2 training.local_epochs=1 game.reward=6.0 sampling.samplers=["fedpcs"]'
SHORT = {
    "fashion-mnist": "data.num_clients=100 sampling.sampling_ratio=0.04",
    "cifar-10": "data.num_clients=100 sampling.sampling_ratio=0.06",
    "svhn": "data.num_clients=40 sampling.sampling_ratio=0.05 training.batch_size=32",
    "cifar-100": "data.num_clients=100 sampling.sampling_ratio=0.04 training.batch_size=10 training.learning_rate=0.05",
    "cinic-10": "data.num_clients=4 sampling.sampling_ratio=1.0 training.batch_size=10 training.learning_rate=0.1",
    "tiny-imagenet": "data.num_clients=50 sampling.sampling_ratio=0.1 training.batch_size=10",
}
# Two rounds are enough for these to beat the answer that is always the commonest class.
BEATS_CHANCE = ("fashion-mnist", "cifar-10", "cinic-10")


@pytest.mark.parametrize("name", SHORT)
def test_two_rounds_from_real_files_lower_the_loss(name, real, tmp_path):
    config, root = load_run_config(name, [*COMMON.split(), *SHORT[name].split()]), real(name)
    dataset = load_dataset(name, root)
    model = make_model(config.training.model, dataset.input_shape, dataset.num_classes, seed=0).eval()
    before = 0.0
    with torch.no_grad():
        for inputs, targets in zip(dataset.test_inputs.split(500), dataset.test_targets.split(500), strict=True):
            before += float(functional.cross_entropy(model(normalised(dataset, inputs)), targets, reduction="sum"))
    lines = start_run(config, tmp_path / "run", root).trial("fedpcs", 0).rounds()
    assert len(lines) == 2
    assert all(line["heard"] == line["cohort"] for line in lines)
    assert math.isfinite(lines[-1]["loss"])
    assert lines[-1]["loss"] < before / len(dataset.test_targets)
    if name in BEATS_CHANCE:
        assert lines[-1]["accuracy"] > float(dataset.test_targets.bincount().max()) / len(dataset.test_targets)
