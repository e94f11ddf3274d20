"""Data sets made wrong: their files, and the archives they come in, bombs among them."""

from __future__ import annotations

import gzip
import io
import shutil
import struct
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from forked import doing
from learning.hand_made_files import (
    write_cifar_10,
    write_cifar_100,
    write_cinic_10,
    write_fashion_mnist,
    write_svhn,
    write_tiny_imagenet,
)
from mutations import mutate_bytes, put_something_else

from fedpcs._outside import message
from fedpcs.errors import FedpcsError
from fedpcs.learning.datasets import check_dataset, load_dataset
from fedpcs.learning.datasets.unpacking import unpack

Rng = np.random.Generator
WRITERS: dict[str, Callable[[Path], object]] = {
    "fashion-mnist": write_fashion_mnist,
    "cifar-10": write_cifar_10,
    "cifar-100": write_cifar_100,
    "svhn": write_svhn,
    "cinic-10": write_cinic_10,
    "tiny-imagenet": write_tiny_imagenet,
}
_ZEROS = gzip.compress(bytes(5_000_000))


def pack_data(folder: Path) -> None:
    """Write every data set, a few records each."""
    folder.mkdir()
    for write in WRITERS.values():
        write(folder)


def zeros_gz(num_bytes: int, begin: bytes = b"") -> bytes:
    """Return a gzip file of so many zeros, a thousandth of their size."""
    return gzip.compress(begin) + _ZEROS * (num_bytes // 5_000_000)


def archive_case(data: Path, folder: Path, rng: Rng) -> tuple[int, frozenset[int], str]:
    """A file of a data set and its reader, or an archive and what unpacks it."""
    if rng.random() < 0.5:
        return _file_case(data, folder, rng)
    name = ("wild.zip", "wild.tar.gz")[rng.integers(2)]
    what, content, is_wrong = (_zip if name.endswith("zip") else _tar)(rng)
    (folder / name).write_bytes(content)
    doing(f"{name}: {what}")
    code, words = _caught(lambda: unpack(folder / name, folder / "into"))
    return code, frozenset({6}) if is_wrong else frozenset({0, 6}), words


def _file_case(data: Path, folder: Path, rng: Rng) -> tuple[int, frozenset[int], str]:
    name = sorted(WRITERS)[rng.integers(len(WRITERS))]
    shutil.copytree(data, folder / "data")
    tops = {"cifar-10": "cifar-10-b*", "cifar-100": "cifar-100*", "svhn": "SVHN", "fashion-mnist": "Fashion*"}
    tops |= {"cinic-10": "CINIC*", "tiny-imagenet": "tiny*"}
    top = next((folder / "data").glob(tops[name]))
    files = sorted(path for path in top.rglob("*") if path.is_file())
    path = files[rng.integers(len(files))]
    right = frozenset({0, 6})
    if (chance := rng.random()) < 0.2:
        # A file that is not there is bad input: nobody knows whether it ever was.
        what, right = put_something_else(path, rng), frozenset({0, 2, 6})
    elif chance < 0.3:
        way = path.parent if path.parent != top else top
        shutil.rmtree(way)
        way.write_bytes(b"a file where a folder must be")
        what, right = f"a file for {way.name}", frozenset({0, 2, 6})
    elif chance < 0.4:
        begin = (b"", struct.pack(">BBBBIII", 0, 0, 8, 3, 10**6, 28, 28), path.read_bytes())[rng.integers(3)]
        path.write_bytes(zeros_gz(5_400_000_000, begin))
        what, right = "a bomb", frozenset({0, 6})
    elif chance < 0.45:
        with path.open("r+b") as file:
            file.truncate(10**10)
        what, right = "10 GB of holes", frozenset({0, 2, 6})
    else:
        changed, what = mutate_bytes(path.read_bytes(), rng)
        path.write_bytes(changed)
    read = (load_dataset, check_dataset)[rng.integers(2)]
    doing(f"{name}: {path.name}: {what}")
    code, words = _caught(lambda: read(name, folder / "data"))
    return code, right, words


def _caught(call: Callable[[], object]) -> tuple[int, str]:
    try:
        call()
    except FedpcsError as error:
        return error.exit_code, message(error)
    return 0, ""


ZIPS = ("long", "clash", "encrypted", "method", "bomb", "twice")
TARS = ("long", "clash", "link", "hard link", "pipe", "device", "holes", "bomb", "name-bomb", "chain", "twice")
_TYPES = {
    "link": tarfile.SYMTYPE,
    "hard link": tarfile.LNKTYPE,
    "pipe": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
    "holes": tarfile.GNUTYPE_SPARSE,
}


def spoiled_zip(how: str, content: bytes = b"content") -> bytes:
    """Return a zip with one thing wrong, of ZIPS; a word that is none of these gives a good one."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("set/fine.bin", content)
        if how == "long":
            file.writestr("set/" + "x" * 5000, b"")
        elif how == "clash":
            file.writestr("set/fine.bin/inside", b"a folder where there is a file")
        elif how == "bomb":
            with file.open("set/bomb", "w") as member:
                for _ in range(80):
                    member.write(bytes(5_000_000))
        elif how == "many":
            for number in range(200):
                file.writestr(f"set/{number}", b"")
        elif how == "twice":
            with warnings.catch_warnings(action="ignore"):
                file.writestr("set/fine.bin", b"again")
    made = bytearray(stream.getvalue())
    for mark, flags, method in ((b"PK\x03\x04", 6, 8), (b"PK\x01\x02", 8, 10)):
        if how == "encrypted":
            made[made.find(mark) + flags] |= 1
        elif how == "method":
            made[made.find(mark) + method] = 97
    return bytes(made)


def spoiled_tar(how: str, content: bytes = b"content") -> bytes:
    """Return a tar.gz with one thing wrong, of TARS; a word that is none of these gives a good one."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        _add(tar, "set/fine.bin", content)
        if how == "long":
            _add(tar, "set/" + "y" * 5000, b"")
        elif how == "clash":
            _add(tar, "set/fine.bin/inside", b"")
        elif how == "twice":
            _add(tar, "set/fine.bin", b"again")
        elif how in _TYPES:
            member = tarfile.TarInfo("set/odd")
            member.type = _TYPES[how]
            member.linkname = {"link": "/etc/passwd", "hard link": "fine"}.get(how, "")
            tar.addfile(member)
    plain = stream.getvalue()
    member = tarfile.TarInfo("set/bomb")
    if how in ("bomb", "name-bomb"):
        member.type, member.size = tarfile.REGTYPE if how == "bomb" else tarfile.GNUTYPE_LONGNAME, 10**10
        return zeros_gz(5_400_000_000, member.tobuf(tarfile.GNU_FORMAT))
    if how == "chain":
        member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1
        return gzip.compress((member.tobuf(tarfile.GNU_FORMAT) + b"y".ljust(512, b"\0")) * 5000)
    return gzip.compress(plain)


def _zip(rng: Rng) -> tuple[str, bytes, bool]:
    how = (*ZIPS, "bytes", "bytes", "many")[rng.integers(len(ZIPS) + 3)]
    made = spoiled_zip(how, rng.bytes(3000))
    if how == "bytes":
        made, how = mutate_bytes(made, rng)
    return how, made, how in ZIPS


def _tar(rng: Rng) -> tuple[str, bytes, bool]:
    how = (*TARS, "bytes", "bytes", "raw")[rng.integers(len(TARS) + 3)]
    made = spoiled_tar(how, rng.bytes(3000))
    if how == "raw":
        return how, mutate_bytes(made, rng)[0], False
    if how == "bytes":
        changed, how = mutate_bytes(gzip.decompress(made), rng)
        return how, gzip.compress(changed), False
    return how, made, True


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
