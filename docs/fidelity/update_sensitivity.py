"""Erratum 12: how far one replaced record moves an update that is clipped as a whole, against the printed 2W/|D|."""

from __future__ import annotations

import numpy as np
import torch
from _markdown import table
from torch import Tensor, nn

from fedpcs.learning.layout import flat_parameters
from fedpcs.learning.local import local_sgd

RECORDS, FEATURES, CLIP_NORM = 100, 5, 1.0
EPOCHS = (1, 5)
LENGTHS = (1.0, 10.0, 100.0)


def clipped_update(inputs: Tensor, targets: Tensor, epochs: int) -> Tensor:
    """Return a linear client's update, clipped to W."""
    model = nn.Linear(FEATURES, 2, bias=False)
    nn.init.zeros_(model.weight)
    local_sgd(
        model, (inputs, targets), learning_rate=1.0, batch_size=20, num_epochs=epochs, order=np.random.default_rng(0)
    )
    update = torch.from_numpy(flat_parameters(model))
    return update * min(1.0, CLIP_NORM / float(update.norm()))


def moved_by_one_record(epochs: int, length: float) -> float:
    """Return ‖Q(D) − Q(D')‖ for two clients who differ by one record, that many times as long as the others."""
    rng = torch.Generator().manual_seed(0)
    inputs = torch.randn(RECORDS, FEATURES, generator=rng) / FEATURES**0.5
    targets = (inputs[:, 0] > 0).long()
    other = inputs.clone()
    other[0] = torch.tensor([-length, *[0.0] * (FEATURES - 1)])
    labels = targets.clone()
    labels[0] = 1  # pulls the other way
    return float((clipped_update(inputs, targets, epochs) - clipped_update(other, labels, epochs)).norm())


def main() -> None:
    """Print the table."""
    printed = 2.0 * CLIP_NORM / RECORDS
    rows = [
        (str(epochs), f"{length:g}", f"{moved_by_one_record(epochs, length):.3g}", f"{printed:g}", f"{2 * CLIP_NORM:g}")
        for epochs in EPOCHS
        for length in LENGTHS
    ]
    print(table(("epochs", "length of the record", "moved by", "printed, 2W ÷ records", "client mode, 2W"), rows))


if __name__ == "__main__":
    main()
