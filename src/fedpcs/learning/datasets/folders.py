"""Where data sets lie, which of their files are there, and whether a tree of images is still what a fetch brought."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from fedpcs._files import MOST_ARRAYS, MOST_DATA, open_regular, read_text
from fedpcs.learning.datasets.entry import Entry, damaged

_GZIP_MAGIC = b"\x1f\x8b"
_RECEIPT = ".fedpcs-fetched.json"


def data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder that holds the data sets: the one given, else FEDPCS_DATA's, else the user's cache."""
    if given := data_dir or os.environ.get("FEDPCS_DATA"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("fedpcs"))


def is_present(entry: Entry, root: Path) -> bool:
    """Return whether a data set's files are below `root`. It looks at names alone; `check_dataset` looks inside."""
    folder = root / entry.folder
    if not entry.contents:
        return not entry.folder or folder.is_dir()
    return all(present_file(folder, name) is not None for name in entry.contents)


def present_file(folder: Path, name: str) -> Path | None:
    """Return the file of this name, or the same without `.gz`, whichever is there."""
    return next((path for path in (folder / name, folder / name.removesuffix(".gz")) if path.is_file()), None)


@contextmanager
def unzipped(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file to be read piece by piece, whether or not it is gzipped; nothing is unpacked before it is read.

    Raises:
        CorruptFile: It is gzipped, and damaged.
    """
    with open_regular(path, MOST_DATA) as raw:
        is_gzipped = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        raw.seek(0)
        try:
            yield gzip.GzipFile(fileobj=raw) if is_gzipped else raw
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise damaged(path, f"must be a whole gzip file: {error}") from None


def write_receipt(folder: Path) -> None:
    """Note what a tree of images held when it came out of an archive with the published checksum.

    Nobody publishes a checksum of such a tree. The note guards against accidents, not against someone who can write to
    the folder.
    """
    (folder / _RECEIPT).write_text(json.dumps({"sha256": _tree_digest(folder)}) + "\n", encoding="utf-8")


def is_as_fetched(folder: Path) -> bool:
    """Return whether a tree has such a note, and still is what the note says."""
    try:
        noted = json.loads(read_text(folder / _RECEIPT))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(noted, dict) and noted.get("sha256") == _tree_digest(folder)


def _tree_digest(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of all files below `folder`, but for hidden ones at its top."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not name.parts[0].startswith("."):
            with open_regular(path, MOST_ARRAYS) as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{name.as_posix()}\0{content}\n".encode())
    return digest.hexdigest()
