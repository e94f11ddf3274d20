"""Data sets and what lies in their folders, as JSON can hold it: what `fedpcs data` prints."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedpcs._plugins import look_here
from fedpcs.learning.datasets import DATASETS, check_dataset, data_folder, is_present

_SHOWN = ("name", "num_classes", "num_train", "num_test", "num_bytes", "citation", "terms")


def describe_all(data_dir: Path | None = None) -> list[dict[str, Any]]:
    """Return what the catalogue says of every data set, and whether its files are there."""
    root = data_folder(data_dir)
    return [
        {
            **{name: getattr(entry, name) for name in _SHOWN},
            "input_shape": list(entry.input_shape),
            "is_present": is_present(entry, root),
            "folder": str(root / entry.folder) if entry.folder else None,
        }
        for entry in DATASETS.values()
    ]


def check(name: str, data_dir: Path | None = None) -> dict[str, Any]:
    """Read a data set from its files and return how it compares with what was published."""
    look_here(name)
    found = check_dataset(name, data_dir)
    return {
        **asdict(found),
        "folder": None if found.folder is None else str(found.folder),
        "verdict": found.verdict.name.lower(),
        "says": str(found.verdict),
        "files": {file.name: {"sha256": file.sha256, "is_published": file.is_published} for file in found.files},
    }
