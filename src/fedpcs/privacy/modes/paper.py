"""Mode `paper`: the paper's calibration, sensitivity 2W/|D|. It is proven for one full-batch local step alone."""

from __future__ import annotations

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.privacy.events import Level, Relation
from fedpcs.privacy.modes.mode import Canary, IntArray, Neighbours
from fedpcs.privacy.modes.update_mode import UpdateMode


def _num_records(num_samples: IntArray) -> FloatArray:
    return num_samples.astype(np.float64)  # squares of whole numbers would overflow


PAPER = UpdateMode(
    "paper",
    Level(
        "paper",
        "record",
        Relation.REPLACE_ONE,
        caveat="the paper's calibration is not proven for more than one local step",
    ),
    "The paper speaks of records: a client's releases should look alike when one of them is replaced.",
    (
        Canary(
            "paper",
            Neighbours.RELABELLED_RECORD,
            "The paper matches noise to 2W/|D|. One record can move a mean of clipped gradients by that much, but the "
            "clipped update of several local steps by 2W, as these neighbours show: a contradiction is expected. Audit "
            "paper-one-step for the case in which the claim holds.",
        ),
        Canary(
            "paper-one-step",
            Neighbours.REPLACED_IN_FULL_BATCH,
            "The paper's calibration, in the one case it holds for.",
        ),
    ),
    _num_records,
)
