"""F37: archives and data files that unpack to far more than their size, or hold what they may not."""

from __future__ import annotations

import gzip
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from command_line import fedpcs
from forked import run_all
from fuzz_archives import TARS, ZIPS, spoiled_tar, spoiled_zip, zeros_gz
from learning.hand_made_files import write_cinic_10, write_fashion_mnist
from mutations import as_toml

from fedpcs.errors import CorruptFile, FedpcsError
from fedpcs.learning.datasets import check_dataset, load_dataset
from fedpcs.learning.datasets.unpacking import unpack

GAME = {"num_clients": 6, "last_round": 3, "cohort_size": 2, "reward": 6.0}


def npz_bomb(path: Path) -> None:
    """Write an .npz of 600 kB whose one array says it has 2 GB."""
    header = (
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (250000000,), }".ljust(117)
        + b"\n"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("budget.npy", "w") as member:
        member.write(header)
        for _ in range(120):
            member.write(bytes(5_000_000))


def idx_bomb(path: Path, begin: bytes) -> None:
    path.parent.mkdir(parents=True)
    for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (path.parent / f"{part}-ubyte.gz").write_bytes(zeros_gz(5_400_000_000, begin))


def mat_bomb(path: Path) -> None:
    """Write a MATLAB file whose one packed element becomes 600 MB."""
    packing = zlib.compressobj(1)
    packed = b"".join(packing.compress(bytes(5_000_000)) for _ in range(120)) + packing.flush()
    header = b"MATLAB 5.0".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    path.write_bytes(header + struct.pack("<II", 15, len(packed)) + packed)


def bomb(kind: str, folder: Path):
    """Make a bomb; return what opens it."""
    idx = folder / "FashionMNIST" / "x"
    if kind in ("gz", "gz with a magic"):
        idx_bomb(idx, b"" if kind == "gz" else struct.pack(">BBBBIII", 0, 0, 8, 3, 6_000_000, 28, 28))
        return lambda: load_dataset("fashion-mnist", folder)
    if kind == "gz checked":
        idx_bomb(idx, b"")
        return lambda: check_dataset("fashion-mnist", folder)
    if kind == "mat":
        (folder / "SVHN").mkdir()
        for part in ("train", "test"):
            mat_bomb(folder / "SVHN" / f"{part}_32x32.mat")
        return lambda: load_dataset("svhn", folder)
    if kind == "npz":
        npz_bomb(folder / "bomb.npz")
        (folder / "game.toml").write_text(as_toml(GAME))
        return lambda: _ran(fedpcs("verify", folder / "bomb.npz", "--game", folder / "game.toml"))
    path = folder / ("bomb.zip" if kind == "zip" else "bomb.tar.gz")
    path.write_bytes(spoiled_zip("bomb") if kind == "zip" else spoiled_tar("name-bomb" if "name" in kind else "bomb"))
    return lambda: unpack(path, folder / "into")


def _ran(done):
    assert done.returncode == 6, done.stderr
    raise CorruptFile(done.stderr)


@pytest.mark.parametrize("kind", ["gz", "gz with a magic", "gz checked", "mat", "npz", "tar", "tar name", "zip"])
def test_a_bomb_is_refused_within_5_seconds_and_500_megabytes(kind, tmp_path):
    opened = bomb(kind, tmp_path)

    def case(_):
        try:
            opened()
        except FedpcsError as error:
            return error.exit_code, frozenset({6}), str(error)
        return 0, frozenset({6}), "it was taken for good"

    (outcome,) = run_all(case, range(1))
    assert (outcome.problem, outcome.code) == ("", 6), outcome.detail
    used = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    assert used < 200_000_000  # nor is the disk filled


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("bad.zip", kind) for kind in ZIPS if kind != "bomb"),
        *(("bad.tar.gz", kind) for kind in TARS if "bomb" not in kind),
    ],
)
def test_an_archive_that_cannot_be_unpacked_is_named_in_one_line(name, kind, tmp_path):
    (tmp_path / name).write_bytes((spoiled_zip if name.endswith("zip") else spoiled_tar)(kind))
    with pytest.raises(CorruptFile, match=name) as caught:
        unpack(tmp_path / name, tmp_path / "into")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800
    made = [stat.S_IFMT(path.lstat().st_mode) for path in tmp_path.rglob("*")]
    assert set(made) <= {stat.S_IFREG, stat.S_IFDIR}


def test_what_a_good_archive_holds_is_unpacked_whole(tmp_path):
    with tarfile.open(tmp_path / "good.tar.gz", "w:gz") as tar:
        (tmp_path / "content").write_bytes(os.urandom(300_000))
        tar.add(tmp_path / "content", "set/deep/er/content")
        tar.add(tmp_path, "set/folder", recursive=False)
    unpack(tmp_path / "good.tar.gz", tmp_path / "into")
    assert (tmp_path / "into/set/deep/er/content").read_bytes() == (tmp_path / "content").read_bytes()
    assert (tmp_path / "into/set/folder").is_dir()


def test_a_pipe_for_an_image_of_a_data_set_is_damage(tmp_path):
    write_cinic_10(tmp_path)
    image = next((tmp_path / "CINIC-10" / "train").rglob("*.png"))
    image.unlink()
    os.mkfifo(image)
    with pytest.raises(CorruptFile, match="Not a regular file"):
        load_dataset("cinic-10", tmp_path)


def test_a_gzip_that_is_what_it_says_is_read_to_the_end(tmp_path):
    found = write_fashion_mnist(tmp_path)
    path = next((tmp_path / "FashionMNIST").glob("train-images*"))
    assert (load_dataset("fashion-mnist", tmp_path).train_inputs.numpy() == found[0]).all()
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b"\0"))
    with pytest.raises(CorruptFile, match="got more"):
        load_dataset("fashion-mnist", tmp_path)
