"""Data sets: read from their published files, fetched and checked, or brought along.

`load_dataset` takes a name of `DATASETS` or a function of your own; `make_dataset` takes your arrays. Images stay bytes
until `normalised` turns a batch into floats.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedpcs.learning.datasets.catalogue import DATASETS as DATASETS
    from fedpcs.learning.datasets.check import DatasetCheck as DatasetCheck
    from fedpcs.learning.datasets.check import FileCheck as FileCheck
    from fedpcs.learning.datasets.check import Verdict as Verdict
    from fedpcs.learning.datasets.check import check_dataset as check_dataset
    from fedpcs.learning.datasets.dataset import Dataset as Dataset
    from fedpcs.learning.datasets.dataset import hold_out as hold_out
    from fedpcs.learning.datasets.dataset import make_dataset as make_dataset
    from fedpcs.learning.datasets.dataset import normalised as normalised
    from fedpcs.learning.datasets.entry import Download as Download
    from fedpcs.learning.datasets.entry import Entry as Entry
    from fedpcs.learning.datasets.fetch import fetch_dataset as fetch_dataset
    from fedpcs.learning.datasets.folders import data_folder as data_folder
    from fedpcs.learning.datasets.folders import is_present as is_present
    from fedpcs.learning.datasets.load import load_dataset as load_dataset
    from fedpcs.learning.datasets.oriented_gradients import with_oriented_gradients as with_oriented_gradients

# Read at first use, so that a misspelt name is refused before torch is imported.
_HOMES = {
    "catalogue": ("DATASETS",),
    "check": ("DatasetCheck", "FileCheck", "Verdict", "check_dataset"),
    "dataset": ("Dataset", "hold_out", "make_dataset", "normalised"),
    "entry": ("Download", "Entry"),
    "fetch": ("fetch_dataset",),
    "folders": ("data_folder", "is_present"),
    "load": ("load_dataset",),
    "oriented_gradients": ("with_oriented_gradients",),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"fedpcs.learning.datasets.{module}"), name)
    raise AttributeError(f"module 'fedpcs.learning.datasets' has no attribute {name!r}")
