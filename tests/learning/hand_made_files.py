"""Tiny data sets in every published format, written by other means than the loaders read them."""

import gzip
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.io import savemat

CINIC = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
WNIDS = ("n02000001", "n01000002", "n03000003")  # not in alphabetical order, as the published list is not


def images_and_labels(num_train, num_test, shape, num_classes, seed=0):
    """Random bytes and labels: train inputs, train targets, test inputs, test targets."""
    rng = np.random.default_rng(seed)
    found = []
    for count in (num_train, num_test):
        found += [rng.integers(0, 256, (count, *shape), dtype=np.uint8), rng.integers(0, num_classes, count)]
    return found


def write_fashion_mnist(root: Path, *, zipped=True):
    folder = root / "FashionMNIST"
    folder.mkdir(parents=True)
    found = images_and_labels(7, 3, (1, 28, 28), 10)
    for stem, images, labels in (("train", *found[:2]), ("t10k", *found[2:])):
        write_idx(folder / f"{stem}-images-idx3-ubyte", images[:, 0], zipped=zipped)
        write_idx(folder / f"{stem}-labels-idx1-ubyte", labels, zipped=zipped)
    return found


def write_idx(path: Path, array, *, zipped):
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + b"".join(struct.pack(">I", n) for n in array.shape)
    content = header + bytes(int(value) for value in array.reshape(-1))
    if zipped:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)


def write_cifar_10(root: Path, num_batches=5):
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    found = images_and_labels(2 * num_batches, 3, (3, 32, 32), 10)
    for number in range(num_batches):
        rows = slice(2 * number, 2 * number + 2)
        (folder / f"data_batch_{number + 1}.bin").write_bytes(_cifar_rows(found[0][rows], found[1][rows], b""))
    (folder / "test_batch.bin").write_bytes(_cifar_rows(*found[2:], b""))
    return found


def write_cifar_100(root: Path):
    folder = root / "cifar-100-binary"
    folder.mkdir(parents=True)
    found = images_and_labels(6, 4, (3, 32, 32), 100)
    (folder / "train.bin").write_bytes(_cifar_rows(*found[:2], b"\x13"))
    (folder / "test.bin").write_bytes(_cifar_rows(*found[2:], b"\x07"))
    return found


def _cifar_rows(images, labels, coarse):
    return b"".join(coarse + bytes([label]) + image.tobytes() for image, label in zip(images, labels, strict=True))


def write_svhn(root: Path):
    folder = root / "SVHN"
    folder.mkdir(parents=True)
    found = images_and_labels(12, 5, (3, 32, 32), 10)
    found[1][:2] = (0, 9)
    for part, images, labels in (("train", *found[:2]), ("test", *found[2:])):
        matlab = np.array([10 if label == 0 else label for label in labels], dtype=np.uint8)[:, None]
        stacked = np.stack([np.moveaxis(image, 0, 2) for image in images], axis=3)
        savemat(folder / f"{part}_32x32.mat", {"X": stacked, "y": matlab})
    return found


def write_cinic_10(root: Path):
    folder = root / "CINIC-10"
    found = [np.sort(part) if part.ndim == 1 else part for part in images_and_labels(6, 4, (3, 32, 32), 10)]
    for part, images, labels in (("train", *found[:2]), ("test", *found[2:])):
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            path = folder / part / CINIC[label] / f"n{number:05}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.moveaxis(image, 0, 2)).save(path)
    stray = folder / "valid" / "cat" / "left-aside.png"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"never read")
    return found


def write_tiny_imagenet(root: Path):
    """Flat images, which JPEG keeps as they are but for rounding; the second of each part is grey."""
    folder = root / "tiny-imagenet-200"
    colours = np.random.default_rng(1).integers(0, 256, (2, 5, 3), dtype=np.uint8)
    colours[:, 1] = colours[:, 1, :1]
    train_targets, test_targets = np.array([0, 0, 1, 1, 2]), np.array([2, 0, 1, 2, 0])
    (folder / "val" / "images").mkdir(parents=True)
    (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    classes = sorted(WNIDS)
    notes = []
    for number in range(5):
        wnid = classes[train_targets[number]]
        path = folder / "train" / wnid / "images" / f"{wnid}_{number}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        _save_flat(path, colours[0, number], is_grey=number == 1)
        _save_flat(folder / "val" / "images" / f"val_{number}.JPEG", colours[1, number], is_grey=number == 1)
        notes.append(f"val_{number}.JPEG\t{classes[test_targets[number]]}\t0\t0\t63\t63\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(notes))
    wide = np.broadcast_to(colours[..., None, None], (2, 5, 3, 64, 64))
    return [wide[0], train_targets, wide[1], test_targets]


def _save_flat(path: Path, colour, *, is_grey):
    image = Image.new("L", (64, 64), int(colour[0])) if is_grey else Image.new("RGB", (64, 64), tuple(map(int, colour)))
    image.save(path, format="JPEG", quality=100, subsampling=0)


WRITERS = {
    "fashion-mnist": write_fashion_mnist,
    "cifar-10": write_cifar_10,
    "svhn": write_svhn,
    "cifar-100": write_cifar_100,
    "cinic-10": write_cinic_10,
    "tiny-imagenet": write_tiny_imagenet,
}
