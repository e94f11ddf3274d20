"""Finished cells made up for tests of tables and pages: results without runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from made_records import a_manifest, a_result, a_round

from fedpcs.studies.grid import Cell
from fedpcs.studies.results import TrialData


def made(cell: Cell, accuracy: float, *, epsilon: float = 5.0, paid: float = 100.0, **more: Any) -> TrialData:
    """A cell that came to this accuracy, rising to it over its rounds."""
    rounds = cell.config.rounds
    rule = cell.config.sampling.rule
    spread = {"minimum": 0.5 * epsilon, "median": epsilon, "maximum": 2.0 * epsilon}
    lines = tuple(
        a_round(
            now,
            rule=rule,
            accuracy=accuracy * (now + 1) / rounds,
            loss=2.0 - accuracy * (now + 1) / rounds,
            update_norm={"minimum": 5.0, "median": 5.0, "maximum": 5.0},
            noise_norm={"minimum": 3.0, "median": 3.0, "maximum": 3.0},
            spent={"rho": spread, "epsilon": spread, "num_clients": 10},
            paid_so_far=paid * (now + 1) / rounds,
        )
        for now in range(rounds)
    )
    result = {
        "sampler": cell.sampler,
        "seed": cell.seed,
        "accuracy": accuracy,
        "loss": 2.0 - accuracy,
        "rounds": rounds,
        "num_test": 10_000,
        "num_parameters": 1_000,
        "num_left": 0,
        "spent": {"rho": spread, "epsilon": spread, "num_clients": 10},
        "delta": 1e-5,
        "paid": paid,
        "times_drawn": [2 * rounds] * 10,
        "disclosure": "reads label counts" if cell.sampler == "fed-cbs" else "",
    } | more
    folder = Path("trials") / cell.folder_name
    return TrialData(cell, a_result(**result), lines, a_manifest(cell.config), 12.5, folder)
