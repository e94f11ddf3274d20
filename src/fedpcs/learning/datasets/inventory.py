"""What `fedpcs data` prints: which data sets there are, and what lies in their folders."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

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


def print_all(found: list[dict[str, Any]], console: Console) -> None:
    """Print a row per data set: the published size, and whether it is here."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("name", no_wrap=True)
    for heading in ("classes", "train", "test", "download"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("here")
    table.add_column("terms")
    for one in found:
        size = f"{one['num_bytes'] / 1e6:.0f} MB" if one["num_bytes"] else "–"
        counts = (str(one["num_classes"]), f"{one['num_train']:,}", f"{one['num_test']:,}", size)
        table.add_row(one["name"], *counts, "yes" if one["is_present"] else "no", one["terms"])
    console.print(table)


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


def print_check(one: dict[str, Any], console: Console) -> None:
    """Print what a check found."""
    console.print(f"[bold]{one['name']}[/bold]: {one['says']}", highlight=False)
    table = Table(show_header=False, box=box.SIMPLE)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("folder", one["folder"] or "–")
    table.add_row("images", f"{one['num_train']:,} train, {one['num_test']:,} test")
    table.add_row("classes", str(one["num_classes"]))
    table.add_row("checksum", one["checksum"])
    for name, file in one["files"].items():
        table.add_row(name, f"{file['sha256']}, {'as published' if file['is_published'] else 'not published'}")
    console.print(table)
