"""How far valid bounds lie above a thousand trainings of quadratics and logistic regression, at the paper's N and K."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "theory"))
sys.path.insert(0, str(Path(__file__).parents[1] / "fidelity"))

from _markdown import table
from theory_settings import Setting, logistics, quadratics, trained

from fedpcs.theory import valid_distance, valid_error, valid_rate


def row(setting: Setting) -> tuple[str, ...]:
    """Return what a table has of one setting: bound over measured, and whether premises hold."""
    found = trained(setting)
    constants = setting.problem.constants(setting.start)
    rate, distance = (kind(setting.federation, constants) for kind in (valid_rate, valid_distance))
    error = valid_error(setting.federation, constants)
    ratio = rate.value / found.gap.value
    gradients = np.cumsum(found.squared_gradient.value[:-1]) / np.arange(1, setting.federation.num_rounds + 1)
    return (
        setting.name,
        f"{ratio.max():.1f}",
        f"{ratio[-1]:.1f}",
        f"{distance.value[-1] / found.squared_distance.value[-1]:.1f}",
        f"{error.value[-1] / gradients[-1]:.1f}",
        rate.dominating(),
    )


def main() -> None:
    """Print the table."""
    header = ("setting", "rate, largest", "rate, end", "distance, end", "error, end", "largest term")
    print(table(header, (row(setting) for setting in [*quadratics(), *logistics()])))


if __name__ == "__main__":
    main()
