"""What `fedpcs data` prints: which data sets there are, and what lies in their folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedpcs._plugins import look_here
from fedpcs.learning.datasets import DATASETS, check_dataset, data_folder, is_present


def describe_all(data_dir: Path | None = None) -> list[dict[str, Any]]:
    """Return what the catalogue says of every data set, and whether its files are there."""
    root = data_folder(data_dir)
    return [
        {
            "name": entry.name,
            "num_classes": entry.num_classes,
            "input_shape": list(entry.input_shape),
            "num_train": entry.num_train,
            "num_test": entry.num_test,
            "num_bytes": entry.num_bytes,
            "is_present": is_present(entry, root),
            "folder": str(root / entry.folder) if entry.folder else None,
            "citation": entry.citation,
            "terms": entry.terms,
        }
        for entry in DATASETS.values()
    ]


def check(name: str, data_dir: Path | None = None) -> dict[str, Any]:
    """Read a data set from its files and return how it compares with what was published."""
    look_here(name)
    found = check_dataset(name, data_dir)
    return {
        "name": found.name,
        "folder": None if found.folder is None else str(found.folder),
        "verdict": found.verdict.name.lower(),
        "says": str(found.verdict),
        "num_train": found.num_train,
        "num_test": found.num_test,
        "num_classes": found.num_classes,
        "checksum": found.checksum,
        "files": {file.name: {"sha256": file.sha256, "is_published": file.is_published} for file in found.files},
    }
