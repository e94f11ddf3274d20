"""What a loader hands over: the records of train and test as they were on disk."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Splits:
    """Bytes and labels as read from files; `load_dataset` checks them and adds what the files do not say.

    Attributes:
        train_inputs: (records, channels, height, width).
        train_targets: (records,).
        test_inputs: (records, channels, height, width).
        test_targets: (records,).
    """

    train_inputs: NDArray[np.uint8] = field(repr=False)
    train_targets: NDArray[np.int64] = field(repr=False)
    test_inputs: NDArray[np.uint8] = field(repr=False)
    test_targets: NDArray[np.int64] = field(repr=False)
