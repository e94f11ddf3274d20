"""A validation set, for whoever tunes: some of the training records set apart, and the test records out of reach."""

from __future__ import annotations

from dataclasses import replace

import torch

from fedpcs import _random, _validate
from fedpcs.errors import InvalidInput
from fedpcs.learning.datasets.dataset import Dataset

# One split for all seeds of a study: settings are compared on the same records.
_SEED = 0


def hold_out(dataset: Dataset, share: float) -> Dataset:
    """Return the data set with a share of its training records in the place of its test records.

    Args:
        dataset: As it was read.
        share: In (0, 1); at least one record must remain on either side.

    Raises:
        InvalidInput: One side would be empty.
    """
    _validate.number("data.validation_share", share, low=0.0, high=1.0)
    num_records = len(dataset.train_targets)
    num_held = round(share * num_records)
    if not 0 < num_held < num_records:
        raise InvalidInput(
            f"data.validation_share = {share:g} of {num_records:,} records leaves {num_records - num_held:,} to train "
            f"on and {num_held:,} to validate on; both must be above 0."
        )
    order = torch.from_numpy(_random.generator(_SEED, "validation").permutation(num_records))
    held, kept = order[:num_held].sort().values, order[num_held:].sort().values
    return replace(
        dataset,
        train_inputs=dataset.train_inputs[kept],
        train_targets=dataset.train_targets[kept],
        test_inputs=dataset.train_inputs[held],
        test_targets=dataset.train_targets[held],
    )
