"""From a name to a data set in memory."""

from __future__ import annotations

from pathlib import Path

import torch

from fedpcs._plugins import imported
from fedpcs.errors import CorruptFile, FedpcsError, InvalidInput
from fedpcs.learning.datasets.catalogue import find_entry
from fedpcs.learning.datasets.dataset import Dataset, assemble
from fedpcs.learning.datasets.entry import Entry
from fedpcs.learning.datasets.fetch import fetch_dataset
from fedpcs.learning.datasets.folders import data_folder


def load_dataset(name: str, data_dir: Path | None = None, *, download: bool = False) -> Dataset:
    """Return a data set, read from its published files.

    Args:
        name: A key of `DATASETS`, or `package.module:function`, a function of no arguments that returns a `Dataset`.
        data_dir: The folder above the data set's own; the environment's FEDPCS_DATA or the user's cache if absent.
        download: Whether to fetch what is not there.

    Raises:
        InvalidInput: There is no such data set, or its files are not there.
        CorruptFile: A file is damaged.

    Example:
        >>> digits = load_dataset("digits")
        >>> len(digits.train_inputs), digits.input_shape
        (1437, (1, 8, 8))
    """
    if isinstance(name, str) and ":" in name:
        return _made_by(name)
    entry = find_entry(name)
    folder = data_folder(data_dir) / entry.folder
    if download:
        fetch_dataset(name, data_dir)
    if not folder.is_dir() and entry.folder:
        raise InvalidInput(
            f"{folder} is missing. Run `fedpcs data fetch {name}`, or put its files there, or use --data-dir with a "
            f"folder that has {entry.folder} in it."
        )
    return _read(entry, folder)


def _read(entry: Entry, folder: Path) -> Dataset:
    """Return the data set whose files are in `folder`; whatever is wrong with them is their damage."""
    try:
        found = entry.loader(folder)
    except OSError as error:
        path = error.filename or folder
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}. Make it readable, or move it.") from None
    train_inputs, train_targets, test_inputs, test_targets = map(torch.from_numpy, found)
    try:
        dataset = assemble(
            entry.name,
            (train_inputs, train_targets),
            (test_inputs, test_targets),
            num_classes=entry.num_classes,
            mean=entry.mean,
            stddev=entry.stddev,
        )
    except InvalidInput as error:
        raise CorruptFile(f"{folder} does not hold {entry.name}: {error}") from None
    if dataset.input_shape != entry.input_shape:
        raise CorruptFile(
            f"{folder} must hold images of shape {entry.input_shape}, got {dataset.input_shape}. "
            "Delete it and fetch the data set again."
        )
    return dataset


def _made_by(name: str) -> Dataset:
    remedy = "It must be package.module:function, and the function must take no arguments."
    make = imported("dataset", name, remedy)
    try:
        made = make()
    except FedpcsError:  # it says what is wrong, and better than we could
        raise
    except Exception as error:  # a user's function may fail in any way
        raise InvalidInput(f"dataset {name!r} could not be made: {error}. {remedy}") from error
    if not isinstance(made, Dataset):
        raise InvalidInput(f"dataset {name!r} must return a Dataset, got {type(made).__name__}. Use make_dataset.")
    return made
