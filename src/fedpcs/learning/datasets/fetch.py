"""A published data set brought to the data folder: downloaded, its checksum compared, unpacked, all or nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets.catalogue import find_entry
from fedpcs.learning.datasets.download import Progress, download_file
from fedpcs.learning.datasets.entry import Download, Entry
from fedpcs.learning.datasets.folders import data_folder, is_present, present_file, write_receipt
from fedpcs.learning.datasets.unpacking import unpack


def fetch_dataset(name: str, data_dir: Path | None = None, progress: bool = True) -> Path:
    """Fetch a data set unless its files are there, and return its folder.

    Args:
        name: A key of `DATASETS`.
        data_dir: The folder above the data set's own; the environment's FEDPCS_DATA or the user's cache if absent.
        progress: Whether to show on stderr how far it is.

    Raises:
        InvalidInput: There is no such data set, or its server cannot be reached.
        CorruptFile: What arrived is not what was published.

    Guarantees:
        Files that are there are left alone. An interrupted fetch leaves no half of a data set, and the next one goes
        on from the bytes that have arrived. Two processes that fetch the same set take turns.
    """
    entry, root = find_entry(name), data_folder(data_dir)
    if not is_present(entry, root):
        with _turn(root, entry), _transfers(is_shown=progress) as shown:
            for download in () if is_present(entry, root) else entry.downloads:
                label = download.file_name + ("" if download.has_sha256 else " (has no SHA-256, only an MD5)")
                _bring(entry, download, root, shown(label))
    return root / entry.folder


def _bring(entry: Entry, download: Download, root: Path, on_progress: Progress) -> None:
    folder = root / entry.folder
    # What is not an archive is there already if a file has its name, in whatever way it was compressed.
    if not download.is_archive and present_file(folder, download.file_name):
        return
    arrived = root / ".fedpcs-downloads" / download.file_name
    try:
        download_file(download, arrived, on_progress)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error} Try again later, put the files of {entry.name} at {folder}, or use --data-dir with the files at "
            f"DIR/{entry.folder}."
        ) from None
    if download.is_archive:
        _unpack_beside(entry, arrived, folder)
        arrived.unlink()
    else:
        folder.mkdir(parents=True, exist_ok=True)
        os.replace(arrived, folder / download.file_name)


def _unpack_beside(entry: Entry, archive: Path, folder: Path) -> None:
    """Unpack in a folder of its own first, so that the data set appears as a whole or not at all."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as temporary:
        fresh = Path(temporary) / "whole"
        fresh.mkdir()
        unpack(archive, fresh)
        if (fresh / entry.folder).is_dir():  # some archives hold the folder, others what belongs in it
            fresh = fresh / entry.folder
        if not entry.contents:
            write_receipt(fresh)
        if not folder.is_dir():
            os.replace(fresh, folder)
            return
        for path in sorted(fresh.iterdir()):
            if not (folder / path.name).exists():
                shutil.move(path, folder / path.name)


@contextlib.contextmanager
def _turn(root: Path, entry: Entry) -> Iterator[None]:
    from filelock import FileLock

    waiting = root / ".fedpcs-downloads"
    try:
        waiting.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{waiting} cannot be made: {error.strerror}. Give another --data-dir.") from None
    with FileLock(waiting / f"{entry.name}.lock"):
        yield


@contextlib.contextmanager
def _transfers(*, is_shown: bool) -> Iterator[Callable[[str], Progress]]:
    """Give a function that opens a line for a file on stderr and returns what to call as its bytes arrive."""
    if not is_shown:
        yield lambda label: lambda done, total: None
        return
    from rich import progress
    from rich.console import Console

    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.DownloadColumn()
    with progress.Progress(*columns, progress.TimeRemainingColumn(), console=Console(stderr=True)) as bars:

        def opened(label: str) -> Progress:
            task = bars.add_task(label, total=None)
            return lambda done, total: bars.update(task, completed=done, total=total)

        yield opened
