"""Data sets: read from their published files, fetched and checked, or brought along.

`load_dataset` takes a name of `DATASETS` or a function of your own; `make_dataset` takes your arrays. Images stay bytes
until `normalised` turns a batch into floats.
"""

from fedpcs.learning.datasets.catalogue import DATASETS
from fedpcs.learning.datasets.check import DatasetCheck, FileCheck, Verdict, check_dataset
from fedpcs.learning.datasets.dataset import Dataset, hold_out, make_dataset, normalised
from fedpcs.learning.datasets.entry import Download, Entry
from fedpcs.learning.datasets.fetch import fetch_dataset
from fedpcs.learning.datasets.folders import data_folder, is_present
from fedpcs.learning.datasets.load import load_dataset
from fedpcs.learning.datasets.oriented_gradients import with_oriented_gradients

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetCheck",
    "Download",
    "Entry",
    "FileCheck",
    "Verdict",
    "check_dataset",
    "data_folder",
    "fetch_dataset",
    "hold_out",
    "is_present",
    "load_dataset",
    "make_dataset",
    "normalised",
    "with_oriented_gradients",
]
