"""Where data sets lie: the folder given, else that of FEDPCS_DATA, else the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from fedpcs.learning.datasets.catalogue import Entry


def data_folder(data_dir: Path | None = None) -> Path:
    """Return the folder that holds the data sets, one folder each."""
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if given := os.environ.get("FEDPCS_DATA"):
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
    for path in (folder / name, folder / name.removesuffix(".gz")):
        if path.is_file():
            return path
    return None
