"""Loaders on tiny hand-made files in each published format, whole and damaged."""

import gzip
import os
import pickle
import shutil

import numpy as np
import pytest
from hand_made_files import WRITERS, write_cifar_10, write_fashion_mnist, write_idx
from PIL import Image
from scipy.io import savemat

from fedpcs.errors import CorruptFile, InvalidInput
from fedpcs.learning.datasets import DATASETS, Verdict, check_dataset, decoding, load_dataset

IMAGES = "FashionMNIST/train-images-idx3-ubyte.gz"
LABELS = "FashionMNIST/train-labels-idx1-ubyte.gz"


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read_as_it_was_written(name, tmp_path):
    expected = WRITERS[name](tmp_path)
    # JPEG rounds when it changes colours, so flat colours come back within two steps.
    slack = 2 if name == "tiny-imagenet" else 0
    for _ in ("decoded", "kept"):
        found = load_dataset(name, tmp_path)
        np.testing.assert_allclose(found.train_inputs.numpy().astype(int), expected[0].astype(int), atol=slack)
        np.testing.assert_allclose(found.test_inputs.numpy().astype(int), expected[2].astype(int), atol=slack)
        assert found.train_targets.tolist() == expected[1].tolist()
        assert found.test_targets.tolist() == expected[3].tolist()
        assert found.num_classes == DATASETS[name].num_classes
        assert found.input_shape == DATASETS[name].input_shape


@pytest.mark.parametrize("name", WRITERS)
def test_fewer_images_than_published_are_a_subset(name, tmp_path):
    expected = WRITERS[name](tmp_path)
    found = check_dataset(name, tmp_path)
    assert found.verdict is Verdict.SUBSET
    assert (found.num_train, found.num_test) == (len(expected[1]), len(expected[3]))
    assert found.folder == tmp_path / DATASETS[name].folder
    assert not any(file.is_published for file in found.files)
    assert found.checksum == load_dataset(name, tmp_path).checksum


def test_idx_files_may_be_unzipped(tmp_path):
    write_fashion_mnist(tmp_path / "zipped")
    write_fashion_mnist(tmp_path / "plain", zipped=False)
    zipped, plain = (load_dataset("fashion-mnist", tmp_path / kind) for kind in ("zipped", "plain"))
    assert zipped.checksum == plain.checksum
    digests = [
        [file.sha256 for file in check_dataset("fashion-mnist", tmp_path / kind).files] for kind in ("zipped", "plain")
    ]
    assert digests[0] == digests[1]


def test_some_batches_of_cifar_10_are_enough(tmp_path):
    write_cifar_10(tmp_path, num_batches=2)
    assert len(load_dataset("cifar-10", tmp_path).train_inputs) == 4


def test_a_file_may_not_be_missing(tmp_path):
    for name, missing in (("fashion-mnist", LABELS), ("svhn", "SVHN/test_32x32.mat")):
        WRITERS[name](tmp_path)
        (tmp_path / missing).unlink()
        with pytest.raises(InvalidInput, match="missing"):
            load_dataset(name, tmp_path)


def test_a_pickle_is_never_opened(tmp_path):
    """The Python version of CIFAR is pickled; the answer says why it is not read."""

    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidInput, match="pickled and is never read"):
        load_dataset("cifar-10", tmp_path)
    assert not (tmp_path / "sprung").exists()


def truncate(path, num_bytes=1):
    path.write_bytes(path.read_bytes()[:-num_bytes])


def rewrite(path, content):
    path.write_bytes(content)


def zipped_idx(path, array):
    write_idx(path.with_name(path.name.removesuffix(".gz")), array, zipped=True)


