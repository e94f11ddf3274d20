"""Draw the accuracy of noise-free federated averaging on Fashion-MNIST from finished runs.

fedpcs run fashion-mnist-noise-free --data-dir DATA --out iid
fedpcs run fashion-mnist-noise-free --data-dir DATA --out skewed --set data.partition=dirichlet
python docs/training/fashion_curve.py iid skewed --out docs/training/fashion_curve.png
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from fedpcs._validate import FloatArray
from fedpcs.report import style
from fedpcs.report.figures.lines import Line, lines_figure
from fedpcs.trial.run_store import open_run

_TARGET = 87.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".png"))
    options = parser.parse_args()
    curves: dict[str, FloatArray] = {}
    for folder in options.runs:
        store = open_run(folder)
        config = store.config()
        rounds = store.trial(config.sampling.samplers[0], config.seeds[0]).rounds()
        split = "IID" if config.data.partition == "iid" else f"Dirichlet({config.data.alpha:g})"
        curves[split] = 100.0 * np.array([line.accuracy for line in rounds])
    ends = "; ".join(_told(*curve) for curve in curves.items())
    note = "100 clients, 20 drawn a round, 5 local epochs, batch 32, rate 0.1, no noise. Test set of 10,000 images."
    figure = lines_figure(
        "The paper's CNN on Fashion-MNIST",
        {split: Line(np.arange(accuracy.size, dtype=np.float64), accuracy) for split, accuracy in curves.items()},
        "test accuracy, %",
        note=f"{ends}. {note}",
        level=("87 %", _TARGET),
    )
    style.save(figure, options.out)
    print(options.out)


def _told(split: str, accuracy: FloatArray) -> str:
    passed = np.flatnonzero(accuracy >= _TARGET)
    when = f"87 % after {passed[0] + 1} rounds" if passed.size else "never 87 %"
    return f"{split}: {when}, {accuracy[-1]:.1f} % at the end"


if __name__ == "__main__":
    main()
