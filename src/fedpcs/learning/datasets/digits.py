"""The digits that come with scikit-learn: 1,797 grey images of 8×8, read without a network.

The set has no split of its own. Ours is fixed for good: in each class the images are shuffled by the generator of
(seed 0, "digits split", round 0, client = class), and the first fifth is the test set, rounded so that 360 are test
images and 1,437 train images. Both keep the order of the original file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedpcs import _random
from fedpcs.learning.datasets.entry import Entry, Splits

_NUM_TEST = 360
_BRIGHTEST = 16  # the file counts ink in 0…16


def load_digits(folder: Path) -> Splits:
    """Return the digits, 0…16 stretched to 0…255. They lie inside scikit-learn, so `folder` is not used."""
    from sklearn.datasets import load_digits as read

    found = read()
    ink = np.asarray(found.images, dtype=np.float64)
    images = np.rint(ink * 255.0 / _BRIGHTEST).astype(np.uint8)[:, None]
    targets = np.asarray(found.target, dtype=np.int64)
    is_test = _is_test(targets)
    return Splits(images[~is_test], targets[~is_test], images[is_test], targets[is_test])


def _is_test(targets: NDArray[np.int64]) -> NDArray[np.bool_]:
    shares = np.bincount(targets) * _NUM_TEST / len(targets)
    quotas = np.floor(shares).astype(int)
    # The largest remainders take what is missing; ties go to the smaller digit.
    quotas[np.argsort(quotas - shares, kind="stable")[: _NUM_TEST - quotas.sum()]] += 1
    chosen = np.zeros(len(targets), dtype=bool)
    for digit, quota in enumerate(quotas):
        shuffled = _random.generator(0, "digits split", client=digit).permutation(np.flatnonzero(targets == digit))
        chosen[shuffled[:quota]] = True
    return chosen


DIGITS = Entry(
    name="digits",
    loader=load_digits,
    input_shape=(1, 8, 8),
    num_train=1_437,
    num_test=360,
    num_classes=10,
    mean=(0.3056,),
    stddev=(0.3761,),
    citation="Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI repository",
    terms="CC BY 4.0",
)