DAMAGE = {
    "gzip cut short": ("fashion-mnist", IMAGES, lambda path: truncate(path, 20), "whole gzip"),
    "wrong magic": (
        "fashion-mnist",
        IMAGES,
        lambda path: rewrite(path, gzip.compress(b"\0\0\x09\x03" + bytes(9))),
        "begin",
    ),
    "idx cut short": (
        "fashion-mnist",
        LABELS,
        lambda path: rewrite(path, gzip.compress(gzip.decompress(path.read_bytes())[:-1])),
        "15 bytes for its shape",
    ),
    "labels missing": ("fashion-mnist", LABELS, lambda path: zipped_idx(path, np.zeros(6)), "each of the 7 images"),
    "label too large": ("fashion-mnist", LABELS, lambda path: zipped_idx(path, np.full(7, 10)), r"in \[0, 9\], got 10"),
    "images of another size": (
        "fashion-mnist",
        IMAGES,
        lambda path: zipped_idx(path, np.zeros((7, 27, 28))),
        "one shape|shape",
    ),
    "batch cut short": (
        "cifar-10",
        "cifar-10-batches-bin/data_batch_3.bin",
        truncate,
        "records of 3073 bytes, got 6145",
    ),
    "cifar label": (
        "cifar-10",
        "cifar-10-batches-bin/test_batch.bin",
        lambda path: rewrite(path, b"\x0a" + path.read_bytes()[1:]),
        r"in \[0, 9\], got 10",
    ),
    "cifar-100 label": (
        "cifar-100",
        "cifar-100-binary/train.bin",
        lambda path: rewrite(path, b"\0\x64" + path.read_bytes()[2:]),
        r"in \[0, 99\], got 100",
    ),
    "mat cut short": ("svhn", "SVHN/train_32x32.mat", lambda path: truncate(path, 3000), "MATLAB file"),
    "mat without X": ("svhn", "SVHN/test_32x32.mat", lambda path: savemat(path, {"y": [[1]]}), "must hold X"),
    "mat without y": (
        "svhn",
        "SVHN/test_32x32.mat",
        lambda path: savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8)}),
        "must hold y, 2 labels",
    ),
    "mat label": (
        "svhn",
        "SVHN/test_32x32.mat",
        lambda path: savemat(path, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[0], [1]]}),
        r"in \[1, 10\], got 0",
    ),
    "png cut short": ("cinic-10", "CINIC-10/train/*/*.png", lambda path: truncate(path, 2000), "PNG or JPEG image"),
    "png of another size": (
        "cinic-10",
        "CINIC-10/test/*/*.png",
        lambda path: Image.new("RGB", (31, 32)).save(path),
        "32×32, got 31×32",
    ),
    "gif in disguise": (
        "cinic-10",
        "CINIC-10/test/*/*.png",
        lambda path: Image.new("RGB", (32, 32)).save(path, format="GIF"),
        "PNG or JPEG image",
    ),
    "a class too many": (
        "cinic-10",
        "CINIC-10/train",
        lambda path: (path / "zebra").mkdir(),
        "zebra is not a class",
    ),
    "an image without a label": (
        "tiny-imagenet",
        "tiny-imagenet-200/val/val_annotations.txt",
        lambda path: rewrite(path, path.read_bytes().split(b"\n", 1)[1]),
        "a line for val_0.JPEG",
    ),
    "a label nobody listed": (
        "tiny-imagenet",
        "tiny-imagenet-200/val/val_annotations.txt",
        lambda path: rewrite(path, path.read_bytes().replace(b"n03000003", b"n04000004")),
        "a class of wnids.txt",
    ),
    "a list that is no text": (
        "tiny-imagenet",
        "tiny-imagenet-200/wnids.txt",
        lambda path: rewrite(path, b"\xff\xfe\x00"),
        "must be text",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named_with_what_was_expected(damage, tmp_path):
    name, pattern, spoil, words = DAMAGE[damage]
    WRITERS[name](tmp_path)
    load_dataset(name, tmp_path)  # an array kept from better days must not hide the damage
    path = min(tmp_path.glob(pattern))
    spoil(path)
    with pytest.raises(CorruptFile, match=words) as caught:
        load_dataset(name, tmp_path)
    assert str(tmp_path / DATASETS[name].folder) in str(caught.value)


def test_a_folder_without_images_is_not_a_data_set(tmp_path):
    for part in ("train", "test"):
        (tmp_path / "CINIC-10" / part / "cat").mkdir(parents=True)
    with pytest.raises(InvalidInput, match="no images for the train set"):
        load_dataset("cinic-10", tmp_path)
    shutil.rmtree(tmp_path / "CINIC-10" / "test")
    with pytest.raises(InvalidInput, match="test is missing"):
        load_dataset("cinic-10", tmp_path)


class TestKeptArrays:
    """Images are decoded once; what is kept is read only as long as it is right."""

    @pytest.fixture
    def tree(self, tmp_path):
        WRITERS["cinic-10"](tmp_path)
        return tmp_path

    @pytest.fixture
    def decoded(self, monkeypatch):
        """The paths that were decoded."""
        seen, real = [], decoding._decoded
        monkeypatch.setattr(decoding, "_decoded", lambda path, side: (seen.append(path), real(path, side))[1])
        return seen

    def test_the_second_load_decodes_nothing(self, tree, decoded):
        first = load_dataset("cinic-10", tree).checksum
        assert len(decoded) == 10
        assert load_dataset("cinic-10", tree).checksum == first
        assert len(decoded) == 10

    def test_writing_to_the_tensors_never_reaches_the_kept_array(self, tree):
        first = load_dataset("cinic-10", tree).checksum
        load_dataset("cinic-10", tree).train_inputs.fill_(7)
        assert load_dataset("cinic-10", tree).checksum == first

    def test_a_changed_tree_is_decoded_afresh_and_the_old_array_goes(self, tree, decoded):
        load_dataset("cinic-10", tree)
        first = min((tree / "CINIC-10" / "train").glob("*/*.png"))
        first.unlink()
        assert len(load_dataset("cinic-10", tree).train_inputs) == 5
        assert len(decoded) == 15
        assert len(list((tree / "CINIC-10" / ".fedpcs-decoded").iterdir())) == 2

    def test_an_image_replaced_by_one_of_the_same_size_is_seen(self, tree):
        before = load_dataset("cinic-10", tree).checksum
        path = min((tree / "CINIC-10" / "train").glob("*/*.png"))
        size = path.stat().st_size
        Image.new("RGB", (32, 32), (1, 2, 3)).save(path)
        path.write_bytes(path.read_bytes().ljust(size, b"\0"))
        assert load_dataset("cinic-10", tree).checksum != before

    @pytest.mark.parametrize("content", [b"", b"torn", b"\x93NUMPY\x01\x00"])
    def test_a_torn_array_is_decoded_afresh(self, tree, content):
        before = load_dataset("cinic-10", tree).checksum
        for path in (tree / "CINIC-10" / ".fedpcs-decoded").iterdir():
            path.write_bytes(content)
        assert load_dataset("cinic-10", tree).checksum == before

    def test_a_folder_that_cannot_keep_it_is_no_obstacle(self, tree):
        (tree / "CINIC-10" / ".fedpcs-decoded").write_text("in the way")
        assert len(load_dataset("cinic-10", tree).train_inputs) == 6


def test_images_that_are_all_of_another_size_are_not_this_data_set(tmp_path):
    write_fashion_mnist(tmp_path)
    for stem, count in (("train", 7), ("t10k", 3)):
        write_idx(tmp_path / f"FashionMNIST/{stem}-images-idx3-ubyte", np.zeros((count, 27, 28)), zipped=True)
    with pytest.raises(CorruptFile, match=r"shape \(1, 28, 28\), got \(1, 27, 28\)"):
        load_dataset("fashion-mnist", tmp_path)
